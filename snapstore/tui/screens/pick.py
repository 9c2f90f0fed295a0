"""A box with a list to pick from, a line for errors and a line that names keys."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from snapstore.tui.screens.overlay import Overlay
from snapstore.tui.widgets.lines import styled
from snapstore.tui.widgets.pick_list import PickList

PATIENCE = 5.0  # seconds
T = TypeVar("T")


class PickScreen(Overlay[T]):
    DEFAULT_CSS = """
    PickScreen { align: center middle; }
    PickScreen .box {
        width: 94%; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1;
    }
    PickScreen PickList { max-height: 60vh; background: $surface; }
    PickScreen .line { text-wrap: nowrap; text-overflow: ellipsis; }
    PickScreen #notice { color: $warning; height: auto; display: none; }
    PickScreen .quiet { color: $quiet; }
    """
    KEYS: ClassVar[str]

    def __init__(self, head: str = "") -> None:
        super().__init__()
        self._head = head
        self._shown = asyncio.Event()

    async def read(self) -> None:
        """Wait for the rows, so that all keys typed ahead apply to the loaded list.

        Otherwise a `j` could be handled before the rows arrive, and the next key would act on the wrong row.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._shown.wait(), PATIENCE)

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            if self._head:
                yield Static(styled((f"  {self._head}", "bold")), classes="line")
            yield PickList(id="list")
            yield Static("", id="notice")
            yield Static(styled(self.KEYS), classes="quiet")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(PickList))
        self.fill()

    def fill(self) -> object:
        """Show the rows, at once or when they have been read."""
        raise NotImplementedError

    def show(self, rows: Sequence[Content], picked: int, notice: str = "") -> None:
        self.query_one(PickList).show_rows(rows, picked)
        told = self.query_one("#notice", Static)
        told.update(styled(notice))
        told.display = bool(notice)
        self._shown.set()

    @property
    def picked(self) -> int:
        return self.query_one(PickList).picked

    def action_leave(self) -> None:
        self.dismiss(None)
