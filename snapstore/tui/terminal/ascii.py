"""Replace glyphs by ASCII characters of the same width.

For terminals that lack the glyphs.
"""

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
    """Replaces glyphs by ASCII characters.

    If `encoding` is given, other characters that it lacks become question marks.
    """

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
