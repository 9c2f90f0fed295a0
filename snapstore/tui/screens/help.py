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
        "Look (nothing moves)",
        (
            ("j k  ↓ ↑", "older, newer"),
            ("h l  ← →", "the branch to the left, to the right"),
            ("a e", "where the branch parts; its end"),
            (".", "where you are"),
            ("gg G", "top, bottom; PgUp PgDn a page"),
            ("z Enter", "unfold a run of turns; z folds it again"),
            ("Z", "unfold all, fold all"),
            ("A", "show archived branches, or not"),
            ("/ n N", "search prompts, paths and names; next, previous"),
            ("d", "differences: against where you are, the turn before, the mark"),
            ("m", "mark a node to compare with; again: no mark"),
            ("s", "sessions and their forks; Enter shows another"),
            ("t", "age or time"),
            ("Tab", "to the panels and back; [ ] file by file"),
            ("Esc", "back to the tree; forget the search"),
        ),
    ),
    (
        "Move",
        (
            ("u", "undo the last turn"),
            ("Ctrl-R", "redo"),
            ("g- g+", "earlier, later in time, across all branches"),
            ("Enter", "go to the selected node"),
            ("r", "take the selected turn out, whatever came after it"),
            ("U", "take the last move back"),
            ("b", "branches: switch, rename, archive"),
            (":", "a command"),
        ),
    ),
    (
        "Else",
        (
            ("3j 2u", "a number before a key: that often"),
            ("T", "light or dark"),
            ("?", "this"),
            ("q", "leave; Ctrl-Z to the shell, where fg comes back"),
        ),
    ),
)

SIGNS = (
    (">5<", "where you are"),
    ("{6}", "what redo enters"),
    ("[9]", "what was made last"),
    ("⑂ 2", "two ways lead on from here"),
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
