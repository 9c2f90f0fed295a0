"""Support for file systems on which README and readme are one file, as on macOS.

On such a file system a name that no folder lists is found all the same, in any spelling. After a rename that changes
only case, the old name would therefore seem to exist still, and removing one of the two names would remove both. So
each name that is found is looked up again with swapped case. Only if both lookups seem to reach one file is the folder
listed to learn the spelling. Inodes alone do not tell that: exFAT through FUSE gives every spelling one of its own.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise


def swapcase_stat(name: bytes, folder: int | bytes) -> os.stat_result | None:
    """Return the stat of the name with swapped case, or None.

    The folder is a descriptor, or a path with a trailing slash.
    """
    other = swapped(name)
    if not other:
        return None
    try:
        if isinstance(folder, int):
            return os.stat(other, dir_fd=folder, follow_symlinks=False)
        return os.lstat(folder + other)
    except OSError:
        return None


def has_twin(name: bytes, st: os.stat_result, folder: int | bytes) -> bool:
    """Return whether a file found by a name seems to be found with swapped case too."""
    twin = swapcase_stat(name, folder)
    return twin is not None and may_be_one(twin, st)


def may_be_one(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether two lookups may have reached one file."""
    return os.path.samestat(a, b) or _all_but_inode(a) == _all_but_inode(b)


def _all_but_inode(st: os.stat_result) -> tuple[int, ...]:
    return st.st_dev, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns


def spelling_on_disk(top: bytes, path: bytes) -> bytes:
    """Return a path below a folder in its spelling on disk.

    Parts that do not exist keep the given spelling.
    """
    at = top.rstrip(b"/") + b"/"
    spelled: list[bytes] = []
    for name in path.split(b"/"):
        try:
            if has_twin(name, os.lstat(at + name), at):
                name = _listed_name(at, name)
        except OSError:
            pass
        spelled.append(name)
        at += name + b"/"
    return b"/".join(spelled)


def not_listed(paths: Iterable[bytes], folders: Mapping[bytes, Collection[bytes]]) -> set[bytes]:
    """Return the paths, and folders above them, that no parent folder lists.

    `folders` maps folders to their listed names; other folders are not checked.
    """
    listed = {folder: set(names) for folder, names in folders.items()}
    found: set[bytes] = set()
    looked_at: set[bytes] = set()
    for path in paths:
        while path and path not in looked_at:
            looked_at.add(path)
            folder, _, name = path.rpartition(b"/")
            if folder in listed and name not in listed[folder]:
                found.add(path)
            path = folder
    return found


def folded(path: bytes) -> str:
    """Return a key that is equal for paths that a case-folding file system merges."""
    return unicodedata.normalize("NFD", os.fsdecode(path).casefold())


def clashing(paths: Iterable[bytes]) -> set[str]:
    """Return the keys that two or more of the paths share."""
    keys = sorted(map(folded, paths))
    return {key for key, after in pairwise(keys) if key == after}


def _listed_name(folder: bytes, name: bytes) -> bytes:
    names = os.listdir(folder)
    if name in names:
        return name
    return next((other for other in names if folded(other) == folded(name)), name)


def swapped(name: bytes) -> bytes:
    """Return the name with swapped case, or nothing if it has no case."""
    text = os.fsdecode(name)
    swapped = text.swapcase()
    return os.fsencode(swapped) if swapped != text else b""
