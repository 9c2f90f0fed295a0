"""Reads files into blobs: exact bytes, bounded memory, no torn reads."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from hashlib import sha1
from typing import Protocol, TypeVar

from snapstore.base.platform import READ_FLAGS, is_young
from snapstore.errors import Failed
from snapstore.git.objects.ids import BLOB, CHUNK, LINK, Entry, file_mode, object_id
from snapstore.git.objects.pack_writer import PackWriter, SourceChanged
from snapstore.git.objects.store import LARGE

T = TypeVar("T")


class Held(Protocol):
    """Knows which blobs need not be stored again (timeline/capture/stored_objects.py)."""

    def has(self, path: bytes, oid: bytes, *, large: bool = False) -> bool: ...


TRIES = 3
# A file's stat changes when a write begins, so it cannot reveal a write that began before the read and is still going
# on. A file that has just changed is therefore read twice, with a pause in between if it is larger than a page. (The
# file may grow meanwhile, as a log does.) A file too large for memory must stay unchanged during a pause before the
# read.
_PAGE = 4096
_PAUSE = 0.02
_FILE_ERRORS = (errno.EIO, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL)

# Opening a link, reading a file as a link, opening a socket.
_OTHER_KIND = (errno.ELOOP, errno.EINVAL, errno.ENXIO)

SPECIAL = "not a file, link or folder"
UNREADABLE = "cannot be read"
CHANGING = "kept changing while it was read"
TOO_LARGE = "larger than max_file_size"
BAD_NAME = "a name that git cannot hold safely"
REMOVED = "removed; "  # prefix for a removed file that was left out; the reason follows


class Streamed(bytes):
    """The id of a blob that was written to the store while it was read."""


class LeftOut(Exception):
    """The file cannot be captured.

    The arguments are the reason and, for a file that may change, a mark of its state.
    """


class Blobs:
    """Stores the files of one root as blobs.

    The blobs become visible when the writer is finished. Without `held` every file is stored.
    """

    def __init__(self, root: bytes, writer: PackWriter, held: Held | None = None) -> None:
        self._prefix = root.rstrip(b"/") + b"/"
        self._held = held
        self._writer = writer

    def take(self, path: bytes, known: bytes | None = None, limit: int = 0) -> tuple[Entry, os.stat_result] | None:
        """Store a file, and return its entry and the stat under which it was read.

        Return None if there is no file at the path. A file larger than `limit` (if set) is not read. `known` is the
        expected blob, which is reachable from a ref and so is not looked up again.
        """
        for _ in range(TRIES):
            try:
                read = self._read(path, known, limit)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except SourceChanged:
                continue
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EPERM):
                    raise LeftOut(UNREADABLE) from None
                if error.errno in _FILE_ERRORS:
                    raise LeftOut(f"{UNREADABLE}: {os.strerror(error.errno)}") from None
                raise
            if read is None:
                return None
            mode, content, st = read
            # Outside the `try`: an error of the store must not just leave the file out.
            oid = content if isinstance(content, Streamed) else self._store(path, content, known)
            return (mode, bytes(oid)), st
        raise LeftOut(CHANGING)

    def _read(self, path: bytes, known: bytes | None, limit: int) -> tuple[bytes, bytes, os.stat_result] | None:
        """Return mode, content and stat; None for a folder.

        For a large file the content is the id of the blob that the file was streamed into.
        """
        full = self._prefix + path
        st = os.lstat(full)
        if stat.S_ISLNK(st.st_mode):
            target = _if_same_kind(os.readlink, full, st)
            if not _same(st, os.lstat(full)):
                raise SourceChanged
            return LINK, target, st
        if stat.S_ISDIR(st.st_mode):
            return None
        if not stat.S_ISREG(st.st_mode):
            raise LeftOut(SPECIAL)
        if limit and st.st_size > limit:
            raise LeftOut(TOO_LARGE, (st.st_size, st.st_mtime_ns, st.st_ino))
        fd = _if_same_kind(lambda path: os.open(path, READ_FLAGS), full, st)
        try:
            st = os.fstat(fd)
            if not stat.S_ISREG(st.st_mode):
                raise SourceChanged  # replaced since the lstat
            fresh = is_young(st, time.time_ns())
            if st.st_size > LARGE:
                if fresh:
                    time.sleep(_PAUSE)
                    if not _same(st, os.fstat(fd)):
                        raise SourceChanged
                content: bytes = Streamed(self._stream(path, fd, st.st_size, known))
            else:
                content = _read_all(fd, st.st_size)
                if len(content) != st.st_size:
                    raise SourceChanged
                if fresh:
                    if st.st_size > _PAGE:
                        time.sleep(_PAUSE)
                    if os.pread(fd, st.st_size, 0) != content:
                        raise SourceChanged
                    return file_mode(st.st_mode), content, st
            if not _same(st, os.fstat(fd)):
                raise SourceChanged
            return file_mode(st.st_mode), content, st
        finally:
            os.close(fd)

    def _store(self, path: bytes, data: bytes, known: bytes | None) -> bytes:
        oid = object_id(BLOB, data)
        if oid != known and oid not in self._writer and not (self._held is not None and self._held.has(path, oid)):
            self._writer.add(BLOB, data, oid)
        return oid

    def _stream(self, path: bytes, fd: int, size: int, known: bytes | None) -> bytes:
        if known is not None:  # perhaps only the stat changed: hashing costs less than compressing
            digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
            while piece := os.read(fd, CHUNK):
                digest.update(piece)
            if digest.digest() == known:
                return known
            os.lseek(fd, 0, os.SEEK_SET)
        return self._writer.add_stream(lambda count: os.read(fd, count), size, lambda oid: self._is_held(path, oid))

    def _is_held(self, path: bytes, oid: bytes) -> bool:
        try:
            return self._held is not None and self._held.has(path, oid, large=True)
        except OSError as error:
            raise Failed(f"the store cannot be read: {error.strerror}") from error


def _if_same_kind(work: Callable[[bytes], T], full: bytes, st: os.stat_result) -> T:
    """Call `work`; raise SourceChanged if it fails because the file's kind changed.

    A file may become a link, or a link a file, after the stat. The caller then tries again.
    """
    try:
        return work(full)
    except OSError as error:
        if error.errno in _OTHER_KIND and stat.S_IFMT(os.lstat(full).st_mode) != stat.S_IFMT(st.st_mode):
            raise SourceChanged from None
        raise


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    pieces = [data]
    seen = len(data)
    while data and seen <= size:  # a short read, or the file grew
        data = os.read(fd, size + 1 - seen)
        pieces.append(data)
        seen += len(data)
    return b"".join(pieces)


def _same(a: os.stat_result, b: os.stat_result) -> bool:
    return (a.st_size, a.st_mtime_ns, a.st_ctime_ns, a.st_ino, a.st_mode) == (
        b.st_size,
        b.st_mtime_ns,
        b.st_ctime_ns,
        b.st_ino,
        b.st_mode,
    )
