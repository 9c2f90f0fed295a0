"""The interface of the terminal app that its screens and widgets use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from textual.app import App
from textual.reactive import reactive
from textual.screen import Screen

from snapstore.api import Session, Store
from snapstore.timeline.history.operations import Operation
from snapstore.tui.snapshot import Snapshot


class TreeApp(App[None]):
    """The state and the actions of the app that screens and widgets share.

    Screens and widgets import this class, and `app` and its keys import screens and widgets.
    """

    selected: reactive[bytes | None] = reactive(None, init=False)  # the selected node; None for a folded run
    marked: reactive[bytes | None] = reactive(None, init=False)
    snapshot: Snapshot
    clock: Callable[[], float]
    reading_time = 0.4  # seconds without a key before the next key counts as an answer to what was just shown

    def store(self, *, recover: bool = True) -> AbstractContextManager[Store]:
        """Open the store. Call from threads only."""
        raise NotImplementedError

    async def refresh_snapshot(self, select: bytes | None = None) -> None:
        """Read and show the current tree."""
        raise NotImplementedError

    async def change(self, made: Callable[[Session], Operation | None], what: str) -> None:
        """Change branches or checkpoints, and show the result."""
        raise NotImplementedError

    def closed(self, screen: Screen[Any]) -> None:
        """Handle the end of a screen over the tree."""
        raise NotImplementedError
