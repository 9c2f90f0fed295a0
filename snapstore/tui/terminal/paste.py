"""Keep pasted text from acting as keys.

Textual takes an escape sequence inside a paste for a typed key, and the letters after it would run commands such as
undo. Escape characters are therefore removed from pasted text before Textual sees them.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.message import Message

START, END, ESCAPE = "\x1b[200~", "\x1b[201~", "\x1b"


class PasteParser(XTermParser):
    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._cleaner = Cleaner()

    def feed(self, data: str) -> Iterable[Message]:
        clean = self._cleaner.clean(data) if data else data
        return super().feed(clean) if clean or not data else ()


class Cleaner:
    """Removes escapes from pasted text. Reads have any size, so a marker may be split."""

    def __init__(self) -> None:
        self._pasting = False
        self._before = ""  # the end of the typed text, which may be the beginning of a marker
        self._held = ""  # the end of the pasted text, which may be the beginning of a marker

    def clean(self, data: str) -> str:
        parts: list[str] = []
        text, self._held = self._held + data, ""
        while text:
            text = self._pasted(text, parts) if self._pasting else self._typed(text, parts)
        return "".join(parts)

    def _typed(self, text: str, parts: list[str]) -> str:
        seen = self._before + text
        at = seen.find(START)
        end = len(text) if at < 0 else at + len(START) - len(self._before)
        self._pasting = at >= 0
        self._before = "" if self._pasting else seen[-len(START) + 1 :]
        parts.append(text[:end])
        return text[end:]

    def _pasted(self, text: str, parts: list[str]) -> str:
        body, mark, rest = text.partition(END)
        if not mark:
            kept = max(number for number in range(len(END)) if number == 0 or text.endswith(END[:number]))
            body, self._held = text[: len(text) - kept], text[len(text) - kept :]
        self._pasting = not mark
        parts.append(body.replace(ESCAPE, "") + mark)
        return rest
