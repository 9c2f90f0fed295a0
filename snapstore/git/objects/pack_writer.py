"""Write new objects as one pack: a dozen for a turn, 60,000 for a first snapshot.

dulwich holds each blob in memory, and either writes one file per object or reads a new pack back at once. dulwich syncs
neither (test_record_large.py, test_faults_disk.py). The pack is written to the folder of dulwich's object store
(`objects/store`). One pack costs three fsyncs whatever its size; loose objects cost one fsync each. A large file is
streamed in chunks, so memory stays bounded. Readers see nothing until `finish` has put the index in place.

Anybody may run `git repack` or `git gc` on the repository at the same time. Three rules follow from what those commands
do:

- A pack with `.keep` counts for git as soon as its index is in place: git omits the objects of a kept pack from its own
  new pack, and deletes the other copies. So a pack that was visible with `.keep` is never deleted when its writer gives
  up. A small pack is marked as given up, and the next pack takes over its objects: so a disk that is full does not get
  fuller while a turn is retried again and again. A large pack loses its `.keep` and becomes ordinary garbage, which a
  later gc collects.
- `.keep` must exist before the `.pack` does. git first lists the packs without `.keep`, later packs every object that
  is not in a kept pack, and finally deletes the listed packs, whether or not they have `.keep` by then. A pack that
  gets its `.keep` in between is lost.
- For the same reason every visible pack gets a name that was never used before: git may have listed the name of an
  older pack with the same bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from hashlib import sha1
from zlib import crc32

from dulwich.object_format import SHA1
from dulwich.pack import OFS_DELTA, pack_object_header, write_pack_index_v2

from snapstore.base.files import close_quietly, remove_quietly, sync_folder, write_all
from snapstore.base.locks import process_started
from snapstore.errors import Failed
from snapstore.git.objects.deflate import compress, compressor
from snapstore.git.objects.ids import BLOB, CHUNK, KIND_NUMBERS, object_id
from snapstore.git.objects.pack import Pack

# Not git's own prefix `tmp_`: `git gc --prune=now` removes such files while their writer is running.
TEMPORARY = "snapstore_"
KEPT_BY = b"snapstore "  # begins the content of snapstore's `.keep` files; the process id follows
GIVEN_UP = KEPT_BY + b"given up\n"  # the content if the change that the pack was written for failed
FLUSH_AT = 4 * CHUNK


class SourceChanged(Exception):
    """The file did not have the size that its stat reported."""


class PackWriter:
    """Collects objects into one pack; `finish` makes it visible, `abandon` removes it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._position = 12
        self._entries: dict[bytes, tuple[int, int]] = {}
        self._fd = -1
        self._made: list[str] = []  # files to remove if writing fails
        self._base = ""  # the name of the kept pack, set just before the pack becomes visible

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def ids(self) -> Iterable[bytes]:
        return self._entries.keys()

    def add(self, kind: bytes, data: bytes, oid: bytes | None = None) -> bytes:
        """Store an object by its data.

        The data may come from other programs and be malformed, and dulwich would refuse malformed data.
        """
        if oid is None:
            oid = object_id(kind, data)
        if oid not in self._entries:
            body = entry_header(KIND_NUMBERS[kind], len(data)) + compress(data)
            self._entries[oid] = (self._position, crc32(body))
            self._append(body)
        return oid

    def add_packed(self, oid: bytes, body: bytes) -> None:
        """Copy an entry from another pack, header and deflated data together."""
        if oid not in self._entries:
            self._entries[oid] = (self._position, crc32(body))
            self._append(body)

    def add_pack(self, pack: Pack) -> None:
        """Copy all entries of a pack that has no deltas.

        A delta names its base by distance, so it cannot be copied.
        """
        offsets = sorted((offset, oid) for oid, offset in pack.offsets().items())
        ends = [offset for offset, _ in offsets[1:]] + [pack.size() - 20]
        for (offset, oid), end in zip(offsets, ends, strict=True):
            self.add_packed(oid, pack.raw(offset, end))

    def add_delta(self, oid: bytes, base: bytes, delta: bytes) -> None:
        """Store an object as a delta of another object that is already in this pack."""
        distance = self._position - self._entries[base][0]
        self.add_packed(oid, entry_header(OFS_DELTA, len(delta), distance) + compress(delta))

    def add_stream(self, read: Callable[[int], bytes], size: int, known: Callable[[bytes], bool]) -> bytes:
        """Store a large blob in chunks, and drop the blob again if it is `known`."""
        self._flush()
        start = self._position
        header = entry_header(KIND_NUMBERS[BLOB], size)
        digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
        crc = crc32(header)
        self._append(header)
        squeeze = compressor()
        seen = 0
        try:
            while piece := read(CHUNK):
                seen += len(piece)
                if seen > size:
                    break
                digest.update(piece)
                packed = squeeze.compress(piece)
                crc = crc32(packed, crc)
                self._append(packed)
            if seen != size:
                raise SourceChanged
            packed = squeeze.flush()
            crc = crc32(packed, crc)
            self._append(packed)
        except Failed:
            raise
        except BaseException:
            self._truncate(start)
            raise
        oid = digest.digest()
        if oid in self._entries or known(oid):
            self._truncate(start)
        else:
            self._entries[oid] = (start, crc)
        return oid

    def finish(self, keep: bool = False) -> str | None:
        """Make the pack durable and visible, and return its path without suffix.

        Returns None if the pack is empty. With `keep`, a `.keep` file exists from before the pack is visible until the
        caller removes the file: a `git gc` that anyone runs after the objects are written, but before refs point to
        them, must not delete them.
        """
        if not self._entries:
            self.abandon()
            return None
        try:
            header = b"PACK" + struct.pack(">II", 2, len(self._entries))
            if self._fd < 0:
                self._open()
                body = header + b"".join(self._pending)
                checksum = sha1(body, usedforsecurity=False).digest()
                write_all(self._fd, body + checksum)
            else:
                self._flush()
                os.pwrite(self._fd, header, 0)
                checksum = self._checksum_of_file()
                write_all(self._fd, checksum)
            os.fsync(self._fd)
            os.fchmod(self._fd, 0o444)
            # First the attribute: after an error or Ctrl-C here, `abandon` must not close the number again.
            fd, self._fd = self._fd, -1
            os.close(fd)
            base = new_name(self._folder) if keep else f"{self._folder}/pack-{checksum.hex()}"
            self._made.append(index := self._temporary_name("index"))
            with open(index, "xb", CHUNK, opener=lambda path, flags: os.open(path, flags, 0o444)) as file:
                rows = sorted((oid, offset, crc) for oid, (offset, crc) in self._entries.items())
                write_pack_index_v2(file, rows, checksum)
                file.flush()
                os.fsync(file.fileno())
            if keep:
                self._base = base
                self._made.append(f"{base}.keep")
                write_keep(base)
            self._made += [f"{base}.idx", f"{base}.pack"]
            os.rename(self._made[0], f"{base}.pack")
            os.rename(index, f"{base}.idx")
            sync_folder(self._folder)
            self._made.clear()
        except OSError as error:
            self.abandon()
            raise cannot_write(error) from error
        except BaseException:
            self.abandon()
            raise
        return base

    def abandon(self) -> None:
        """Remove every trace of the pack. Errors are ignored, to not hide the cause."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            close_quietly(fd)
        self._discard()
        self._entries.clear()
        self._pending.clear()

    def _discard(self) -> None:
        """Remove the files written so far.

        Without an index no reader knows of the pack, so nobody needs these files. With the index in place, other
        processes may already rely on the pack, so the pack stays, without `.keep`, for a later gc.
        """
        visible = bool(self._base) and os.path.exists(f"{self._base}.idx")
        for path in self._made:
            if visible and path in (f"{self._base}.idx", f"{self._base}.pack"):
                continue
            remove_quietly(path)
        self._made.clear()

    def _append(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_size += len(data)
        self._position += len(data)
        if self._pending_size > FLUSH_AT:
            self._flush()

    def _flush(self) -> None:
        try:
            if self._fd < 0:
                self._open()
                self._pending.insert(0, bytes(12))  # space for the header, which needs the final count
            write_all(self._fd, b"".join(self._pending))
        except OSError as error:
            raise cannot_write(error) from error
        self._pending.clear()
        self._pending_size = 0

    def _truncate(self, position: int) -> None:
        self._flush()
        os.ftruncate(self._fd, position)
        os.lseek(self._fd, position, os.SEEK_SET)
        self._position = position

    def _open(self) -> None:
        self._made.append(path := self._temporary_name("part"))
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def _temporary_name(self, suffix: str) -> str:
        return f"{self._folder}/{TEMPORARY}{os.getpid()}_{os.urandom(6).hex()}.{suffix}"

    def _checksum_of_file(self) -> bytes:
        digest = sha1(usedforsecurity=False)
        position = 0
        while piece := os.pread(self._fd, CHUNK, position):
            digest.update(piece)
            position += len(piece)
        return digest.digest()


class HashOnlyWriter(PackWriter):
    """Computes object ids and stores nothing, to examine the disk."""

    def __init__(self) -> None:
        super().__init__("")

    def add(self, kind: bytes, data: bytes, oid: bytes | None = None) -> bytes:
        return object_id(kind, data) if oid is None else oid

    def add_stream(self, read: Callable[[int], bytes], size: int, known: Callable[[bytes], bool]) -> bytes:
        digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
        seen = 0
        while piece := read(CHUNK):
            digest.update(piece)
            seen += len(piece)
        if seen != size:
            raise SourceChanged
        return digest.digest()


def new_name(folder: str) -> str:
    """Return the path, without suffix, of a pack that no git process has seen yet."""
    return f"{folder}/pack-{os.urandom(20).hex()}"


def write_keep(base: str, text: bytes | None = None) -> None:
    """Create the `.keep` file of a pack that is not visible yet.

    The file appears with its full content: an empty file would be mistaken for one of a dead process. The file is not
    synced: after a power cut no git process is running, and the change that the pack is for has either happened or is
    made again.
    """
    temporary = f"{os.path.dirname(base)}/{TEMPORARY}{os.getpid()}_{os.urandom(6).hex()}.keep"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, _by_this_process() if text is None else text)
        finally:
            os.close(fd)
        os.rename(temporary, f"{base}.keep")
    except BaseException:
        remove_quietly(temporary)
        raise


def _by_this_process() -> bytes:
    """Return the content of a `.keep` file that names this process.

    The start time is included, since another process soon has the same number after a reboot.
    """
    return KEPT_BY + f"{os.getpid()} {process_started(os.getpid()) or ''}".rstrip().encode() + b"\n"


def cannot_write(error: OSError) -> Failed:
    """Return the error for a store that cannot be written.

    The error is distinct from an OSError of a file being recorded, which only leaves out that one file.
    """
    return Failed(f"the store cannot be written: {error.strerror}")


def entry_header(number: int, size: int, base: int | bytes | None = None) -> bytes:
    """Return the header of a packed entry; `base` is a delta's base, by distance or id."""
    return bytes(pack_object_header(number, base, size, SHA1))
