"""The line above: where one is. The lines below: what was said last, or the keys to begin with."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from snapstore.timeline.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.tui.snapshot import Snapshot

KEYS = (
    ("j k", "look"),
    ("Enter", "go"),
    ("u", "undo"),
    ("^R", "redo"),
    ("d", "diff"),
    ("/", "search"),
    ("?", "keys"),
    ("q", "quit"),
)


class TitleBar(Static):
    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def show(self, snapshot: Snapshot, project: str) -> None:
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(safe(project), "bold")
        text.append(f"  {safe(snapshot.session)} · {safe(snapshot.branch)}")
        self.update(text)


class StatusBar(Static):
    DEFAULT_CSS = """
    StatusBar { height: auto; min-height: 1; max-height: 3; background: $panel; padding: 0 1; }
    StatusBar.-error { color: $error; }
    """

    def on_mount(self) -> None:
        self.update(Text("  ".join(f"{key} {what}" for key, what in KEYS), no_wrap=True, overflow="ellipsis"))

    def say(self, text: str, *, error: bool) -> None:
        self.set_class(error, "-error")
        self.update(Text(text))
