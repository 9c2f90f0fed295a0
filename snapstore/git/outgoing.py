"""A pack to be sent: listed objects, taken over as they lie in our packs wherever that is possible.

Nothing is inflated and deflated again that need not be: an entry of one of our packs is copied as it stands, a delta
too when its base goes along. So the first push of sixty thousand borrowed files is a copy, not a compression.
"""

from __future__ import annotations

from hashlib import sha1
from struct import pack as pack_numbers
from zlib import crc32

from snapstore.errors import Corrupt
from snapstore.git.deflate import compress, compressor
from snapstore.git.objects import BLOB, CHUNK, KIND_NUMBERS
from snapstore.git.odb import LARGE
from snapstore.git.packs import OFFSET_DELTA, REF_DELTA
from snapstore.git.packwriter import entry_header, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapstore.git.odb import Objects
    from snapstore.git.packs import Pack

PIECE = 1 << 16
# The ends of a pack's entries are known from all its offsets sorted: not worth it for a few objects of a large pack.
_SMALL_PACK = 2048
_SHARE = 32


def pack(
    objects: Objects,
    ids: Sequence[bytes],
    *,
    offset_deltas: bool = True,
    count: Callable[[int], None] | None = None,
) -> Iterator[bytes]:
    """The whole pack in pieces, header and checksum included. `count` is told of objects done now and then."""
    digest = sha1(usedforsecurity=False)
    waiting: list[bytes] = [header(len(ids))]
    size = 12
    done = 0
    last = b""
    for oid, body in entries(objects, ids, offset_deltas=offset_deltas):
        if oid != last:
            done += 1
            last = oid
        waiting.append(body)
        size += len(body)
        if size >= PIECE:
            piece = b"".join(waiting)
            digest.update(piece)
            yield piece
            waiting.clear()
            size = 0
            if count is not None:
                count(done)
    piece = b"".join(waiting)
    digest.update(piece)
    yield piece + digest.digest()
    if count is not None:
        count(len(ids))


def header(count: int) -> bytes:
    return b"PACK" + pack_numbers(">II", 2, count)


def entries(objects: Objects, ids: Sequence[bytes], *, offset_deltas: bool = True) -> Iterator[tuple[bytes, bytes]]:
    """The pack's entries, for who writes a pack that begins with `header`: each object's id with a piece of its entry,
    all pieces of one in a row."""
    return _Entries(objects, ids, offset_deltas).run()


def copy(
    objects: Objects, ids: Sequence[bytes], fd: int, progress: Callable[[str, int, int], None] | None
) -> tuple[dict[bytes, tuple[int, int]], bytes]:
    """Writes the pack to a file; gives where each object lies with its entry's checksum, and the pack's."""
    places: dict[bytes, tuple[int, int]] = {}
    digest = sha1(usedforsecurity=False)
    waiting = [header(len(ids))]
    position, size = 12, 12

    def flush() -> None:
        data = b"".join(waiting)
        waiting.clear()
        digest.update(data)
        write_all(fd, data)
        if progress is not None:
            progress("sending", len(places), len(ids))

    for oid, piece in entries(objects, ids):
        start, crc = places.get(oid, (position, 0))
        places[oid] = (start, crc32(piece, crc))
        waiting.append(piece)
        position += len(piece)
        size += len(piece)
        if size > CHUNK:
            flush()
            size = 0
    flush()
    write_all(fd, digest.digest())
    return places, digest.digest()


class _Entries:
    def __init__(self, objects: Objects, ids: Sequence[bytes], offset_deltas: bool) -> None:
        self._objects = objects
        self._ids = ids
        self._all = frozenset(ids)
        self._offset_deltas = offset_deltas
        self._position = 12
        self._places: dict[bytes, int] = {}  # where in the new pack an object begins

    def run(self) -> Iterator[tuple[bytes, bytes]]:
        by_pack, others = self._located()
        for found, offsets in by_pack:
            yield from self._of_pack(found, offsets)
        for oid in others:
            self._places[oid] = self._position
            for piece in self._whole(oid):
                self._position += len(piece)
                yield oid, piece

    def _located(self) -> tuple[list[tuple[Pack, list[tuple[int, bytes]]]], list[bytes]]:
        left: list[bytes] = list(self._ids)
        found: list[tuple[Pack, list[tuple[int, bytes]]]] = []
        others: list[bytes] = []
        for candidate in list(self._objects.packs()):
            if not left:
                break
            here: list[tuple[int, bytes]] = []
            rest: list[bytes] = []
            try:
                for oid in left:
                    offset = candidate.find(oid)
                    if offset is None:
                        rest.append(oid)
                    else:
                        here.append((offset, oid))
                if here:
                    candidate.size()  # opens it: what is open stays, whatever a repacking git removes
            except FileNotFoundError:
                continue
            left = rest
            if here and (candidate.count() <= _SMALL_PACK or len(here) * _SHARE >= candidate.count()):
                found.append((candidate, sorted(here)))
            else:
                others += [oid for _, oid in here]
        return found, others + left

    def _of_pack(self, source: Pack, wanted: list[tuple[int, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        names = {offset: oid for oid, offset in source.offsets().items()}
        sums = source.checksums()
        starts = sorted(names)
        end_of = dict(zip(starts, [*starts[1:], source.size() - 20], strict=True))
        for offset, oid in wanted:
            end = end_of[offset]
            self._places[oid] = self._position
            for piece in self._entry(source, names, oid, offset, end, sums[offset]):
                self._position += len(piece)
                yield oid, piece

    def _entry(
        self, source: Pack, names: dict[int, bytes], oid: bytes, offset: int, end: int, checksum: int
    ) -> Iterator[bytes]:
        """The entry as it lies there, or as a whole when its base stays behind. What is not as it was when it was
        packed does not leave here."""
        first = source.raw(offset, min(end, offset + CHUNK))
        number, size, start, base_offset, base_id = source.entry(offset)
        head: bytes | None = b""
        if number == OFFSET_DELTA:
            head = self._delta_head(names.get(base_offset, b""), size)
        elif number == REF_DELTA:
            head = self._delta_head(base_id, size)
        if head is None:
            yield from self._whole(oid)
            return
        found = crc32(first)
        if len(first) == end - offset and found == checksum:
            yield head + first[start - offset :] if head else first
            return
        yield head + first[start - offset :] if head else first
        for at in range(offset + CHUNK, end, CHUNK):
            piece = source.raw(at, min(end, at + CHUNK))
            found = crc32(piece, found)
            yield piece
        if found != checksum:
            raise Corrupt(f"object {oid.hex()} is damaged", object=oid.hex())

    def _delta_head(self, base: bytes, size: int) -> bytes | None:
        """A delta's header in the new pack. None when its base does not go along."""
        if base not in self._all:
            return None
        place = self._places.get(base)
        if place is None or not self._offset_deltas:
            return entry_header(REF_DELTA, size) + base
        distance = self._position - place
        digits = [distance & 0x7F]
        while distance := distance >> 7:
            distance -= 1
            digits.append(0x80 | (distance & 0x7F))
        return entry_header(OFFSET_DELTA, size) + bytes(reversed(digits))

    def _whole(self, oid: bytes) -> Iterator[bytes]:
        kind, size = self._objects.header(oid)
        head = entry_header(KIND_NUMBERS[kind], size)
        if kind != BLOB or size <= LARGE:
            yield head + compress(self._objects.read(oid)[1])
            return
        yield head
        squeeze = compressor()
        for piece in self._objects.stream(oid):
            if packed := squeeze.compress(piece):
                yield packed
        yield squeeze.flush()
