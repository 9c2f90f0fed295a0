"""A list with one picked row.

Picking only selects. The keys of the surrounding screen act on the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from snapstore.tui.widgets.lines import LinesView


class PickList(LinesView):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "pick(1)", show=False),
        Binding("k,up", "pick(-1)", show=False),
        Binding("home", "pick(-1000000)", show=False),
        Binding("end,G", "pick(1000000)", show=False),
    ]
    DEFAULT_CSS = """
    PickList { height: auto; max-height: 100%; overflow-x: hidden; }
    """

    class Picked(Message):
        def __init__(self, picklist: PickList, at: int) -> None:
            super().__init__()
            self.picklist = picklist
            self.at = at

        @property
        def control(self) -> PickList:
            return self.picklist

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.picked = 0

    def show_rows(self, rows: Sequence[Content], picked: int = 0) -> None:
        self.show_lines(rows, keep=True)
        self.picked = max(0, min(picked, len(rows) - 1))
        self._see()

    def line(self, at: int) -> Content:
        picked = at == self.picked
        row = Content.assemble("▸ " if picked else "  ", super().line(at))
        style = "bold reverse" if self.app.no_color else "bold on $selection"
        return row.stylize_before(style) if picked else row

    def action_pick(self, step: int) -> None:
        self.pick(self.picked + step)

    def pick(self, at: int) -> None:
        at = max(0, min(at, self.count - 1))
        if self.count and at != self.picked:
            self.picked = at
            self._see()
            self.refresh()
            self.post_message(self.Picked(self, at))

    def _see(self) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if height and not top <= self.picked < top + height:
            self.scroll_to(y=self.picked - height // 2, animate=False)

    def on_resize(self) -> None:
        self._see()  # without a size, nothing could be scrolled before

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y + self.scroll_offset.y < self.count:
            self.pick(offset.y + self.scroll_offset.y)
