"""File systems on which README and readme are one file, as macOS has them.

There a name that no folder lists is found all the same, however the file is spelled. Taken at its word, the former name
of a file that was renamed to another case only would still be there, and removing one of the two would remove both. So
what is found is asked for once more with its cases swapped: only where that leads to the same file does it take a
listing to know the spelling.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise


def twin_of(name: bytes, folder: int | bytes) -> os.stat_result | None:
    """What the name leads to in other cases, if anything. The folder is a descriptor, or a path with its last slash."""
    other = _swapped(name)
    if not other:
        return None
    try:
        if isinstance(folder, int):
            return os.stat(other, dir_fd=folder, follow_symlinks=False)
        return os.lstat(folder + other)
    except OSError:
        return None


def has_twin(name: bytes, st: os.stat_result, folder: int | bytes) -> bool:
    """Whether a file that was found by a name is found by the same name in other cases too."""
    twin = twin_of(name, folder)
    return twin is not None and os.path.samestat(twin, st)


def as_spelled(top: bytes, path: bytes) -> bytes:
    """A path below a folder in the spelling that its parts have on disk. What is not there stays as it was said."""
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
    """Those of the paths, and of the folders above them, whose own folder is among these and does not list them."""
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
    """What two paths have in common that such a file system takes for one."""
    return unicodedata.normalize("NFD", os.fsdecode(path).casefold())


def clashing(paths: Iterable[bytes]) -> set[str]:
    """What is common to two or more of the paths."""
    keys = sorted(map(folded, paths))
    return {key for key, after in pairwise(keys) if key == after}


def _listed_name(folder: bytes, name: bytes) -> bytes:
    names = os.listdir(folder)
    if name in names:
        return name
    return next((other for other in names if folded(other) == folded(name)), name)


def _swapped(name: bytes) -> bytes:
    """The name with its cases swapped; nothing where it has none."""
    text = os.fsdecode(name)
    swapped = text.swapcase()
    return os.fsencode(swapped) if swapped != text else b""
