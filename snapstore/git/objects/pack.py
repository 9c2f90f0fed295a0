"""Packs as read by dulwich, with additions that a store needs.

dulwich's `Pack` lacks the following, so this module adds it:
- Large blobs are read in chunks, by position, through a descriptor of their own. dulwich holds a whole blob in memory,
  and closes a vanished pack while a reader uses it (test_record_large.py, test_vanishing.py).
- Kind and size are read without inflating the object. Entries can be copied as stored.
- A truncated pack still gives the objects before the cut. Damage raises `Corrupt`, never another exception
  (test_git_packs.py: test_damage_is_noticed_or_harmless_and_never_another_exception).
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from hashlib import sha1
from io import BytesIO

from dulwich import pack as dulwich_pack
from dulwich.object_format import SHA1
from dulwich.pack import OFS_DELTA, REF_DELTA, PackData, PackFileDisappeared

from snapstore.errors import Corrupt
from snapstore.git.objects.ids import BLOB, CHUNK, KIND_NAMES
from snapstore.git.objects.pack_index import DAMAGE, Index

OFFSET_DELTA = OFS_DELTA
__all__ = ["OFFSET_DELTA", "REF_DELTA", "Extents", "Pack", "PackRemoved", "apply_delta", "delta_sizes"]

_SMALL = 1 << 18  # bytes; a smaller pack is read instead of mapped, so that no descriptor stays open
_BASES_HELD = 1 << 24  # bytes of resolved deltas that are cached per pack


class PackRemoved(PackFileDisappeared, FileNotFoundError):
    """A pack was removed after its folder was listed: another process repacked."""

    def __str__(self) -> str:
        return "a pack was removed while it was read: another process is packing the store"


class _Data(PackData):
    """The data of a pack, closed without a warning when dropped.

    A pack may vanish while it is in use.
    """

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            small = BytesIO(file.read()) if os.fstat(file.fileno()).st_size <= _SMALL else None
        super().__init__(path, SHA1, file=small, delta_base_cache_limit=_BASES_HELD)

    def close(self) -> None:
        try:
            super().close()
        except BufferError:  # an interrupted read still holds a view: the mapping is freed along with that view
            super().close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


class Pack(dulwich_pack.Pack):
    """A pack and its index, opened on first use.

    Ids are raw bytes. An offset is the position of an object in the pack.
    """

    _idx: Index | None

    def __init__(self, base: str) -> None:
        super().__init__(base, object_format=SHA1)
        self.base = base  # path without suffix
        # The lambdas must not refer to `self`: a pack is closed as soon as nobody refers to it.
        self._idx_load = lambda: Index(f"{base}.idx")
        self._data_load = lambda: _Data(f"{base}.pack")

    def __del__(self) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pack) and self.base == other.base

    def __hash__(self) -> int:
        return hash(self.base)

    def check_length_and_checksum(self) -> None:
        """Skip dulwich's check: it would also refuse the objects before a cut."""

    @property
    def table(self) -> Index:
        """Return the index."""
        if self._idx is not None:
            return self._idx
        try:
            found = self.index
        except PackFileDisappeared:
            raise PackRemoved(self) from None
        except DAMAGE as error:
            raise self._damaged(error) from None
        assert isinstance(found, Index)
        return found

    def _contents(self) -> bytes | mmap.mmap:
        try:
            return self.data._buffer()
        except PackFileDisappeared:
            raise PackRemoved(self) from None
        except DAMAGE as error:
            raise self._damaged(error) from None

    def find(self, oid: bytes) -> int | None:
        """Return the offset of an object in the pack, or None."""
        try:
            return self.table.position(oid)
        except KeyError:
            return None
        except (AssertionError, struct.error) as error:
            raise self._damaged(error) from None

    def __contains__(self, sha1: bytes) -> bool:
        return self.find(sha1 if len(sha1) == 20 else bytes.fromhex(sha1.decode())) is not None

    def ids(self) -> Iterator[bytes]:
        names = self.table.names()
        for at in range(0, len(names), 20):
            yield names[at : at + 20]

    def count(self) -> int:
        return len(self.table)

    def size(self) -> int:
        return len(self._contents())

    def get_raw(self, sha1: bytes) -> tuple[int, bytes]:
        """Return kind number and data by id, for dulwich's object store."""
        offset = self.find(sha1 if len(sha1) == 20 else bytes.fromhex(sha1.decode()))
        if offset is None:
            raise KeyError(sha1)
        return self._resolved(offset)

    def read(self, offset: int) -> tuple[bytes, bytes]:
        """Return kind and data of the object at `offset`, with deltas resolved.

        A pack on disk contains every delta base itself.
        """
        number, data = self._resolved(offset)
        return KIND_NAMES[number], data

    def _resolved(self, offset: int) -> tuple[int, bytes]:
        try:
            number, found = self.data.get_object_at(offset)
            number, chunks = self.resolve_object(offset, number, found)
            if number not in KIND_NAMES:
                raise AssertionError(f"entry of unknown kind {number} at {offset}")
            return number, b"".join(chunks)  # type: ignore[arg-type]
        except PackFileDisappeared:
            raise PackRemoved(self) from None
        except DAMAGE as error:
            raise self._damaged(error) from None

    def header(self, offset: int) -> tuple[bytes, int]:
        """Return kind and size of the object at `offset`, inflating only a few bytes."""
        number, stored, start, base_offset, base_id = self.entry(offset)
        size = stored if number in KIND_NAMES else self._result_size(start)
        seen = {offset}
        while number not in KIND_NAMES:
            if number == REF_DELTA:
                found = self.find(base_id)
                if found is None:
                    raise self._damaged(f"delta without a base at {offset}")
                base_offset = found
            elif number != OFFSET_DELTA:
                raise self._damaged(f"entry of unknown kind {number} at {offset}")
            if base_offset in seen:
                raise self._damaged(f"a delta of itself at {offset}")
            seen.add(base_offset)
            number, _, _, base_offset, base_id = self.entry(base_offset)
        return KIND_NAMES[number], size

    def holds_blob(self, offset: int, size: int) -> bool:
        """Return whether a blob of this size is at `offset`.

        Called for every file of a first snapshot, so speed matters.
        """
        try:
            number, found, _, _, _ = self.entry(offset)
            return found == size if number == 3 else self.header(offset) == (BLOB, size)
        except Corrupt:
            return False

    def is_whole(self) -> bool:
        """Return whether the checksums of pack and index are correct."""
        index = self.table
        if index.calculate_checksum() != index.get_stored_checksum():
            return False
        digest = sha1(usedforsecurity=False)
        with open(f"{self.base}.pack", "rb") as file:  # not the mapping: every page would count as memory in use
            left = os.fstat(file.fileno()).st_size - 20
            while left > 0 and (piece := file.read(min(CHUNK, left))):
                digest.update(piece)
                left -= len(piece)
            return digest.digest() == file.read(20) == index.get_pack_checksum()

    def stream(self, offset: int) -> Iterator[bytes] | None:
        """Return the object's data in chunks, or None for a delta.

        A delta can only be read whole.
        """
        number, size, start, _, _ = self.entry(offset)
        if number not in KIND_NAMES:
            return None
        try:
            return self._pieces(os.open(f"{self.base}.pack", os.O_RDONLY | os.O_CLOEXEC), start, size)
        except FileNotFoundError:
            raise PackRemoved(self) from None

    def raw(self, offset: int, end: int) -> bytes:
        """Return an entry as stored, up to the start of the next one."""
        return self._contents()[offset:end]

    def is_delta(self, offset: int) -> bool:
        return self.entry(offset)[0] not in KIND_NAMES

    def has_deltas(self) -> bool:
        """Return whether the pack has deltas, so that entries cannot be copied singly.

        A delta names its base by distance.
        """
        return any(self.is_delta(offset) for offset in self.offsets().values())

    def offsets(self) -> dict[bytes, int]:
        """Return the offset of each object by id."""
        try:
            return dict(zip(self.ids(), self.table.offsets(), strict=True))
        except (AssertionError, struct.error) as error:
            raise self._damaged(error) from None

    def checksums(self) -> dict[int, int]:
        """Return the checksum of each packed entry by offset."""
        return dict(zip(self.offsets().values(), self.table.checksums(), strict=True))

    def entry(self, offset: int) -> tuple[int, int, int, int, bytes]:
        """Return kind number, stored size, data start, and a delta's base.

        The base is given as an offset or as an id.
        """
        head = self._contents()[offset : offset + 64]
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

    def _result_size(self, start: int) -> int:
        """Return the size of a delta's result, as stated in the delta."""
        try:
            # A deflate stream may begin with a table of about 300 bytes before its first byte of data.
            return delta_sizes(zlib.decompressobj().decompress(self._contents()[start : start + 1024], 32))[1]
        except (zlib.error, Corrupt):
            raise self._damaged(f"a delta that cannot be read at {start}") from None

    def _pieces(self, fd: int, start: int, size: int) -> Iterator[bytes]:
        stream = zlib.decompressobj()
        seen = 0
        # A small entry takes one read. Never read more than one chunk ahead, whatever size the entry claims.
        step = min(CHUNK, max(512, size + 64))
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
            raise self._damaged(error) from None
        finally:
            os.close(fd)
        if seen != size:
            raise self._damaged("an entry is smaller than it says")

    def _damaged(self, why: object) -> Corrupt:
        name = os.path.basename(self.base)
        return Corrupt(f"pack {name} is damaged: {str(why) or type(why).__name__}", pack=name)


class Extents:
    """The end of each entry in a pack, which is the start of the next entry."""

    def __init__(self, pack: Pack) -> None:
        self._offsets = sorted(pack.offsets().values())
        self._last = pack.size() - 20  # where the checksum begins

    def end(self, offset: int) -> int:
        at = bisect_right(self._offsets, offset)
        return self._offsets[at] if at < len(self._offsets) else self._last


def delta_sizes(delta: bytes) -> tuple[int, int]:
    """Return the sizes of base and result, as stated in a delta."""
    found = []
    at = 0
    try:
        for _ in range(2):
            value = shift = 0
            while True:
                byte = delta[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if not byte & 0x80:
                    break
            found.append(value)
    except IndexError:
        raise Corrupt("a delta is cut short") from None
    return found[0], found[1]


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """Return the result of applying a delta to its base."""
    try:
        return b"".join(dulwich_pack.apply_delta(base, delta))
    except DAMAGE as error:
        raise Corrupt(f"a delta in the store does not fit its base: {error}") from None
