"""The base class of screens over the tree: input lines, lists, plans."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from snapstore.tui.tree_app import TreeApp

T = TypeVar("T")


class Overlay(ModalScreen[T]):
    """A modal screen that adapts to the height of the terminal.

    In a low terminal the `.box` fills the screen, and its list gets the height that the texts around it leave.
    """

    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-tiny"), (12, "-low"), (24, "-roomy")]  # noqa: RUF012
    app: TreeApp
    DEFAULT_CSS = """
    Overlay.-tiny .box, Overlay.-low .box {
        width: 100%; max-width: 100%; height: 100%; max-height: 100%; border: none; padding: 0;
    }
    Overlay.-tiny .box LinesView, Overlay.-low .box LinesView {
        height: 1fr; max-height: 100%; min-height: 2; margin: 0;
    }
    Overlay.-tiny .roomy { display: none; }
    """

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Close the screen, once.

        On a second call Textual would close whatever screen is on top, and end the app if none is left.
        """
        if not self.is_current:
            return AwaitComplete()
        self.app.closed(self)
        return super().dismiss(result)
