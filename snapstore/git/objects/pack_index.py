"""A version 2 pack index as read by dulwich, but validated on opening.

dulwich's `PackIndex2` trusts its input: a damaged index makes dulwich read outside the tables or return an invalid
offset (test_git_packs.py).
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib

from dulwich.errors import ApplyDeltaError, ChecksumMismatch
from dulwich.object_format import SHA1
from dulwich.pack import PackIndex2, UnresolvedDeltas, bisect_find_sha

_SMALL = 1 << 16  # bytes; a smaller index is read instead of mapped
_FEW = 64  # ids
_TABLES = 1032  # where the ids begin in an index

# The exceptions that dulwich raises for a damaged pack or index.
DAMAGE = (
    *(ApplyDeltaError, ChecksumMismatch, UnresolvedDeltas, struct.error, zlib.error),
    *(AssertionError, IndexError, KeyError, OverflowError, TypeError, ValueError, MemoryError),
)


class Index(PackIndex2):
    """A version 2 index, validated on opening. No descriptor stays open."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            contents = file.read() if size <= _SMALL else mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        if contents[:8] != b"\xfftOc\0\0\0\2" or size < _TABLES + 40:
            raise AssertionError("its index is not a version 2 index")
        super().__init__(path, SHA1, file=file, contents=contents, size=size)  # type: ignore[arg-type]
        if size < _TABLES + 40 + 28 * len(self):
            raise AssertionError("its index is cut short")
        if self._fan_out_table != sorted(self._fan_out_table):
            raise AssertionError("its index is out of order")

    def __del__(self) -> None:
        """Do nothing: a mapping is freed with its last reference."""

    def _read_fan_out_table(self, start_offset: int) -> list[int]:
        return list(struct.unpack_from(">256I", self._contents, start_offset))

    def object_offset(self, sha: bytes) -> int:
        """Return an object's offset by raw or hex id, as dulwich calls it."""
        return self.position(sha if len(sha) == 20 else bytes.fromhex(sha.decode()))

    def position(self, sha: bytes) -> int:
        """Return an object's offset by raw id, or raise KeyError.

        dulwich searches one entry too far: in an index without objects, that entry lies in the checksums.
        """
        start, end = self._fan_out_table[sha[0] - 1] if sha[0] else 0, self._fan_out_table[sha[0]]
        if end - start > _FEW:
            found = bisect_find_sha(start, end - 1, sha, self._unpack_name)
        else:  # for few ids, a plain search is faster
            names = self._contents[_TABLES + 20 * start : _TABLES + 20 * end]
            at = names.find(sha)
            while at >= 0 and at % 20:  # a match across the boundary of two ids
                at = names.find(sha, at + 1)
            found = start + at // 20 if at >= 0 else None
        if found is None:
            raise KeyError(sha)
        return self._unpack_offset(found)

    def _unpack_offset(self, i: int) -> int:
        offset = super()._unpack_offset(i)
        if not 0 < offset < 1 << 62:
            raise AssertionError("its index leads nowhere")
        return offset

    def names(self) -> bytes:
        """Return all ids, concatenated."""
        return self._contents[_TABLES : _TABLES + 20 * len(self)]

    def offsets(self) -> tuple[int, ...]:
        """Return the offset of each object, in the order of the ids."""
        found: tuple[int, ...] = struct.unpack_from(f">{len(self)}I", self._contents, _TABLES + 24 * len(self))
        return tuple(map(self._unpack_offset, range(len(self)))) if max(found, default=0) >> 31 else found

    def checksums(self) -> tuple[int, ...]:
        """Return the checksum of each packed entry, in the order of the ids."""
        return struct.unpack_from(f">{len(self)}I", self._contents, _TABLES + 20 * len(self))
