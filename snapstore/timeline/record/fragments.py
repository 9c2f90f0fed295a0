"""Find fragments that identify a file's content in a conversation.

Every fragment is redacted from every record. So a fragment must be a text that nobody writes by chance: machine-made
words, what a file labels as a secret, and long lines that occur in no file that is kept. `production`, `import os` and
the path of the project are not fragments, even if the file contains them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

LARGEST = 1 << 20  # bytes; larger content gives no fragments
MOST = 100_000  # fragments that identify the content on their own
MOST_LINES = 500  # other fragments: long lines
MOST_BYTES = 1 << 26  # bytes of content searched for fragments
_FEW_LINES = 64  # in a file of at most so many lines, every long line is a fragment
_LONG = 24  # characters of a long line, at least
_LONGEST = 400  # characters of any fragment
_LONG_LINE = 1000  # characters; a longer line is not searched for overlapping assignments
_SECRET = 6  # characters of a secret with letters and digits, at least
_PASSPHRASE = 12  # characters of any other secret, at least
_ALONE = 12  # characters; a fragment this long is also redacted within a longer word
_RUN = 6  # letters and digits that index a fragment where there are many
_FEW = 50  # fragments; up to so many, one search per fragment is faster

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
_TOKEN = re.compile(rb"[A-Za-z0-9]{6,}")
_WORD = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_NO_MARKS = str.maketrans("", "", "+/=_-.:@%&?#!~*,;()[]{}<>|$^\\\"'` ")
_VALUE = r"[=:]\s{0,8}[\"']?([^\s\"']{8,400})"
_ASSIGNED, _ASSIGNED_ANYWHERE = re.compile(_VALUE), re.compile(f"(?={_VALUE})")  # the second also finds overlaps
_LABEL = r"(?i:(pass(?:word|wd|phrase)?|pwd|secret|pin)|token|credentials?|key)[_-]?\d{0,4}[\"']?"
_LABELLED = re.compile(rf"(?={_LABEL}\s{{0,8}}[=:]\s{{0,8}}(\S.{{0,200}}))")
_QUOTED = re.compile(r"[\"'](.*?)[\"']")
_END = re.compile(r"[\s\"',;)}\]]")
_PROGRAM = re.compile(r"[(){}\[\]<>$.]")
_AFTER_LABEL = re.compile(rf"(?:{_LABEL}|(?i:bearer|basic))\s{{1,8}}([^\s\"']{{1,400}})")  # .netrc, a header
_IN_ADDRESS = re.compile(r"://[^\s/:@]{0,200}:([^\s/@]{1,200})@")
# Ids in conversations: they link calls to results and must stay.
_IDS = re.compile(r"(?:toolu|call|msg|req|resp|rs|fc|ses|prt)_|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-")


class Fragment:
    """One fragment; `part` is the longest run of it that JSON encoding never changes."""

    __slots__ = ("part", "piece")

    def __init__(self, piece: str) -> None:
        self.piece = piece
        self.part = max(_PLAIN.findall(piece), key=len, default="")

    def replaced(self, text: str, spelled: str, by: str) -> str:
        """Replace `spelled` in `text`; a short fragment only where it is a whole word."""
        if len(self.piece) >= _ALONE:
            return text.replace(spelled, by)
        return re.sub(rf"(?<![A-Za-z0-9]){re.escape(spelled)}(?![A-Za-z0-9])", lambda _: by, text)


class FragmentSearch:
    """Fragments to search for, longest first: a line before the value it assigns."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self.all = [Fragment(piece) for piece in sorted(pieces, key=len, reverse=True)]
        self._ends: dict[bytes, list[int]] = {}
        self._others: list[int] = []
        if len(self.all) > _FEW:
            for number, fragment in enumerate(self.all):
                run = max(_TOKEN.findall(fragment.part.encode()), key=len, default=b"")
                (self._ends.setdefault(run[-_RUN:], []) if run else self._others).append(number)

    def within(self, data: bytes) -> list[Fragment]:
        """Return the fragments that `data` may contain, plain or JSON-encoded."""
        if not self._ends:
            return [fragment for fragment in self.all if fragment.part.encode() in data]
        ends, met = self._ends, set()
        for token in set(_TOKEN.findall(data)):
            for at in range(len(token) - _RUN + 1):
                if token[at : at + _RUN] in ends:
                    met.add(token[at : at + _RUN])
        numbers = sorted([*self._others, *(number for end in met for number in ends[end])])
        return [fragment for fragment in map(self.all.__getitem__, numbers) if fragment.part.encode() in data]


class FragmentCollector:
    """Collects fragments up to the limits; `left` has the files not fully covered."""

    def __init__(self) -> None:
        self.left: set[bytes] = set()
        self._identifying: dict[str, None] = {}
        self._lines: dict[str, None] = {}
        self._read = 0

    @property
    def all(self) -> list[str]:
        return [*self._identifying, *self._lines]

    def take(self, path: bytes, size: int, read: Callable[[], bytes]) -> None:
        """Collect the fragments of one file.

        Call with the newest file first, because at the limits later files are left out.
        """
        if size > LARGEST or self._read + size > MOST_BYTES:
            self.left.add(path)
            return
        self._read += size
        found, whole = fragments_of(read())
        if not whole:
            self.left.add(path)
        for piece, identifying in found.items():
            pieces, most = (self._identifying, MOST) if identifying else (self._lines, MOST_LINES)
            if piece in pieces or len(pieces) < most:
                pieces[piece] = None
            else:
                self.left.add(path)

    def spare(self, contents: Iterable[bytes]) -> None:
        """Drop lines that also occur in `contents`, the files that are kept.

        Such a line does not identify the forgotten file.
        """
        if not self._lines:
            return
        looked_for = FragmentSearch(self._lines)
        for data in contents:
            text = data.decode("utf-8", "surrogateescape")
            for fragment in looked_for.within(data):
                if fragment.piece in text:
                    self._lines.pop(fragment.piece, None)


def fragments_of(data: bytes) -> tuple[dict[str, bool], bool]:
    """Return the fragments of a file, and whether they cover every likely secret.

    Each fragment maps to whether it identifies the content on its own (True) or is only a long line (False).
    """
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
        words = [word for word in _WORD.findall(line) if is_machine_made(word)]
        for secret, certain in _secrets(line, few):
            if len(secret) >= (_SECRET if _is_mixed(secret) else _PASSPHRASE):
                words.append(secret)
            elif certain or any(map(str.isdecimal, secret)):
                whole = False  # so short a word would match anywhere
        for value in (_ASSIGNED_ANYWHERE if len(line) <= _LONG_LINE else _ASSIGNED).findall(line):
            if _is_dense(value) or any(map(is_machine_made, _WORD.findall(value))):
                words.append(value)
        found.update(dict.fromkeys(words, True))
        if len(line) > _LONGEST:
            continue
        if words:
            found[line] = True
        elif len(line) >= _LONG and " " in line:
            if few:
                found.setdefault(line, False)
            else:
                whole = False
    return found, whole


def _secrets(line: str, few: bool) -> Iterable[tuple[str, bool]]:
    """Yield what a line labels as a secret, and whether the label is unmistakable.

    A secret follows a label such as `password`, or comes before the `@` of a URL. A file with many lines may be a
    program, where not everything assigned to a key is a secret.
    """
    for certain, value in _LABELLED.findall(line):
        quoted = _QUOTED.match(value)
        secret_text = quoted[1] if quoted is not None else value.strip("\"',;)}] ")
        first = _END.split(secret_text, maxsplit=1)[0]
        if _is_mixed(first) or (certain and (few or not _PROGRAM.search(secret_text))):
            yield secret_text, bool(certain)
        if first != secret_text and _is_mixed(first):
            yield first, True
    for _, value in _AFTER_LABEL.findall(line):
        word = value.rstrip(",;)}]")
        if _is_mixed(word):  # otherwise the line is prose about a secret
            yield word, True
    for value in _IN_ADDRESS.findall(line):
        yield value, True


def _is_mixed(text: str) -> bool:
    """Return whether the text has both letters and digits."""
    return any(map(str.isdecimal, text)) and any(map(str.isalpha, text))


def _is_dense(text: str) -> bool:
    """Return whether letters and digits alternate often.

    Letters and digits alternate less often in names and paths that people choose.
    """
    plain = text.translate(_NO_MARKS)
    return _is_mixed(text) and len(set(text)) >= _RUN and (len(_RUNS.findall(plain)) - 1) * 5 >= len(plain)


def is_machine_made(word: str) -> bool:
    """Return whether a word is machine-made and not an id of the conversation."""
    return _is_dense(word) and _IDS.match(word) is None
