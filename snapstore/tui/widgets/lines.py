"""A view of any number of lines that draws only those in view.

Panels and screens are built from this view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from snapstore.base.text import safe

LONGEST = 2000  # characters of a line that are worth showing


def styled(*parts: str | tuple[str, str]) -> Content:
    """Return one line of parts, each a text or a text and its style.

    No part is interpreted as markup, and control characters are made visible.
    """
    return Content.assemble(
        *(safe(part) if isinstance(part, str) else (safe(part[0]), part[1]) for part in parts if part)
    )


class Lines(Protocol):
    """Lines that are generated when they come into view."""

    widest: int

    def __len__(self) -> int: ...

    def line(self, at: int) -> Content: ...


class LinesView(ScrollView, can_focus=True):
    """A scrollable view of lines. With `wrap` a line takes as many rows as needed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("ctrl+d,ctrl+f", "page_down", show=False),
        Binding("ctrl+b", "page_up", show=False),
    ]

    def __init__(self, *, wrap: bool = False, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._wrap = wrap
        self._given: Sequence[Content] = ()
        self._rows: Sequence[Content] = ()
        self._widest = 0
        self._made: Lines | None = None

    def show_lines(self, lines: Iterable[Content], *, keep: bool = False) -> None:
        """Show other lines, scrolled to the top unless `keep` is set."""
        self._given, self._made = list(lines), None
        self._arrange()
        if not keep:
            self.scroll_home(animate=False)

    @property
    def plain(self) -> str:
        """All lines as plain text."""
        return "\n".join(self.line(at).plain for at in range(self.count))

    def show_made(self, lines: Lines) -> None:
        """Show lines that are generated when they come into view."""
        self._made = lines
        self._lay_out()
        self.scroll_home(animate=False)

    @property
    def count(self) -> int:
        return len(self._rows if self._made is None else self._made)

    def line(self, at: int) -> Content:
        return self._rows[at] if self._made is None else self._made.line(at)

    def _arrange(self) -> None:
        width = self.scrollable_content_region.width
        if self._wrap and width > 0:
            self._rows = [row for line in self._given for row in (line.wrap(width) if line else [line])]
        else:
            self._rows = self._given
        self._widest = 0 if self._wrap else max((row.cell_length for row in self._rows), default=0)
        self._lay_out()

    def _lay_out(self) -> None:
        self.virtual_size = Size(self._widest if self._made is None else self._made.widest, self.count)
        self.refresh()

    def on_resize(self) -> None:
        if self._wrap and self._made is None:
            self._arrange()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width = self.size.width
        if not 0 <= top + y < self.count:
            return Strip.blank(width, self.rich_style)
        segments: list[Segment] = self.line(top + y).render_segments(self.visual_style)
        last = segments[-1].style if segments else None
        ground = Style(bgcolor=last.bgcolor) if last is not None and last.bgcolor is not None else self.rich_style
        return Strip(segments).crop_extend(left, left + width, ground)  # extend a tinted line to the edge
