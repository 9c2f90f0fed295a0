"""Resolves the deltas of a pack that came in, with memory bounded whatever their chains look like."""

from __future__ import annotations

import os
import zlib

from snapstore.errors import Corrupt
from snapstore.git.objects import CHUNK, KIND_NAMES, object_id
from snapstore.git.packs import apply_delta, delta_sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snapstore.git.receive import Raw

    Check = Callable[[bytes, bytes, bytes], None]

HELD = 1 << 28  # bytes of bases at hand; beyond it they are made again
_DEEPEST = 4096  # git's own limit for a chain


class _Resolver:
    def __init__(self, fd: int, entries: dict[int, Raw], limit: int, check: Check) -> None:
        self._fd = fd
        self._entries = entries
        self._limit = limit
        self._check = check
        self._by_offset: dict[int, list[int]] = {}
        self._by_id: dict[bytes, list[int]] = {}
        self._kinds: dict[int, bytes] = {}
        self._bases: dict[int, int] = {}

    def run(self) -> None:
        left = 0
        for offset, raw in self._entries.items():
            if raw.number in KIND_NAMES:
                self._kinds[offset] = KIND_NAMES[raw.number]
                continue
            left += 1
            if isinstance(raw.base, bytes):
                self._by_id.setdefault(raw.base, []).append(offset)
            else:
                self._by_offset.setdefault(raw.base, []).append(offset)
        if not left:
            return
        for offset in list(self._kinds):
            left -= self._below(offset)
        if left:
            raise Corrupt("a delta that came in has no base")

    def _below(self, top: int) -> int:
        """Resolves everything that hangs from a whole object; gives how much that was."""
        resolved = held = 0
        # A base's bytes stay while a delta of it waits; when too much is held they are read again instead.
        stack: list[tuple[int, int, bytes | None, int]] = []

        def push(base: int, data: bytes | None, depth: int) -> None:
            nonlocal held
            waiting = self._by_offset.pop(base, [])
            waiting += self._by_id.pop(self._entries[base].oid, [])
            if waiting and depth > _DEEPEST:
                raise Corrupt("deltas that came in hang from each other without end")
            if data is not None and held + len(data) > HELD:
                data = None
            for offset in waiting:
                self._bases[offset] = base
                stack.append((offset, base, data, depth))
            if waiting and data is not None:
                held += len(data)
                stack.insert(len(stack) - len(waiting), (-1, base, data, depth))

        push(top, None, 1)
        while stack:
            offset, base, data, depth = stack.pop()
            if offset < 0:
                assert data is not None
                held -= len(data)
                continue
            raw = self._entries[offset]
            kind = self._kinds[offset] = self._kinds[base]
            result = self._apply(data if data is not None else self._make(base), raw)
            raw.oid = object_id(kind, result)
            self._check(kind, result, raw.oid)
            resolved += 1
            push(offset, result, depth + 1)
        return resolved

    def _make(self, offset: int) -> bytes:
        """An object's bytes, from the whole object below it up."""
        chain = [offset]
        while chain[-1] in self._bases:
            chain.append(self._bases[chain[-1]])
        whole = self._entries[chain.pop()]
        if whole.size > self._limit:
            raise Corrupt("a delta of a file came in that is too large for deltas")
        data = self._inflate(whole)
        while chain:
            data = self._apply(data, self._entries[chain.pop()])
        return data

    def _apply(self, base: bytes, raw: Raw) -> bytes:
        delta = self._inflate(raw)
        _, size = delta_sizes(delta)
        if size > self._limit:
            raise Corrupt("a delta came in that is larger than deltas may be")
        return apply_delta(base, delta)

    def _inflate(self, raw: Raw) -> bytes:
        return b"".join(_pieces(self._fd, raw.start, raw.size))


def resolve(fd: int, entries: dict[int, Raw], limit: int, check: Check) -> None:
    """Gives every delta its id. `check` sees each result: kind, data, id."""
    _Resolver(fd, entries, limit, check).run()


def _pieces(fd: int, start: int, size: int) -> Iterator[bytes]:
    """What was inflated once already, as it came in: it ends where it says."""
    inflate = zlib.decompressobj()
    step = min(CHUNK, max(512, size + 64))
    while not inflate.eof:
        waiting = inflate.unconsumed_tail or os.pread(fd, step, start)
        if not inflate.unconsumed_tail:
            start += len(waiting)
        yield inflate.decompress(waiting, CHUNK)
