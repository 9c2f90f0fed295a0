"""The screen of `?`: every key and command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from snapstore.tui.command_line import COMMANDS
from snapstore.tui.screens.overlay import Overlay

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Look (nothing changes)",
        (
            ("j k  ↓ ↑", "older, newer turn"),
            ("h l  ← →", "branch to the left, to the right"),
            ("a e", "fork point of the branch; its end"),
            (".", "where you are"),
            ("gg G", "top, bottom; PgUp PgDn by a page"),
            ("z Enter", "unfold a run of turns; z folds it again"),
            ("Z", "unfold all, fold all"),
            ("A", "show or hide archived branches"),
            ("/ n N", "search prompts, paths and names; next, previous"),
            ("d", "diff from where you are, the turn before, or the mark"),
            ("m", "mark a turn to compare with; again: unmark"),
            ("s", "sessions and their forks"),
            ("t", "switch between ages and times"),
            ("Tab", "to the panels and back; [ ] previous, next file"),
            ("Esc", "back to the tree; clear the search"),
        ),
    ),
    (
        "Move",
        (
            ("u", "undo the last turn"),
            ("Ctrl-R", "redo"),
            ("g- g+", "earlier, later in time, across all branches"),
            ("Enter", "go to the selected turn"),
            ("r", "undo only the selected turn, and keep later ones"),
            ("U", "undo the last move or branch change"),
            ("b", "branches: switch, rename, archive"),
            (":", "a command"),
        ),
    ),
    (
        "Other",
        (
            ("3j 2u", "a number before a key repeats it"),
            ("T", "light or dark theme"),
            ("?", "this help"),
            ("q", "quit; Ctrl-Z suspends, fg continues"),
        ),
    ),
)

SIGNS = (
    (">5<", "where you are"),
    ("{6}", "the next turn that redo goes to"),
    ("[9]", "the newest turn"),
    ("⑂ 2", "two branches continue from here"),
    ("[name]", "a checkpoint"),
    ("┆", "a folded run"),
)


class HelpScreen(Overlay[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,ctrl+c", "dismiss", "close"),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 76; max-width: 100%; height: auto; max-height: 100%;
        background: $surface; border: round $lane; border-title-color: $here; padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    HelpScreen Static { width: 1fr; padding-left: 2; }
    HelpScreen .heading { color: $here; text-style: bold; padding-left: 0; margin-top: 1; }
    HelpScreen .heading:first-child { margin-top: 0; }
    """

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = "Keys"
            yield from self._tables()

    def _tables(self) -> Iterator[Static]:
        commands = tuple((f":{name} {operand}".strip(), what) for name, (_, operand, what) in COMMANDS.items())
        for heading, rows in (*KEYS, ("Commands", commands), ("Signs", SIGNS)):
            yield Static(Text(heading), classes="heading")
            table = Table.grid(padding=(0, 2, 0, 0))
            table.add_column(max_width=24, style="bold")
            table.add_column()
            for keys, what in rows:
                table.add_row(Text(keys), Text(what))
            yield Static(table)

    def action_scroll(self, lines: int) -> None:
        box = self.query_one(VerticalScroll)
        box.scroll_relative(y=lines, animate=False)
