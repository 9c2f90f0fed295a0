"""What lies over the tree for a while: lines to type in, lists, plans."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

T = TypeVar("T")


class Overlay(ModalScreen[T]):
    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Once: Textual would close whatever is on top instead, and end the app where nothing is left."""
        return super().dismiss(result) if self.is_current else AwaitComplete()
