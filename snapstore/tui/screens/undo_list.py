"""The screen of `:undolist`: the end of every line, newest first (S3-18).

Enter selects one, and changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from snapstore.surface.undo_list import ends, table
from snapstore.tui.screens.pick import PickScreen
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.widgets.lines import styled

_STYLES = {"current": "bold $here", "archived": "$quiet"}


class UndolistScreen(PickScreen[bytes | None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "look", "select"),
        Binding("escape,q,ctrl+c", "leave", "close"),
    ]
    KEYS = "Enter select · Esc close"

    def __init__(self, snapshot: Snapshot, now: float, narrow: bool) -> None:
        self._ends = ends(snapshot.graph)[::-1]
        head, *self._rows = table(self._ends, now, narrow=narrow)
        super().__init__(head)

    def fill(self) -> None:
        rows = [styled((row, _STYLES.get(end.state, ""))) for row, end in zip(self._rows, self._ends, strict=True)]
        self.show(rows, next((at for at, end in enumerate(self._ends) if end.state == "current"), 0))

    def action_look(self) -> None:
        self.dismiss(self._ends[self.picked].leaf.tip)
