"""Screens whose answer changes files.

Such a screen may appear at any moment, even while a person types. Keys pressed before the screen could be read are no
answer to it, and neither are keys that follow them without a pause.
"""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.timer import Timer

from snapstore.tui.screens.overlay import Overlay
from snapstore.tui.tree_app import TreeApp

T = TypeVar("T")


class AskingScreen(Overlay[T]):
    """A screen that accepts keys only after a pause; `#keys` is visible from then on."""

    DEFAULT_CSS = """
    AskingScreen #keys { visibility: hidden; }
    AskingScreen.-hears #keys { visibility: visible; }
    """
    app: TreeApp

    def __init__(self) -> None:
        super().__init__()
        self._pause: Timer | None = None

    @property
    def listening(self) -> bool:
        return self.has_class("-hears")

    def hears(self, event: events.Key) -> bool:
        """Return whether a key is meant for this screen. Any other key restarts the pause."""
        if not self.listening and self._pause is not None:
            self._pause.stop()
            self._begin_pause()
        return self.listening

    def on_mount(self) -> None:
        self.call_after_refresh(self._begin_pause)  # the screen is painted by then

    def _begin_pause(self) -> None:
        self._pause = self.set_timer(self.app.reading_time, lambda: self.add_class("-hears"))
