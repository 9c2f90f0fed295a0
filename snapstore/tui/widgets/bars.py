"""The title bar, which shows the cursor, and the status bar.

The status bar shows the last message, or the main keys before the first message.
"""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget
from textual.widgets import Static

from snapstore.base.text import cells, clip, safe
from snapstore.surface.tree_rows import OPEN, whose
from snapstore.tui.snapshot import Snapshot

# In the order of display, each with its priority: in a narrow terminal the highest numbers are dropped first.
KEYS = (
    ("j k", "look", 3),
    ("Enter", "go", 4),
    ("u", "undo", 5),
    ("^R", "redo", 6),
    ("/", "search", 7),
    ("d", "diff", 8),
    (":", "command", 9),
    ("b", "branches", 10),
    ("m", "mark", 12),
    ("t", "time", 11),
    ("?", "keys", 1),
    ("q", "quit", 2),
)


class TitleBar(Widget):
    """The project, the session's cursor and the size of the tree."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; padding: 0 1; }
    TitleBar:nocolor { text-style: reverse; }
    """

    def __init__(self, project: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._project = safe(project)
        self._where, self._extent = "", ""

    def show(self, snapshot: Snapshot) -> None:
        graph = snapshot.graph
        turn = graph.turn_of(snapshot.cursor)
        undone = sum(graph.nodes[oid].turn is not None for oid in snapshot.undone)
        owner = graph.owner_of(snapshot.branch)
        branch = safe(snapshot.branch) + (f" ({whose(owner)})" if owner is not None else "")
        self._where = f"{safe(snapshot.session)} · {branch} · {f'turn {turn}' if turn else 'the start'}"
        if undone:
            self._where += f", {undone:,} undone"
        if snapshot.open:
            self._where += f", {OPEN}"
        branches = len(graph.branches) + len(graph.archived)
        self._extent = "1 turn" if snapshot.turns == 1 else f"{snapshot.turns:,} turns"
        if branches > 1:
            self._extent += f" · {branches:,} branches"
        self.refresh()

    def render(self) -> Text:
        width = self.content_size.width
        text = Text(clip(self._project, width), "bold", no_wrap=True)
        left = width - cells(text.plain)
        text.append(clip(f"  {self._where}", left), "not bold")
        left = width - cells(text.plain)
        if left > cells(self._extent) + 2:
            text.append(self._extent.rjust(left), "not bold")
        return text


class StatusBar(Static):
    """At most three lines of plain text."""

    DEFAULT_CSS = """
    StatusBar { height: auto; min-height: 1; max-height: 3; background: $panel; padding: 0 1; }
    StatusBar.-error { color: $error; text-style: bold; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.said = ""

    @property
    def complains(self) -> bool:
        return self.has_class("-error")

    def on_resize(self) -> None:
        if not self.said:
            self._show_keys(self.content_size.width)

    def _show_keys(self, width: int) -> None:
        """Show the keys that fit into the width, by priority."""
        room, shown = width + 3, set()
        for key, what, _ in sorted(KEYS, key=lambda row: row[2]):
            room -= cells(f"{key} {what}") + 3
            if room < 0:
                break
            shown.add(key)
        text = Text(no_wrap=True)
        for key, what, _ in KEYS:
            if key in shown:
                text.append("   " if text else "")
                text.append(key, "bold")
                text.append(f" {what}")
        self.update(text)

    def say(self, text: str, *, error: bool = False) -> None:
        self.said = text
        self.set_class(error, "-error")
        if text:
            self.update(Text(text))
        else:
            self._show_keys(self.content_size.width)
