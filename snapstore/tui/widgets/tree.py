"""The tree panel: the drawing of `snapstore tree`, made navigable.

Only the rows in view are ever painted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from snapstore.surface import tree_rows
from snapstore.surface.tree_layout import Glyphs, Row
from snapstore.surface.tree_rows import Painter
from snapstore.tui.folds import Folds, is_selectable, key_of
from snapstore.tui.snapshot import Snapshot

_ROLES = (*tree_rows.ROLES, "selected", "marked", "found")
_SEARCHED = (tree_rows.PROMPT, tree_rows.BRANCH, tree_rows.CHECKPOINT, tree_rows.QUIET)
_GUTTER, _ROOMY = 2, 30  # columns left of the drawing, for selection and mark; in a narrow panel they share one
_MARGIN = 3  # rows kept in view above and below the selected one


class TreeView(ScrollView, can_focus=True):
    """Rows of which one is selected: a node or a folded run. Selecting never moves."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tree--{role}" for role in _ROLES}
    ALLOW_SELECT = False
    DEFAULT_CSS = """
    TreeView {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        & > .tree--lane { color: $lane; }
        & > .tree--here { color: $here; text-style: bold; }
        & > .tree--label { text-style: bold; }
        & > .tree--branch { color: $branch; }
        & > .tree--checkpoint { color: $checkpoint; }
        & > .tree--age { color: $quiet; }
        & > .tree--quiet { color: $quiet; }
        & > .tree--selected { background: $selection; }
        & > .tree--marked { color: $checkpoint; text-style: bold; }
        & > .tree--found { color: $found; text-style: bold; }
        &:nocolor > .tree--selected { text-style: reverse; }
        &:nocolor > .tree--quiet { text-style: dim; }
        &:nocolor > .tree--found { text-style: bold underline; }
    }
    """

    class Selected(Message):
        """Another row was selected: a node, or a folded run if `oid` is None."""

        def __init__(self, oid: bytes | None) -> None:
            super().__init__()
            self.oid = oid

    def __init__(self, clock: Callable[[], float], *, ascii: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._glyphs = Glyphs(ascii=ascii)
        self._bar = ">" if ascii else "▌"
        self._snapshot: Snapshot | None = None
        self._folds = Folds()
        self._at = 0
        self._placed = False  # whether the initial scroll position was set
        self._dates = False
        self._painter: Painter | None = None
        self._strips: dict[int, Strip] = {}
        self._found: frozenset[bytes] = frozenset()
        self._wanted = ""
        self._marked: bytes | None = None

    # What is shown.

    def load(self, snapshot: Snapshot, select: bytes | None = None) -> None:
        """Show a snapshot.

        The selected node keeps its position on the screen, unless another node is to be selected.
        """
        before, run, stay = self._snapshot, self.run, self.selected
        above = self._at - self.scroll_offset.y
        self._snapshot = snapshot
        if select is None and before is not None:
            select = snapshot.cursor if stay == before.cursor else stay
        if select is not None and select not in snapshot.shown:
            select = None
        self._folds.load(snapshot, select)
        wanted = (select, key_of(run) if run is not None else None, snapshot.cursor)
        places = (self._folds.place(key) for key in wanted)
        self._took(next((place for place in places if place is not None), 0))
        if before is not None:
            self.scroll_to(y=self._at - above, animate=False)
            self._show_selected()

    def _took(self, at: int) -> None:
        """Handle changed lines, and select the line `at`."""
        self._at = at
        self.virtual_size = Size(0, len(self._lines))
        self.repaint()
        self._show_selected()
        self.post_message(self.Selected(self.selected))

    def repaint(self) -> None:
        """Paint everything again, for another width, theme or time."""
        self._painter = None
        self._strips.clear()
        self.refresh()

    def toggle_dates(self) -> bool:
        self._dates = not self._dates
        self.repaint()
        return self._dates

    def show_found(self, oids: frozenset[bytes], text: str) -> None:
        """Highlight the nodes that a search found."""
        self._found, self._wanted = oids, text.casefold()
        self.repaint()

    def show_marked(self, oid: bytes | None) -> None:
        self._marked = oid
        self.repaint()

    # The selection.

    @property
    def _lines(self) -> list[Row]:
        return self._folds.lines

    @property
    def selected(self) -> bytes | None:
        row = self._lines[self._at] if self._lines else None
        return row.node.oid if row is not None and row.node is not None else None

    @property
    def run(self) -> Row | None:
        """The selected folded run, if any."""
        row = self._lines[self._at] if self._lines else None
        return row if row is not None and row.folded else None

    def select(self, oid: bytes) -> None:
        """Select a node, and unfold the run that contains it."""
        lines = self._lines
        place = self._folds.reveal(oid)
        if place is None:
            return
        if self._lines is lines:
            self._go(place)
        else:
            self._took(place)

    def walk(self, steps: int) -> None:
        """Move the selection down, or up if `steps` is negative. Joins are skipped."""
        step = 1 if steps > 0 else -1
        at = self._at
        for _ in range(abs(steps)):
            next_one = at + step
            while 0 <= next_one < len(self._lines) and not is_selectable(self._lines[next_one]):
                next_one += step
            if not 0 <= next_one < len(self._lines):
                break
            at = next_one
        self._go(at)

    def _go(self, at: int) -> None:
        before, self._at = self._at, at
        if at == before:
            return
        self.refresh_line(before)
        self.refresh_line(at)
        self._show_selected()
        self.post_message(self.Selected(self.selected))

    def _show_selected(self) -> None:
        height = self.scrollable_content_region.height or self.size.height
        if height > 0:
            margin = min(_MARGIN, (height - 1) // 2)
            self.scroll_to_region(Region(0, self._at - margin, 1, 1 + 2 * margin), animate=False, x_axis=False)

    def toggle_fold(self) -> bool:
        """Unfold the selected run, or fold the run around the selected node.

        Returns whether there was a run.
        """
        place = self._folds.toggle(self._at) if self._lines else None
        if place is None:
            return False
        self._took(place)
        return True

    def toggle_folds(self) -> None:
        """Unfold every run, or fold all if every run is open."""
        place = self._folds.toggle_all(self._at) if self._lines else None
        if place is not None:
            self._took(place)

    # Painting.

    def render_line(self, y: int) -> Strip:
        at, width = self.scroll_offset.y + y, self.size.width
        if at >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        strip = self._strips.get(at)
        if strip is None:
            strip = self._strips[at] = self._paint(self._lines[at], width)
        return self._highlighted(strip, width) if at == self._at else strip

    def _paint(self, row: Row, width: int) -> Strip:
        assert self._snapshot is not None
        gutter = _GUTTER if width >= _ROOMY else 1
        if self._painter is None:
            snapshot = self._snapshot
            self._painter = Painter(
                snapshot.graph,
                self._glyphs,
                self._clock(),
                max(width - gutter - 1, 1),  # minus the column of the scrollbar
                marks=snapshot.marks,
                dates=self._dates,
                open=snapshot.open,
            )
        sign, role = " ", tree_rows.SPACE
        if row.node is not None and row.node.oid == self._marked:
            sign, role = "m", "marked"
        elif row.node is not None and row.node.oid in self._found:
            sign, role = "/", "found"
        segments = [Segment(sign.rjust(gutter), self._style(role))]
        for text, role in self._painter.parts(row):
            segments += self._segments(text, role)
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _segments(self, text: str, role: str) -> Iterator[Segment]:
        """Yield the segments of a part, with the searched text highlighted."""
        style, wanted, low = self._style(role), self._wanted, text.casefold()
        if wanted and role in _SEARCHED and len(low) == len(text):
            while (at := low.find(wanted)) >= 0:
                end = at + len(wanted)
                yield Segment(text[:at], style)
                yield Segment(text[at:end], self._style("found"))
                text, low = text[end:], low[end:]
        yield Segment(text, style)

    def _style(self, role: str) -> Style:
        return self.get_component_rich_style(f"tree--{role}")

    def _highlighted(self, strip: Strip, width: int) -> Strip:
        chosen = self.get_component_rich_style("tree--selected", partial=True)
        bar = Segment(self._bar, self._style(tree_rows.HERE))
        body = [Segment(text, (style or Style()) + chosen) for text, style, _ in strip.crop(1, width)]
        return Strip([Segment(bar.text, (bar.style or Style()) + chosen), *body], width)

    # Size and mouse.

    def on_resize(self) -> None:
        self.repaint()
        if not self._placed and self.size.height > 0:
            self._placed = True
            self.scroll_to(y=self._at - self.size.height // 2, animate=False)
        self._show_selected()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def on_click(self, event: events.Click) -> None:
        at = self.scroll_offset.y + event.y
        if 0 <= at < len(self._lines) and is_selectable(self._lines[at]):
            self._go(at)
            if self.run is not None:
                self.toggle_fold()
