"""A pack as it comes in, read once and front to back: written to its file, hashed, inflated no further than it says."""

from __future__ import annotations

import zlib
from hashlib import sha1

from snapstore.errors import Corrupt, Remote
from snapstore.git.objects import CHUNK
from snapstore.git.packwriter import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_AHEAD = 64  # deflated data may be that much longer than what it holds


class PackStream:
    """Pieces as they come: written to the file, hashed, and given out to whoever understands them."""

    def __init__(self, pieces: Iterable[bytes], fd: int, limit: int) -> None:
        self._pieces = iter(pieces)
        self._fd = fd
        self._limit = limit
        self._digest = sha1(usedforsecurity=False)
        self._buffer = b""
        self._at = 0
        self._begin = 0  # of the buffer, in the pack
        self.crc = 0  # of the entry so far

    @property
    def position(self) -> int:
        return self._begin + self._at

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, size: int) -> bytes:
        if self._at == len(self._buffer):
            self._more()
        out = self._buffer[self._at : self._at + size]
        self._at += len(out)
        while len(out) < size:
            self._more()
            piece = self._buffer[: size - len(out)]
            self._at = len(piece)
            out += piece
        self.crc = zlib.crc32(out, self.crc)
        return out

    def inflate(self, size: int) -> Iterator[bytes]:
        """A deflated stream of so many bytes; never inflated further."""
        inflate = zlib.decompressobj()
        seen = 0
        waiting = b""
        try:
            while not inflate.eof:
                if not waiting:
                    if self._at == len(self._buffer):
                        self._more()
                    # Not the whole buffer: what belongs to the next entries would be copied for each of them.
                    waiting = self._buffer[self._at : self._at + min(CHUNK, size - seen + _AHEAD)]
                    self._at += len(waiting)
                    taken = waiting
                piece = inflate.decompress(waiting, CHUNK)
                waiting = inflate.unconsumed_tail
                if inflate.eof:
                    unused = len(inflate.unused_data)
                    self._at -= unused
                    taken = taken[: len(taken) - unused]
                if inflate.eof or not waiting:
                    self.crc = zlib.crc32(taken, self.crc)
                seen += len(piece)
                if seen > size:
                    raise Corrupt("an object came in that is larger than it says")
                if piece:
                    yield piece
        except zlib.error as error:
            raise Corrupt(f"an object that came in is damaged: {error}") from None
        if seen != size:
            raise Corrupt("an object came in that is smaller than it says")

    def finish(self) -> bytes:
        """The checksum at the end, compared; nothing may follow it."""
        self._digest.update(self._buffer[: self._at])
        expected = self._digest.digest()
        self._buffer = self._buffer[self._at :]
        self._begin, self._at = self.position, 0
        if self.take(20) != expected or self._at != len(self._buffer) or any(self._pieces):
            raise Corrupt("the pack that came in does not match its checksum")
        return expected

    def _more(self) -> None:
        for piece in self._pieces:
            if piece:
                break
        else:
            raise Corrupt("the pack that came in is cut short")
        self._digest.update(self._buffer)
        self._begin += len(self._buffer)
        if self._begin + len(piece) > self._limit:
            raise Remote(f"more than {self._limit:,} bytes would come in", "Raise the limit, or fetch less at once.")
        write_all(self._fd, piece)
        self._buffer, self._at = piece, 0
