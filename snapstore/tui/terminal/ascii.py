"""For terminals without the signs that we draw with: each becomes a plain one, of the same width."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from snapstore.base.text import cells

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("│┃║▌▐▎▊", "|"),
        **dict.fromkeys("─━═−–—", "-"),
        **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+"),
        **dict.fromkeys("·•…", "."),
        **dict.fromkeys("▁▂▃▄▅▆▇█▔", " "),
        "◆": "*",
        "▸": ">",
        "→": ">",
        "←": "<",
        "↑": "^",
        "↓": "v",
        "┆": ":",
        "⑂": "Y",
        "○": "o",
    }
)


class PlainSigns(LineFilter):
    """With the name of an encoding, what it does not have is a question mark as well."""

    def __init__(self, encoding: str | None) -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(self._plain(text), style, control) for text, style, control in segments]

    def _plain(self, text: str) -> str:
        if text.isascii():
            return text
        text = text.translate(_SIGNS)
        if self._encoding is None or text.isascii():
            return text
        return "".join(sign if self._has(sign) else "?" * cells(sign) for sign in text)

    def _has(self, sign: str) -> bool:
        try:
            sign.encode(self._encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return False
        return True
