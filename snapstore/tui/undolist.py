"""`:undolist`: every end of the tree, newest first (S3-18). Enter looks at one; nothing moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from snapstore.timeline.undolist import ends, table
from snapstore.tui.lines import styled
from snapstore.tui.overlay import Overlay
from snapstore.tui.picklist import PickList

if TYPE_CHECKING:
    from snapstore.tui.snapshot import Snapshot

_STYLES = {"current": "bold $here", "archived": "$quiet"}


class UndolistScreen(Overlay[bytes | None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "look", "look at it"),
        Binding("escape,q,ctrl+c", "leave", "leave"),
    ]
    DEFAULT_CSS = """
    UndolistScreen { align: center middle; }
    UndolistScreen .box {
        width: 94%; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1;
    }
    UndolistScreen PickList { max-height: 60vh; background: $surface; }
    UndolistScreen .quiet { color: $quiet; }
    UndolistScreen .line { text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, snapshot: Snapshot, now: float, narrow: bool) -> None:
        super().__init__()
        graph = snapshot.graph
        self._ends = ends(graph)[::-1]
        head, *self._rows = table(self._ends, now, narrow=narrow)
        self._head = head

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(styled((f"  {self._head}", "bold")), classes="line")
            yield PickList(id="list")
            yield Static(styled("Enter looks at it · Esc leaves"), classes="quiet")

    def on_mount(self) -> None:
        rows = [styled((row, _STYLES.get(end.state, ""))) for row, end in zip(self._rows, self._ends, strict=True)]
        current = next((at for at, end in enumerate(self._ends) if end.state == "current"), 0)
        view = self.query_one(PickList)
        view.show_rows(rows, current)
        self.set_focus(view)

    def action_look(self) -> None:
        self.dismiss(self._ends[self.query_one(PickList).picked].leaf.tip)

    def action_leave(self) -> None:
        self.dismiss(None)
