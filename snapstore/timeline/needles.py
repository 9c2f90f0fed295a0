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
_SHORTEST = 8  # characters of a line or value that tells the file
_LONG_LINE = 1000  # characters from which on it is not looked at from each of its places
_NO_MARKS = str.maketrans("", "", "+/=_-")
_SHORTEST_CODE = 4
_SHORTEST_SECRET = 6  # of one that is called a secret, and is of letters and digits
_FEW_LINES = 64  # a file of no more is known by each of them
_WINDOW = 8  # bytes by which a piece is looked for where there are many
_FEW = 200  # pieces up to which one look for each is quicker

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
_WORD = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_VALUE = r"[=:]\s{0,8}[\"']?([^\s\"']{8,400})"
_ASSIGNED, _ASSIGNED_ANYWHERE = re.compile(_VALUE), re.compile(f"(?={_VALUE})")  # also within each other
_LABEL = r"(?i:(pass(?:word|wd|phrase)?|pwd|secret)|pin|token|credentials?|key)[\"']?"
_CALLED = re.compile(rf"(?={_LABEL}\s{{0,8}}[=:]\s{{0,8}}(\S.{{0,200}}))")
_QUOTED = re.compile(r"[\"'](.*?)[\"']")
_END = re.compile(r"[\s\"',;)}\]]")
_PROGRAM = re.compile(r"[(){}\[\]<>$.]")
_BESIDE = re.compile(rf"(?:{_LABEL}|(?i:bearer|basic))\s{{1,8}}([^\s\"']{{1,400}})")  # .netrc, a header
_IN_ADDRESS = re.compile(r"://[^\s/:@]{0,200}:([^\s/@]{1,200})@")
_IDS = re.compile(
    r"(?:toolu|call|msg|req)_|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-"
)  # of conversations: they link what was said


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
        found, whole = pieces_of(read())
        if not whole:
            self.left.add(path)
        for piece, made in found.items():
            pieces, most = (self._made, MOST) if made else (self._plain, MOST_PLAIN)
            if piece in pieces or len(pieces) < most:
                pieces[piece] = None
            else:
                self.left.add(path)


def pieces_of(data: bytes) -> tuple[dict[str, bool], bool]:
    """The pieces of a file by which it would be known: its lines, what it assigns, words such as machines make, and
    what it calls a secret; of a long one only those that nobody would write by chance, since the others stand in other
    files as well. Each with whether it is a machine's or a secret; and whether that is all there is to be known by."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data[:8000]:
        return {}, True
    else:
        text = data.decode("utf-8", "surrogateescape")
    found: dict[str, bool] = {}
    lines = [line.strip() for line in text.splitlines()]
    few = len(lines) <= _FEW_LINES
    whole = True
    for line in lines:
        words = [word for word in _WORD.findall(line) if _is_made(word)]
        found.update(dict.fromkeys(words, True))
        for secret in _secrets(line, few):
            if len(secret) >= _SHORTEST or (len(secret) >= _SHORTEST_SECRET and _is_mixed(secret)):
                found[secret] = True
            elif len(secret) >= _SHORTEST_CODE and any(map(str.isdecimal, secret)):
                whole = False  # it would be found in the middle of any other number
        for value in (_ASSIGNED_ANYWHERE if len(line) <= _LONG_LINE else _ASSIGNED).findall(line):
            if few or any(word in value for word in words):
                found.setdefault(value, bool(words))
        if len(line) >= _SHORTEST:
            if few or words or _is_telling(line):
                found.setdefault(line, bool(words))
            else:
                whole = False
    return found, whole


def _secrets(line: str, few: bool) -> Iterable[str]:
    """What a line calls one: after a word for it, in an address before the `@`. Of a long file, which may be a program,
    not all that is assigned to a key is one."""
    for sure, value in _CALLED.findall(line):
        quoted = _QUOTED.match(value)
        said = quoted[1] if quoted is not None else value.strip("\"',;)}] ")
        first = _END.split(said, maxsplit=1)[0]
        if few or _is_mixed(first) or (sure and not _PROGRAM.search(said)):
            yield said
        if first != said and _is_mixed(first):
            yield first
    for _, value in _BESIDE.findall(line):
        word = value.rstrip(",;)}]")
        if _is_mixed(word):  # else it is a sentence about one
            yield word
    yield from _IN_ADDRESS.findall(line)


def _is_mixed(text: str) -> bool:
    """Of letters and of digits."""
    return any(map(str.isdecimal, text)) and any(map(str.isalpha, text))


def _is_telling(text: str) -> bool:
    return any(len(set(word)) >= 6 and not word.isalpha() and not word.isdecimal() for word in _WORD.findall(text))


def _is_made(word: str) -> bool:
    """Whether a machine made it: of letters and digits, which change more often than in words that people put together
    for a name or a path."""
    plain = word.translate(_NO_MARKS)
    runs = len(_RUNS.findall(plain))
    return len(set(word)) >= 6 and _is_mixed(word) and (runs - 1) * 5 >= len(plain) and _IDS.match(word) is None
