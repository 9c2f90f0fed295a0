"""A screen with one input line at the bottom, for `:` commands and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label

from snapstore.tui.screens.overlay import Overlay

LONGEST = 1000


class LineScreen(Overlay[str | None]):
    """Returns the typed text. Up and down recall earlier lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", show=False, priority=True),
        Binding("escape,ctrl+c", "leave", show=False, priority=True),
        Binding("backspace", "rub_out", show=False, priority=True),
        Binding("up", "recall(-1)", show=False, priority=True),
        Binding("down", "recall(1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    LineScreen { background: transparent; }
    LineScreen Horizontal { height: 1; dock: bottom; background: $panel; }
    LineScreen Label { width: auto; max-width: 50%; color: $accent; text-style: bold; }
    LineScreen Input { width: 1fr; background: $panel; }
    LineScreen Input:focus { background-tint: $foreground 0%; }
    """

    def __init__(self, label: str, value: str = "", *, typed: Sequence[str] = (), known: Iterable[str] = ()) -> None:
        super().__init__()
        self._label = label
        self._value = value
        self._typed = [*typed, value]
        self._place = len(typed)
        self._known = list(known)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(self._label, markup=False)
            suggester = SuggestFromList(self._known, case_sensitive=True) if self._known else None
            yield Input(self._value, suggester=suggester, max_length=LONGEST, compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Input))  # at once: the next key may already have arrived

    def action_enter(self) -> None:
        self.dismiss(self.query_one(Input).value)

    def action_rub_out(self) -> None:
        """Delete a character, or leave if the line is empty, as in Vim."""
        line = self.query_one(Input)
        if line.value:
            line.action_delete_left()
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_recall(self, step: int) -> None:
        place = self._place + step
        if 0 <= place < len(self._typed):
            self._place = place
            line = self.query_one(Input)
            line.value = self._typed[place]
            line.cursor_position = len(line.value)
