"""The changes of files in a move, and the checks before the first write."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha1
from typing import Protocol

from snapstore.base.paths import LONGEST_PATH
from snapstore.errors import Conflict, Corrupt, Unsafe
from snapstore.git.objects.ids import BLOB, EXECUTABLE, FILE, LINK, Entry, Missing, object_id
from snapstore.git.objects.store import LARGE, Objects
from snapstore.worktree.write.safe_dirs import (
    FILE_IN_THE_WAY,
    FOLDER_THERE,
    LINK_IN_THE_WAY,
    SPECIAL_THERE,
    SafeDirs,
    State,
)


class Stage(Protocol):
    """Records durably whether all temporary and replaced files of a move are on disk."""

    def is_staged(self) -> bool | None: ...

    def mark_staged(self, staged: bool) -> None: ...


class FileMove:
    """The change of one file in a move; None as a state means no file.

    `mode` holds the permission bits, if known, for a file that does not exist now.
    """

    __slots__ = ("mode", "new", "old", "path")

    def __init__(self, path: bytes, old: Entry | None, new: Entry | None, mode: int | None = None) -> None:
        self.path = path
        self.old = old
        self.new = new
        self.mode = mode

    def __repr__(self) -> str:
        return f"FileMove({self.path!r}, {self.old!r}, {self.new!r})"


class Contents:
    """Reads the new contents of files from the store."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._sizes: dict[bytes, int] = {}

    def pieces(self, oid: bytes) -> Iterable[bytes]:
        """Return the bytes of a blob, a large one in pieces; raise Corrupt if damaged."""
        if self.size(oid) > LARGE:
            return self._stream(oid)
        data = self._objects.read_kind(oid, BLOB)
        if object_id(BLOB, data) != oid:
            raise _damaged(oid)
        return (data,)

    def _stream(self, oid: bytes) -> Iterator[bytes]:
        digest = sha1(b"blob %d\0" % self.size(oid), usedforsecurity=False)
        for piece in self._objects.stream(oid):
            digest.update(piece)
            yield piece
        if digest.digest() != oid:
            raise _damaged(oid)

    def size(self, oid: bytes) -> int:
        size = self._sizes.get(oid)
        if size is None:
            kind, size = self._objects.header(oid)
            if kind != BLOB:
                raise Corrupt(f"object {oid.hex()} is a {kind.decode()}, not a blob", object=oid.hex())
            self._sizes[oid] = size
        return size

    def check(self, path: bytes, entry: Entry) -> None:
        """Refuse an entry that cannot be written or whose blob is missing."""
        mode, oid = entry
        if mode not in (FILE, EXECUTABLE, LINK):
            raise Unsafe(f"{shown(path)} has the unknown mode {os.fsdecode(mode)}", path=shown(path))
        try:
            size = self.size(oid)
        except Missing:
            raise Corrupt(
                f"the content of {shown(path)} is missing from the store (object {oid.hex()})",
                path=shown(path),
                object=oid.hex(),
            ) from None
        if mode == LINK:
            target = self._objects.read_kind(oid, BLOB) if size <= LONGEST_PATH else b""
            if not target or b"\0" in target:
                raise Unsafe(f"{shown(path)} is a link whose target is not a valid path", path=shown(path))


def check_moves(moves: Sequence[FileMove], contents: Contents, disk: SafeDirs, unsaved: Collection[bytes] = ()) -> None:
    """Refuse a move that is certain to fail, without writing anything.

    The contents of `unsaved` paths are not in the store yet.
    """
    if len({move.path for move in moves}) != len(moves):
        raise Unsafe("a move names the same path twice")
    for side in ("old", "new"):
        files = {move.path for move in moves if getattr(move, side) is not None}
        for path in sorted(files & folders_above(files)):
            raise Unsafe(f"{shown(path)} would be a file and a folder at once", path=shown(path))
    for move in moves:
        for entry in (move.old, move.new):
            if entry is not None and move.path not in unsaved:
                contents.check(move.path, entry)
    removed = {move.path for move in moves if move.old is not None and move.new is None}
    emptied = folders_above(removed)
    for move in sorted(moves, key=lambda move: move.path):
        if move.old != move.new:
            _check_place(move, disk, removed, emptied)


def _check_place(move: FileMove, disk: SafeDirs, removed: set[bytes], emptied: set[bytes]) -> None:
    path, name = move.path, shown(move.path)
    state = disk.glance(path)
    if state in (LINK_IN_THE_WAY, FILE_IN_THE_WAY) and not any(above in removed for above in way_up(path)):
        raise unexpected_state(path, state)
    if state == SPECIAL_THERE:
        raise Conflict(f"{name} is {state} now", path=name)
    if state == FOLDER_THERE and move.new is not None:
        others = others_in(path, disk, removed, emptied)
        if others:
            raise Conflict(
                f"{name} is a folder that holds other files",
                "Nothing was written. Move them away, then run this again.",
                path=name,
                paths=others,
            )


def others_in(folder: bytes, disk: SafeDirs, removed: set[bytes], emptied: set[bytes]) -> list[str]:
    """Return what would remain in a folder after the `removed` files are gone."""
    found: list[str] = []
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        for name in os.listdir(disk.enter(folder)):
            path = folder + b"/" + os.fsencode(name)
            if path in emptied and disk.glance(path) == FOLDER_THERE:
                waiting.append(path)
            elif path not in removed:
                found.append(shown(path))
    return sorted(found)


def unexpected_state(path: bytes, state: State) -> Conflict | Unsafe:
    """Return the refusal for a path that is not in the expected state."""
    name = shown(path)
    if state == LINK_IN_THE_WAY:
        return Unsafe(f"{name} is reached through a link", "Nothing was written. Remove the link first.", path=name)
    found = state if isinstance(state, str) else "nothing" if state is None else "other content"
    return Conflict(f"{name} changed during the move: there is {found} now", path=name)


def disappeared(error: OSError) -> Conflict:
    """Return the refusal for a folder or file that disappeared during the move."""
    where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
    return Conflict(f"a file or folder disappeared during the move{where}", "Nothing was written. Run this again.")


def _damaged(oid: bytes) -> Corrupt:
    return Corrupt(f"object {oid.hex()} does not match its id", object=oid.hex())


def above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def way_up(path: bytes) -> Iterator[bytes]:
    """Yield the folders above a path, without the root."""
    while path := above(path):
        yield path


def folders_above(paths: Iterable[bytes]) -> set[bytes]:
    """Return all folders above any of the paths, including the root (empty)."""
    found = {b""}
    for path in paths:
        while (path := above(path)) not in found:
            found.add(path)
    return found


def shown(path: bytes) -> str:
    return os.fsdecode(path)
