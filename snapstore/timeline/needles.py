"""Pieces of files by which their content is known again in what was said, and a quick look for very many of them."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Needle = tuple[str, str]  # and a part of it that is the same however often it is written as JSON

LARGEST = 1 << 20  # content beyond this gives no pieces
MOST = 100_000  # pieces that hold a word such as machines make
MOST_PLAIN = 500  # others: a folder of programs would else take its every line from all that was said
MOST_BYTES = 1 << 26  # of content that is looked through for pieces
_SHORTEST = 8  # characters of a line that tells the file
_FEW_LINES = 64  # a file of no more is known by each of them
_WINDOW = 8  # bytes by which a piece is looked for where there are many
_FEW = 200  # pieces up to which one look for each is quicker

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
_WORD = re.compile(r"[A-Za-z0-9+/=_-]{12,}")
_ASSIGNED = re.compile(r"[=:]\s*[\"']?([^\s\"']{8,})")


class Needles:
    """Pieces to look for, the longest first: a line before what it assigns."""

    def __init__(self, pieces: Iterable[str]) -> None:
        longest = sorted(pieces, key=len, reverse=True)
        self.all: list[Needle] = [(piece, max(_PLAIN.findall(piece), key=len, default="")) for piece in longest]
        self._ends: dict[bytes, list[int]] = {}
        self._short: list[int] = []
        if len(self.all) > _FEW:
            for number, (_, part) in enumerate(self.all):
                end = part.encode()[-_WINDOW:]
                (self._ends.setdefault(end, []) if len(end) == _WINDOW else self._short).append(number)

    def within(self, data: bytes) -> list[Needle]:
        """Those that a text may hold, as it is or as JSON."""
        if not self._ends:
            return [needle for needle in self.all if needle[1].encode() in data]
        ends = self._ends
        met = {end for at in range(len(data) - _WINDOW + 1) if (end := data[at : at + _WINDOW]) in ends}
        numbers = sorted([*self._short, *(number for end in met for number in ends[end])])
        return [needle for needle in map(self.all.__getitem__, numbers) if needle[1].encode() in data]


class Pieces:
    """Gathers the pieces of files, as many as can be looked for; `left` are those that were not taken whole."""

    def __init__(self) -> None:
        self.left: set[bytes] = set()
        self._made: dict[str, None] = {}
        self._plain: dict[str, None] = {}
        self._read = 0

    @property
    def all(self) -> list[str]:
        return [*self._made, *self._plain]

    def take(self, path: bytes, size: int, read: Callable[[], bytes]) -> None:
        """The newest first: where there are too many, the oldest are those that are left."""
        if size > LARGEST or self._read + size > MOST_BYTES:
            self.left.add(path)
            return
        self._read += size
        for piece in pieces_of(read()):
            pieces, most = (self._made, MOST) if _is_made(piece) else (self._plain, MOST_PLAIN)
            if piece in pieces or len(pieces) < most:
                pieces[piece] = None
            else:
                self.left.add(path)


def pieces_of(data: bytes) -> list[str]:
    """The pieces of a file by which it would be known: what it assigns and its lines; of a long one only those that
    nobody would write by chance, since the others stand in other files as well."""
    if b"\0" in data[:8000]:
        return []
    found: dict[str, None] = {}
    lines = [line.strip() for line in data.decode("utf-8", "surrogateescape").splitlines()]
    few = len(lines) <= _FEW_LINES
    for line in lines:
        for value in _ASSIGNED.findall(line):
            if few or _is_telling(value):
                found[value] = None
        if len(line) >= _SHORTEST and (few or _is_telling(line)):
            found[line] = None
    return list(found)


def _is_telling(text: str) -> bool:
    return any(len(set(word)) >= 6 and not word.isalpha() and not word.isdecimal() for word in _WORD.findall(text))


def _is_made(text: str) -> bool:
    """Whether it holds a word such as machines make, of letters and digits."""
    return any(
        len(set(word)) >= 6 and any(map(str.isdecimal, word)) and any(map(str.isalpha, word))
        for word in _WORD.findall(text)
    )
