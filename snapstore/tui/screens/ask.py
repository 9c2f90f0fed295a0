"""Screens whose answer changes files. They may come up at any moment, also while somebody types: keys that were on
their way before it could be read are no answer to it, nor are those that follow them without a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from textual import events
from textual.timer import Timer

from snapstore.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from snapstore.tui.move_keys import ActingApp

T = TypeVar("T")


class AskingScreen(Overlay[T]):
    """`#keys` tells how to answer, and is shown as soon as answers are heard."""

    DEFAULT_CSS = """
    AskingScreen #keys { visibility: hidden; }
    AskingScreen.-hears #keys { visibility: visible; }
    """
    app: ActingApp

    def __init__(self) -> None:
        super().__init__()
        self._pause: Timer | None = None

    @property
    def listening(self) -> bool:
        return self.has_class("-hears")

    def hears(self, event: events.Key) -> bool:
        """Whether a key is meant for this screen. One that is not begins the pause anew."""
        if not self.listening and self._pause is not None:
            self._pause.stop()
            self._begin_pause()
        return self.listening

    def on_mount(self) -> None:
        self.call_after_refresh(self._begin_pause)  # it is painted then

    def _begin_pause(self) -> None:
        self._pause = self.set_timer(self.app.reading_time, lambda: self.add_class("-hears"))
