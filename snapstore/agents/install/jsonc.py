"""Parse JSON as found in settings: with comments, trailing commas and a BOM.

Each part is parsed with its position, so that the document can be edited as text.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MARK = "\ufeff"  # a byte order mark, decoded
BLANK = " \t\r\n"

_TOKEN = re.compile(
    r"(?P<blank>[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)"
    r'|(?P<text>"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*")'
    r"|(?P<plain>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)"
    r"|(?P<sign>[{}\[\],:])",
    re.DOTALL,
)
# What may come next, worded for the error message.
_VALUE, _ELEMENT, _KEY = "a value", "a value or `]`", 'a key in "quotes" or `}`'
_COLON, _COMMA, _NOTHING = "a colon", "a comma or a closing bracket", "nothing more"


class Unreadable(ValueError):
    """The text cannot be parsed, or is not what it should be; `line` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Node:
    """A value and its position in the text.

    `begin` is the start of the key if there is one, else of the value. `commas` holds the position of the comma after
    each part of a container, or -1.
    """

    __slots__ = ("begin", "commas", "end", "keys", "parts", "start", "value")

    def __init__(self, value: Any, begin: int, start: int, end: int) -> None:
        self.value = value
        self.begin = begin
        self.start = start
        self.end = end
        self.parts: list[Node] = []
        self.keys: list[str] = []
        self.commas: list[int] = []


def parse(text: str) -> Node | None:
    """Return the document, or None if the text is empty or has only comments."""
    reader = _Reader(text)
    for kind, start, end in _tokens(text):
        reader.take(kind, start, end)
    if reader.opened:
        at = reader.opened[-1].start
        raise Unreadable(f"the `{text[at]}` here is never closed", line_of(text, at))
    return reader.root


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Reader:
    """A parser without recursion, because a document may be nested to any depth."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._expected = _VALUE
        self._key, self._begin = "", -1
        self.root: Node | None = None
        self.opened: list[Node] = []

    def take(self, kind: str, start: int, end: int) -> None:
        inner = self.opened[-1] if self.opened else None
        sign = self._text[start] if kind == "sign" else ""
        expected = self._expected
        if expected in (_VALUE, _ELEMENT) and (not sign or sign in "{["):
            self._add(inner, sign, start, end)
        elif expected == _KEY and kind == "text":
            self._key, self._begin, self._expected = self._scalar(start, end), start, _COLON
        elif expected == _COLON and sign == ":":
            self._expected = _VALUE
        elif inner and expected == _COMMA and sign == ",":
            inner.commas[-1] = start
            self._expected = _KEY if self._text[inner.start] == "{" else _ELEMENT
        elif inner and expected in (_COMMA, _KEY, _ELEMENT) and self._text[inner.start] + sign in ("{}", "[]"):
            inner.end = end
            self.opened.pop()
            self._after_value()
        else:
            found = self._text[start : min(end, start + 20)]
            raise Unreadable(f"expected {expected}, found {found!r}", line_of(self._text, start))

    def _add(self, inner: Node | None, sign: str, start: int, end: int) -> None:
        value: Any = {} if sign == "{" else [] if sign == "[" else self._scalar(start, end)
        node = Node(value, self._begin if self._begin >= 0 else start, start, end)
        self._begin = -1
        if inner is None:
            self.root = node
        else:
            inner.parts.append(node)
            inner.commas.append(-1)
            if isinstance(inner.value, dict):
                inner.keys.append(self._key)
                inner.value[self._key] = value
            else:
                inner.value.append(value)
        if sign:
            self.opened.append(node)
            self._expected = _KEY if sign == "{" else _ELEMENT
        else:
            self._after_value()

    def _after_value(self) -> None:
        self._expected = _COMMA if self.opened else _NOTHING

    def _scalar(self, start: int, end: int) -> Any:
        token = self._text[start:end]
        try:
            return json.loads(token)
        except json.JSONDecodeError as error:
            raise Unreadable(f"this text is not JSON: {error.msg}", line_of(self._text, start)) from None
        except ValueError:  # more digits than Python converts; not a number we use
            return token


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    at = 1 if text.startswith(MARK) else 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            what = {'"': "this text is never closed", "/": "this comment is never closed"}.get(text[at])
            raise Unreadable(what or f"{text[at : at + 20]!r} is not JSON", line_of(text, at))
        if match.lastgroup != "blank":
            yield match.lastgroup, at, match.end()
        at = match.end()
