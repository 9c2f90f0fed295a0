"""The stat cache: stat and blob of every known file, stat of every known folder.

The cache is a file of columns, which loads in a third of the time of pickled rows, and an appended log, so that a turn
of three files writes three records and not sixty thousand. Both have checksums. Data that does not match its checksum
is discarded, and the files are read again. `tree` is the tree of all entries and is updated together with them, so
losing the tail of the log leaves an older, consistent state.

An entry is young if its file could be rewritten within the same clock tick without a change of its stat. A young entry
is stored with the size -1, which no stat matches, so the next scan compares the content (git smudges its index entries
in the same way). So is an entry with numbers that the columns cannot hold: tmpfs and btrfs keep time stamps of any
year, but 64 bits of nanoseconds only reach from 1677 to 2262.

A power cut can change a file without changing its stat: some file systems lose the bytes of an unsynced file but keep
its size and times. So the cache records the boot in which it was written. After a reboot every folder is listed once,
and files that changed shortly before the cache's newest entry are compared by content.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from array import array
from collections.abc import Iterable, Mapping
from typing import TypeVar

from xxhash import xxh3_64_digest

from snapstore.base import platform
from snapstore.git.objects.ids import EMPTY_TREE, Entry

T = TypeVar("T")

# size, mtime_ns, ctime_ns, inode, mode (of the file system), entry mode, blob id
FileStat = tuple[int, int, int, int, int, bytes, bytes]
# mtime_ns, ctime_ns, inode
FolderStat = tuple[int, int, int]

_MAGIC = b"snapstore stat 1 " + f"{sys.implementation.cache_tag}\n".encode()
FOLD_LOG_AT = 1 << 18
YOUNG = -1
# The range of a signed 64-bit column.
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
# The row of a folder that is not listed for new names. Its key ends in a slash, so that the same folder may also have
# an ordinary row.
UNLISTED: FolderStat = (-2, 0, 0)
_UNKNOWN: FolderStat = (-1, 0, 0)  # no folder has inode 0: it is listed at the next scan
# A kernel normally writes changed bytes to disk within a minute; this allows for ten.
_UNWRITTEN_NS = 600_000_000_000
_BOOT = "boot"  # key in the coverage: the boot in which the cache was written


class StatCache:
    """The stat cache of one root. Read and change it only under the store's lock."""

    def __init__(self, state: str) -> None:
        self._base_path = f"{state}/stat"
        self._log_path = f"{state}/stat.log"
        self._seen: tuple[object, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self.tree = EMPTY_TREE
        self.files: dict[bytes, FileStat] = {}
        self.folders: dict[bytes, FolderStat] = {}
        # What the last scan could and could not see. None: unknown, because the cache is missing or damaged.
        self.coverage: dict[str, object] | None = None
        self._whole = False
        self._generation = b""

    def load(self) -> None:
        """Load everything into memory, unless memory still matches the disk."""
        if self._whole and self._signature() == self._seen:
            return
        self._forget()
        self._whole = True
        body = self._read_base()
        if body is None:
            self._seen = ()
            return
        self._unpack(body)
        for record in self._read_log():
            self.tree, files, folders, coverage = marshal.loads(record)
            _merge(self.files, files)
            _merge(self.folders, folders)
            if coverage is not None:
                self.coverage = coverage
        self._seen = self._signature()
        if self.coverage is not None and self.coverage.get(_BOOT) != platform.boot_id():
            self._distrust()

    def _distrust(self) -> None:
        """Mark everything as stale that a power cut may have changed without a trace.

        The machine was rebooted since the cache was written, perhaps after a power cut. A folder may have new names but
        its old stat: btrfs restores a synced file, but not the times of its folder.
        """
        now = time.time_ns()
        newest = max((row[2] for row in self.files.values() if row[2] <= now), default=now)
        for path, row in self.files.items():
            if row[2] > newest - _UNWRITTEN_NS:
                self.files[path] = (YOUNG, *row[1:])
        self.folders.update({folder: _UNKNOWN for folder, row in self.folders.items() if row != UNLISTED})
        generation = self._generation
        try:
            self._write_base()
            self._seen = self._signature()
        except OSError:  # a full disk: the next load repeats this
            self._generation = generation

    def load_tree(self) -> bytes | None:
        """Load only the tree, all that a turn of named files needs; None without a cache."""
        if self._whole and self._signature() == self._seen:
            return self.tree if self.coverage is not None else None
        self._forget()  # another process has changed the cache
        if self._read_base(header_only=True) is None:
            return None
        records = self._read_log()
        if records:
            self.tree = marshal.loads(records[-1])[0]
        return self.tree

    def change(
        self,
        tree: bytes,
        files: Mapping[bytes, FileStat | None],
        folders: Mapping[bytes, FolderStat | None],
        coverage: dict[str, object] | None,
    ) -> None:
        """Record what a scan or a turn found, in memory and on disk.

        The appended log is not synced: losing it leaves an older, consistent cache and costs time.
        """
        whole = self._whole
        self.tree = tree
        if coverage is not None:
            coverage[_BOOT] = platform.boot_id()
        if whole:
            _merge(self.files, files)
            _merge(self.folders, folders)
        if coverage is not None:
            self.coverage = coverage
        try:
            self._save(whole, files, folders, coverage)
        except BaseException:
            self._forget()  # memory and disk may differ now; the disk is correct, if older
            raise
        if whole:
            self._seen = self._signature()

    def _save(
        self,
        whole: bool,
        files: Mapping[bytes, FileStat | None],
        folders: Mapping[bytes, FolderStat | None],
        coverage: dict[str, object] | None,
    ) -> None:
        if whole and (not self._generation or self._log_size() + 200 * len(files) > max(FOLD_LOG_AT, len(self.files))):
            self._write_base()
        else:
            self._append(marshal.dumps((self.tree, dict(files), dict(folders), coverage)))

    def seed(self, tree: bytes, entries: Iterable[tuple[bytes, Entry]]) -> None:
        """Start from a tree; the next scan compares each of its files by content."""
        self.tree = tree
        self.files = {path: (YOUNG, 0, 0, 0, 0, entry[0], entry[1]) for path, entry in entries}

    def replace(
        self,
        tree: bytes,
        files: dict[bytes, FileStat],
        folders: dict[bytes, FolderStat],
        coverage: dict[str, object] | None,
    ) -> None:
        """Replace the whole content of the cache."""
        self._forget()
        self._whole = True
        self.tree, self.files, self.folders, self.coverage = tree, files, folders, coverage
        self._write_base()
        self._seen = self._signature()

    def drop(self) -> None:
        """Delete the cache, on disk too: the next scan reads the whole tree."""
        for path in (self._base_path, self._log_path):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
        self._forget()

    def _signature(self) -> tuple[object, ...]:
        marks: list[object] = []
        for path in (self._base_path, self._log_path):
            try:
                st = os.stat(path)
                marks.append((st.st_ino, st.st_size, st.st_mtime_ns))
            except FileNotFoundError:
                marks.append(None)
        return tuple(marks)

    def _log_size(self) -> int:
        try:
            return os.stat(self._log_path).st_size
        except FileNotFoundError:
            return 0

    # The base file: magic, 8 random bytes (its generation), tree, length and checksum of the body; then the body.

    def _read_base(self, header_only: bool = False) -> bytes | None:
        head_size = len(_MAGIC) + 8 + 20 + 8 + 8
        try:
            with open(self._base_path, "rb") as file:
                head = file.read(head_size)
                check = file.read(8)
                body = b"" if header_only else file.read()
        except FileNotFoundError:
            return None
        at = len(_MAGIC)
        if not head.startswith(_MAGIC) or len(head) != head_size or xxh3_64_digest(head) != check:
            return None
        self._generation, self.tree = head[at : at + 8], head[at + 8 : at + 28]
        if not header_only:
            size = int.from_bytes(head[at + 28 : at + 36], "big")
            if len(body) != size or xxh3_64_digest(body) != head[at + 36 : at + 44]:
                self._forget()
                self._whole = True
                return None
        return body

    def _write_base(self) -> None:
        self._generation = os.urandom(8)
        if self.coverage is not None:
            self.coverage[_BOOT] = platform.boot_id()
        body = self._pack()
        head = _MAGIC + self._generation + self.tree + len(body).to_bytes(8, "big") + xxh3_64_digest(body)
        temporary = f"{self._base_path}.new"
        with open(temporary, "wb", opener=_private) as file:
            file.write(head)
            file.write(xxh3_64_digest(head))
            file.write(body)
            # Losing the cache costs more than time: without it, a scan cannot tell that a file is new, and an undo does
            # not remove a file that may have existed before.
            file.flush()
            os.fsync(file.fileno())
        # The folder is not synced: the former base, which may come back, matches the tree that it names.
        os.rename(temporary, self._base_path)
        try:
            os.unlink(self._log_path)
        except FileNotFoundError:
            pass

    def _pack(self) -> bytes:
        rows = list(self.files.values())
        columns: list[bytes] = []
        if rows:
            size, mtime, ctime, inode, st_mode, mode, oid = zip(*rows, strict=True)
            numbers = (("q", size), ("q", mtime), ("q", ctime), ("Q", inode), ("I", st_mode))
            try:
                columns = [array(kind, column).tobytes() for kind, column in numbers]
            except OverflowError:  # a value from some unusual file system: search for it only when there is one
                for path, row in self.files.items():
                    self.files[path] = _storable(row)
                return self._pack()
            modes = sorted(set(mode))
            places = {value: place for place, value in enumerate(modes)}
            columns += [bytes([places[value] for value in mode]), b"".join(oid)]
        else:
            modes = []
        # Paths contain no NUL, so NUL can separate them.
        return marshal.dumps((b"\0".join(self.files), columns, modes, self.folders, self.coverage))

    def _unpack(self, body: bytes) -> None:
        names, columns, modes, self.folders, self.coverage = marshal.loads(body)
        if not columns:
            return
        paths = names.split(b"\0")
        arrays = []
        for kind, column in zip("qqqQI", columns, strict=False):
            values = array(kind)
            values.frombytes(column)
            arrays.append(values)
        ids = columns[6]
        mode = [modes[place] for place in columns[5]]
        oid = [ids[at : at + 20] for at in range(0, len(ids), 20)]
        self.files = dict(zip(paths, zip(*arrays, mode, oid, strict=True), strict=True))

    # The log: per record its length, the base's generation, a checksum and the record.

    def _append(self, record: bytes) -> None:
        if not self._generation:
            return  # there is no base to append to: the next scan starts from scratch
        # Not synced: a scan compares recorded files that have no row by content, so a lost record costs only time.
        frame = len(record).to_bytes(4, "big") + self._generation + xxh3_64_digest(record) + record
        with open(self._log_path, "ab", opener=_private) as file:
            file.write(frame)

    def _read_log(self) -> list[bytes]:
        try:
            with open(self._log_path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return []
        records = []
        at = 0
        while at + 20 <= len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            record = data[at + 20 : at + 20 + size]
            if data[at + 4 : at + 12] != self._generation or len(record) != size:
                break
            if xxh3_64_digest(record) != data[at + 12 : at + 20]:
                break
            records.append(record)
            at += 20 + size
        if at != len(data):  # a torn tail must not hide records that are appended after it
            os.truncate(self._log_path, at)
        return records


def scans_in(coverage: dict[str, object] | None) -> int:
    """Return how many scans the cache has seen."""
    count = coverage.get("scan", 0) if coverage else 0
    return count if isinstance(count, int) else 0


def private_in(coverage: dict[str, object] | None) -> dict[bytes, int]:
    """Return the folders that not everyone may enter, with their permission bits."""
    found = coverage.get("private", {}) if coverage else {}
    return found if isinstance(found, dict) else {}


def first_seen_in(coverage: dict[str, object] | None) -> set[bytes]:
    """Return files that the scans found without knowing whether they existed before."""
    found = coverage.get("first_seen", ()) if coverage else ()
    return {path for path in found if isinstance(path, bytes)} if isinstance(found, tuple) else set()


def _merge(into: dict[bytes, T], changes: Mapping[bytes, T | None]) -> None:
    for path, value in changes.items():
        if value is None:
            into.pop(path, None)
        else:
            into[path] = value


def _storable(row: FileStat) -> FileStat:
    """Return the row, or one that no stat matches if the columns cannot hold it."""
    size, mtime, ctime, inode, st_mode = row[:5]
    fits = _LEAST <= mtime <= _MOST and _LEAST <= ctime <= _MOST and size <= _MOST
    if fits and 0 <= inode < 1 << 64 and 0 <= st_mode < 1 << 32:
        return row
    return (YOUNG, 0, 0, 0, st_mode & 0xFFFFFFFF, row[5], row[6])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
