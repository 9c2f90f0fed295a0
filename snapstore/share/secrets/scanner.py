"""Search files and texts by the rules, in memory bounded for any length of file or line."""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from snapstore.git.objects import deflate
from snapstore.git.objects.ids import BLOB, CHUNK, LINK
from snapstore.git.objects.store import Objects
from snapstore.share.secrets.detect_secrets import Detector
from snapstore.share.secrets.prefilter import around_tokens
from snapstore.share.secrets.rules import ANYWHERE, LIMITED, LONGEST, NAME_MARKS, NAMES, LineRule, NameRule
from snapstore.worktree.scan.two_processes import run_in_two

Hit = tuple[str, int, bytes]  # rule, line number from 1, the secret
File = tuple[bytes, bytes, bytes]  # path, mode, blob
FileHit = tuple[str, bytes, int | None, bytes]  # rule, path, line (None: by its name), the secret (or the blob)

_OVERLAP = 2 * LONGEST
_SMALL = 1 << 16  # bytes; a file up to this size is searched together with others
_TOGETHER = 1 << 18  # bytes per batch of small files: data that is read repeatedly stays in the processor's cache
_MANY = 2000  # files; from so many on, two processes are faster than one
_NARROWED = 1 << 10  # bytes; from this size on, searching for long words first is faster


class Scanner:
    """One search over many files and texts."""

    def __init__(self, objects: Objects, tick: Callable[[], None]) -> None:
        self._objects = objects
        self._tick = tick
        self._detector = Detector()
        self._clean: set[bytes] = set()  # blobs without a suspicious line
        self._batch = _Batch()

    def files(self, files: Sequence[File]) -> Iterator[FileHit]:
        """Yield the findings in files."""
        if len(files) < _MANY:
            yield from self._some(files)
            return
        deflate.load()  # also needed to inflate; loaded before the fork
        for part in run_in_two(self._some, files):
            yield from part

    def _some(self, files: Sequence[File]) -> list[FileHit]:
        found: list[FileHit] = []
        names = b"\0".join(path for path, _, _ in files).lower()
        marks = tuple(mark for mark in NAME_MARKS if mark in names)  # one search for all paths: most have no mark
        for path, mode, blob in files:
            self._tick()
            found += self._file(path, blob, _named(path, marks) if marks and mode != LINK else None)
        return [*found, *self._flush()]

    def _file(self, path: bytes, blob: bytes, rule: NameRule | None) -> Iterator[FileHit]:
        if rule is not None and not self._is_cleared(rule, blob):
            yield rule.name, path, None, blob
        own = [rule for rule in LIMITED if rule.files is not None and rule.files(path)]
        if blob in self._clean and not own:
            return
        data = self._objects.read_small(blob, _SMALL)
        if data is None:
            for name, line, secret in self.text(self._objects.stream(blob), (*ANYWHERE, *own)):
                yield name, path, line, secret
        elif data:
            text = b"".join(_text((data,)))
            for name, line, secret in self.text((text,), own) if own else ():
                yield name, path, line, secret
            if text:
                self._batch.add(text, path, blob)
                if self._batch.size > _TOGETHER:
                    yield from self._flush()

    def _is_cleared(self, rule: NameRule, blob: bytes) -> bool:
        size = self._objects.header(blob)[1]
        if size == 0:
            return True
        return rule.clears is not None and size <= CHUNK and rule.clears(self._objects.read_kind(blob, BLOB))

    def _flush(self) -> Iterator[FileHit]:
        """Search many small files at once, because starting a search costs most."""
        batch, self._batch = self._batch, _Batch()
        suspicious: set[bytes] = set()
        found: dict[tuple[str, bytes, bytes], tuple[int, FileHit]] = {}
        for rule, at, secret in sorted(self._hits(batch.data(), ANYWHERE, True, batch), key=lambda hit: hit[1]):
            start, path, blob = batch.file_at(at)
            suspicious.add(blob)
            line = batch.data().count(b"\n", start, at) + 1
            found.setdefault((rule, path, secret), (at, (rule, path, line, secret)))
        self._clean.update(blob for _, blob in batch.files if blob not in suspicious)
        for _, hit in sorted(found.values(), key=lambda one: one[0]):
            yield hit

    def names(self, paths: Iterable[bytes]) -> Iterator[tuple[str, bytes, int, bytes]]:
        """Yield the findings in names: rule, path, position in the path, secret."""
        batch = _Batch()
        for path in paths:
            batch.add(path, path, b"")
            if batch.size > CHUNK:
                yield from self._in_names(batch)
                batch = _Batch()
        yield from self._in_names(batch)

    def _in_names(self, batch: _Batch) -> Iterator[tuple[str, bytes, int, bytes]]:
        for rule, at, secret in self._hits(batch.data(), ANYWHERE, True, batch):
            start, path, _ = batch.file_at(at)
            yield rule, path, max(path.find(secret, at - start), 0), secret

    def text(self, pieces: Iterable[bytes], rules: Sequence[LineRule] = ANYWHERE) -> Iterator[Hit]:
        """Yield the findings in a text, each secret once."""
        seen: set[tuple[str, bytes]] = set()
        for data, lines, final in windows(pieces):
            for rule, at, secret in self._hits(data, rules, final):
                if (rule, secret) not in seen:
                    seen.add((rule, secret))
                    yield rule, lines + data.count(b"\n", 0, at) + 1, secret

    def _hits(
        self, data: bytes, rules: Sequence[LineRule], final: bool, batch: _Batch | None = None
    ) -> Iterator[tuple[str, int, bytes]]:
        # A match closer to the end may be cut off; it is found again in the next window.
        end = len(data) if final else len(data) - LONGEST

        def fits(at: int, to: int) -> bool:
            return to <= end and (batch is None or batch.is_in_one(at, to))

        parts: dict[Callable[[bytes], bytes], tuple[bytes, bytes]] = {}
        taken: dict[int, int] = {}  # start: end
        folded = b""
        for rule in rules:
            if rule.within is not None and len(data) > _NARROWED:
                if rule.within not in parts:
                    part = rule.within(data)
                    parts[rule.within] = part, part.lower()
                if next(rule.found_in(*parts[rule.within]), None) is None:
                    continue
            if rule.after:
                folded = folded or data.lower()
            for at, to, secret in rule.found_in(data, folded, fits):
                if at not in taken:
                    taken[at] = to
                    yield rule.name, at, secret
        for name, at, secret in self._asked(data[:end], parts) if ANYWHERE[0] in rules else ():
            if not any(start < at + len(secret) and at < to for start, to in taken.items()):
                yield name, at, secret

    def _asked(
        self, data: bytes, parts: dict[Callable[[bytes], bytes], tuple[bytes, bytes]]
    ) -> Iterator[tuple[str, int, bytes]]:
        return self._detector.found_in(data, *parts.get(around_tokens, ())[:1])


class _Batch:
    """The concatenated texts of many files."""

    def __init__(self) -> None:
        self.files: list[tuple[bytes, bytes]] = []  # path and blob
        self.size = 0
        self._starts: list[int] = []
        self._pieces: list[bytes] = []
        self._data: bytes | None = None

    def add(self, text: bytes, path: bytes, blob: bytes) -> None:
        self.files.append((path, blob))
        self._starts.append(self.size)
        self._pieces.append(text)
        self.size += len(text) + 1

    def data(self) -> bytes:
        if self._data is None:
            self._data = b"\n".join(self._pieces)
            self._pieces.clear()
        return self._data

    def file_at(self, at: int) -> tuple[int, bytes, bytes]:
        """Return the start, path and blob of the file at a position."""
        number = bisect_right(self._starts, at) - 1
        return self._starts[number], *self.files[number]

    def is_in_one(self, at: int, to: int) -> bool:
        """Return whether a match lies within one file."""
        number = bisect_right(self._starts, at)
        return to <= (self._starts[number] if number < len(self._starts) else self.size)


def windows(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, int, bool]]:
    """Yield overlapping windows of a text: data, lines before, and whether it is last.

    A binary file yields nothing.
    """
    kept, lines, begun = b"", 0, False
    waiting: bytes | None = None
    for piece in _text(pieces):
        begun = True
        for at in range(0, len(piece), CHUNK):
            if waiting is not None:
                data = kept + waiting
                yield data, lines, False
                kept = data[-_OVERLAP:]
                lines += data.count(b"\n", 0, len(data) - len(kept))
            waiting = piece[at : at + CHUNK]
    if begun and waiting is not None:
        yield kept + waiting, lines, True


def _text(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a text as UTF-8; nothing for a binary file."""
    stream = iter(pieces)
    first = next(stream, b"")
    wide = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(first[:2])
    if wide is not None:
        decode = codecs.getincrementaldecoder(wide)("replace").decode
        yield decode(first).encode("utf-8", "replace")
        for piece in stream:
            yield decode(piece).encode("utf-8", "replace")
    elif b"\0" not in first[:8000]:
        yield first
        yield from stream


def _named(path: bytes, marks: tuple[bytes, ...]) -> NameRule | None:
    """Return the rule that a file's name matches, or None."""
    folded = path.lower()
    if not any(mark in folded for mark in marks):
        return None
    return next((rule for rule in NAMES if rule.matches(path)), None)
