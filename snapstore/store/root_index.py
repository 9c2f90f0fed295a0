"""An index of all roots that a shell can check without starting a program.

A store's folder is named by a hash, which a shell cannot compute. So in the folder of the stores, the root
`/home/ada/garden` has the empty file `.roots/home/ada/garden/.snapstore-root`. `shell-init` makes this index; creating,
adopting or opening a store adds its root. The file `.roots-complete` says that the index lists every store; without
that file a shell asks the program. A root that is listed without a store only costs a useless call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from snapstore.base import files

FOLDER = ".roots"
MARK = ".snapstore-root"
COMPLETE = ".roots-complete"


def mark(home: str, root: bytes) -> None:
    """Add a root to the index, if there is one.

    If that fails, the index no longer counts as complete.
    """
    index = f"{home}/{FOLDER}"
    if os.path.exists(f"{index}{os.fsdecode(root)}/{MARK}") or not os.path.isdir(index):
        return
    try:
        _add(index, root)
    except OSError:
        try:
            files.remove(f"{home}/{COMPLETE}")
        except OSError:
            pass


def build(home: str, roots: Iterable[bytes]) -> None:
    """Make the index of all roots, unless there is one, ignoring errors.

    `roots` is read after the index exists, so a store that is created meanwhile adds its own root.
    """
    if os.path.exists(f"{home}/{COMPLETE}"):
        return
    index = f"{home}/{FOLDER}"
    try:
        files.make_folders(index)
        for root in roots:
            _add(index, root)
        _touch(home, COMPLETE)
    except OSError:
        pass


def _add(index: str, root: bytes) -> None:
    folder = f"{index}{os.fsdecode(root)}".rstrip("/")
    files.make_folders(folder)
    _touch(folder, MARK)


def _touch(folder: str, name: str) -> None:
    os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    files.sync_folder(folder)
