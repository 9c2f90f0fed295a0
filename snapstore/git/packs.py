"""Reads packs: ours, and those hard-linked from the user's repository, deltas included.

Written here because a turn reads a handful of trees and may not pay 40 ms to import a pack library for it. Data is
read by position, never mapped, so that streaming a large blob out does not count it all as memory.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from hashlib import sha1

from snapstore.errors import Corrupt
from snapstore.git.deflate import inflate
from snapstore.git.objects import BLOB, CHUNK, KIND_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSET_DELTA, REF_DELTA = 6, 7
SMALL_INDEX = 1 << 16
_NEAR = 64  # ids: among so few a plain search is quicker than halving on
BASES_HELD = 1 << 24  # bytes of resolved deltas at hand, for each pack


class Pack:
    """One pack and its index, opened on first use."""

    __slots__ = ("_bases", "_count", "_fd", "_held", "_index", "_map", "base")

    def __init__(self, base: str) -> None:
        self.base = base  # path without suffix
        self._index: bytes | mmap.mmap | None = None
        self._count = 0
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._bases: dict[int, tuple[int, bytes]] = {}
        self._held = 0

    def find(self, oid: bytes) -> int | None:
        """Where in the pack the object lies."""
        index = self._index if self._index is not None else self._load()
        first = oid[0]
        low = struct.unpack_from(">I", index, 4 + 4 * first)[0] if first else 0
        high = struct.unpack_from(">I", index, 8 + 4 * first)[0]
        while high - low > _NEAR:
            middle = (low + high) // 2
            at = 1032 + 20 * middle
            if index[at : at + 20] <= oid:
                low = middle
            else:
                high = middle
        start, end = 1032 + 20 * low, 1032 + 20 * high
        at = index.find(oid, start, end)
        while at >= 0 and (at - start) % 20:  # the end of one id and the beginning of the next
            at = index.find(oid, at + 1, end)
        return self._offset(index, (at - 1032) // 20) if at >= 0 else None

    def ids(self) -> Iterator[bytes]:
        index = self._index if self._index is not None else self._load()
        table = index[1032 : 1032 + 20 * self._count]
        for at in range(0, len(table), 20):
            yield table[at : at + 20]

    def count(self) -> int:
        if self._index is None:
            self._load()
        return self._count

    def size(self) -> int:
        return os.fstat(self._open()).st_size

    def read(self, offset: int) -> tuple[bytes, bytes]:
        """The object at `offset`: kind and data, deltas resolved. A pack on disk holds every base itself."""
        chain: list[tuple[int, int, int]] = []
        for at, number, size, start in self._chain(offset):
            if at in self._bases:
                number, data = self._bases[at]
                break
            if number in KIND_NAMES:
                data = self._inflate(start, size)
                if chain:
                    self._hold(at, number, data)
                break
            chain.append((at, size, start))
        for at, size, start in reversed(chain):
            data = apply_delta(data, self._inflate(start, size))
            self._hold(at, number, data)
        return KIND_NAMES[number], data

    def read_small(self, offset: int, most: int) -> bytes | None:
        """The data of an object of no more than so many bytes, or None."""
        number, size, start, _, _ = self.entry(offset)
        if number not in KIND_NAMES:
            return self.read(offset)[1] if self.header(offset)[1] <= most else None
        return self._inflate(start, size) if size <= most else None

    def _hold(self, offset: int, number: int, data: bytes) -> None:
        """Keeps what deltas build on: a chain of 50 read from each of its ends would be resolved 50 times over."""
        if len(data) > BASES_HELD >> 4:
            return
        self._bases[offset] = (number, data)
        self._held += len(data)
        while self._held > BASES_HELD:
            self._held -= len(self._bases.pop(next(iter(self._bases)))[1])

    def header(self, offset: int) -> tuple[bytes, int]:
        """Kind and size of the object at `offset`, without inflating more than its first bytes."""
        size: int | None = None
        number = 0
        for _, number, stored, start in self._chain(offset):
            if size is None:
                size = stored if number in KIND_NAMES else self._result_size(start)
        assert size is not None
        return KIND_NAMES[number], size

    def holds_blob(self, offset: int, size: int) -> bool:
        """Whether a blob of this size is at `offset`. Asked for every file of a first snapshot, hence the short way
        for a blob that is no delta."""
        data = self._map
        if data is None or data[offset] & 0x70 != 0x30:
            try:
                return self.header(offset) == (BLOB, size)
            except Corrupt:
                return False
        byte = data[offset]
        found, shift = byte & 15, 4
        while byte & 0x80:
            offset += 1
            byte = data[offset]
            found |= (byte & 0x7F) << shift
            shift += 7
        return found == size

    def is_whole(self) -> bool:
        """Whether pack and index are, to the byte, what they were when they were written."""
        index = self._index if self._index is not None else self._load()
        if sha1(index[:-20], usedforsecurity=False).digest() != index[-20:]:
            return False
        fd, left = self._open(), self.size() - 20
        digest = sha1(usedforsecurity=False)
        at = 0
        while at < left:
            piece = os.pread(fd, min(CHUNK, left - at), at)
            if not piece:
                return False
            digest.update(piece)
            at += len(piece)
        return digest.digest() == os.pread(fd, 20, left) == index[-40:-20]

    def _chain(self, offset: int) -> Iterator[tuple[int, int, int, int]]:
        """The entry and the bases it is a delta of, down to a whole object: where, kind number, stored size, where the
        deflated data starts. A base that comes twice would go on for ever."""
        seen: set[int] = set()
        while True:
            if offset in seen:
                raise self._damaged(f"a delta of itself at {offset}")
            seen.add(offset)
            number, size, start, base_offset, base_id = self.entry(offset)
            if number not in KIND_NAMES and number not in (OFFSET_DELTA, REF_DELTA):
                raise self._damaged(f"entry of unknown kind {number} at {offset}")
            yield offset, number, size, start
            if number in KIND_NAMES:
                return
            if number == REF_DELTA:
                found = self.find(base_id)
                if found is None:
                    raise self._damaged(f"delta without a base at {offset}")
                base_offset = found
            offset = base_offset

    def _result_size(self, start: int) -> int:
        """The size that a delta says its result has."""
        # A deflate stream may begin with a table of some 300 bytes before its first byte of data.
        head = self._map[start : start + 1024] if self._map is not None else os.pread(self._open(), 1024, start)
        try:
            piece = zlib.decompressobj().decompress(head, 32)
            _, at = _varint(piece, 0)
            return _varint(piece, at)[0]
        except (zlib.error, IndexError):
            raise self._damaged(f"a delta that cannot be read at {start}") from None

    def stream(self, offset: int) -> Iterator[bytes] | None:
        """The object's data in pieces, or None where it is a delta and must be read whole."""
        number, size, start, _, _ = self.entry(offset)
        return self._pieces(start, size) if number in KIND_NAMES else None

    def raw(self, offset: int, end: int) -> bytes:
        """An entry as it stands, up to where the next begins."""
        return os.pread(self._open(), end - offset, offset)

    def is_delta(self, offset: int) -> bool:
        return self.entry(offset)[0] not in KIND_NAMES

    def offsets(self) -> dict[bytes, int]:
        """Where each object lies, by id."""
        index = self._index if self._index is not None else self._load()
        offsets = self._table(index, 1032 + 24 * self._count)
        if max(offsets, default=0) >> 31:
            offsets = tuple(self._offset(index, at) for at in range(self._count))
        return dict(zip(self.ids(), offsets, strict=True))

    def checksums(self) -> dict[int, int]:
        """The checksum of each entry as it was packed, by where it lies."""
        index = self._index if self._index is not None else self._load()
        return dict(zip(self.offsets().values(), self._table(index, 1032 + 20 * self._count), strict=True))

    def _table(self, index: bytes | mmap.mmap, at: int) -> tuple[int, ...]:
        return struct.unpack_from(f">{self._count}I", index, at)

    def map(self) -> None:
        """Prepares for looking at very many headers: mapped memory instead of a read for each."""
        self._map = mmap.mmap(self._open(), 0, access=mmap.ACCESS_READ)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._map is not None:
            self._map.close()
            self._map = None
        if isinstance(self._index, mmap.mmap):
            self._index.close()
        self._index = None
        self._bases, self._held = {}, 0

    def _load(self) -> bytes | mmap.mmap:
        fd = os.open(f"{self.base}.idx", os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            index: bytes | mmap.mmap
            index = os.read(fd, size + 1) if size <= SMALL_INDEX else mmap.mmap(fd, size, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)
        if size < 1072 or index[:8] != b"\xfftOc\0\0\0\2":
            raise self._damaged("its index is not a version 2 index")
        self._count = struct.unpack_from(">I", index, 1028)[0]
        if size < 1072 + 28 * self._count:
            raise self._damaged("its index is cut short")
        fan = [*struct.unpack_from(">256I", index, 8)]
        if fan != sorted(fan):
            raise self._damaged("its index is out of order")
        self._index = index
        return index

    def _offset(self, index: bytes | mmap.mmap, at: int) -> int:
        table = 1032 + 24 * self._count
        offset: int = struct.unpack_from(">I", index, table + 4 * at)[0]
        if offset >> 31:
            large = table + 4 * self._count + 8 * (offset & 0x7FFFFFFF)
            offset = struct.unpack_from(">Q", index, large)[0] if large + 48 <= len(index) else -1
            if not 0 < offset < 1 << 62:
                raise self._damaged("its index leads nowhere")
        return offset

    def _open(self) -> int:
        if self._fd < 0:
            self._fd = os.open(f"{self.base}.pack", os.O_RDONLY)
        return self._fd

    def entry(self, offset: int) -> tuple[int, int, int, int, bytes]:
        """Kind number, stored size, where the deflated data starts, and a delta's base as offset or id."""
        head = self._map[offset : offset + 64] if self._map is not None else os.pread(self._open(), 64, offset)
        try:
            byte = head[0]
            number, size, shift, at = (byte >> 4) & 7, byte & 15, 4, 1
            while byte & 0x80:
                byte = head[at]
                size |= (byte & 0x7F) << shift
                shift += 7
                at += 1
            if number == OFFSET_DELTA:
                byte = head[at]
                at += 1
                distance = byte & 0x7F
                while byte & 0x80:
                    byte = head[at]
                    at += 1
                    distance = ((distance + 1) << 7) | (byte & 0x7F)
                if not 0 < distance < offset:
                    raise self._damaged(f"delta without a base at {offset}")
                return number, size, offset + at, offset - distance, b""
            if number == REF_DELTA:
                return number, size, offset + at + 20, 0, head[at : at + 20]
        except IndexError:
            raise self._damaged(f"cut short at {offset}") from None
        return number, size, offset + at, 0, b""

    def _inflate(self, start: int, size: int) -> bytes:
        if size <= CHUNK:  # nearly always: one read, no pieces
            data = inflate(os.pread(self._open(), size + 64, start), size)
            if data is not None:
                return data
        return b"".join(self._pieces(start, size))

    def _pieces(self, start: int, size: int) -> Iterator[bytes]:
        fd = self._open()
        stream = zlib.decompressobj()
        seen = 0
        # Small entries come with one read; never more than a piece ahead, whatever the sizes claim.
        step = min(CHUNK, max(512, size + 64))
        waiting = b""
        try:
            while not stream.eof:
                waiting = stream.unconsumed_tail
                if not waiting:
                    waiting = os.pread(fd, step, start)
                    start += len(waiting)
                    if not waiting:
                        raise self._damaged("cut short")
                piece = stream.decompress(waiting, CHUNK)
                seen += len(piece)
                if seen > size:
                    raise self._damaged("an entry is larger than it says")
                if piece:
                    yield piece
        except zlib.error as error:
            raise self._damaged(str(error)) from None
        if seen != size:
            raise self._damaged("an entry is smaller than it says")

    def _damaged(self, why: str) -> Corrupt:
        name = os.path.basename(self.base)
        return Corrupt(f"pack {name} is damaged: {why}", pack=name)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def delta_sizes(delta: bytes) -> tuple[int, int]:
    """The sizes that a delta says its base and its result have."""
    try:
        base, at = _varint(delta, 0)
        return base, _varint(delta, at)[0]
    except IndexError:
        raise Corrupt("a delta is cut short") from None


def apply_delta(base: bytes, delta: bytes) -> bytes:
    made = 0
    try:
        base_size, at = _varint(delta, 0)
        size, at = _varint(delta, at)
        out: list[bytes] = []
        end = len(delta)
        while at < end:
            op = delta[at]
            at += 1
            if op & 0x80:
                offset = length = 0
                for bit in range(4):
                    if op & (1 << bit):
                        offset |= delta[at] << (8 * bit)
                        at += 1
                for bit in range(3):
                    if op & (0x10 << bit):
                        length |= delta[at] << (8 * bit)
                        at += 1
                length = length or 0x10000
                out.append(base[offset : offset + length])
                made += length
                if made > size:  # not built up further: a few bytes could ask for terabytes
                    raise Corrupt("a delta makes more than it says")
            else:
                out.append(delta[at : at + op])
                at += op
    except IndexError:
        raise Corrupt("a delta in the store is cut short") from None
    data = b"".join(out)
    if base_size != len(base) or size != len(data):
        raise Corrupt("a delta in the store does not fit its base")
    return data
