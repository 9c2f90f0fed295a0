"""The screen that resolves conflicts, file by file (G-38).

The choices are keep mine, take theirs, merge, and merge with markers.

Nothing is written before all conflicts are resolved. What is on disk is saved first, so neither side is ever lost.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Static

from snapstore.base.text import files_text, path_text, safe
from snapstore.surface.wording import remark
from snapstore.timeline.moves.plan import FORCE, MARKERS, MERGE, SKIP, PathMove
from snapstore.timeline.moves.three_way import ThreeWay, three_way
from snapstore.tui.move_steps import PlannedMove, trouble
from snapstore.tui.screens.ask import AskingScreen
from snapstore.tui.tree_app import TreeApp
from snapstore.tui.widgets.lines import Lines, LinesView, styled
from snapstore.tui.widgets.patch import TextLines, changes_of, language_of
from snapstore.tui.widgets.pick_list import PickList

SHORT = {SKIP: "mine", FORCE: "theirs", MERGE: "merge", MARKERS: "markers"}
WORDS = {SKIP: "keep mine", FORCE: "take theirs", MERGE: "merge", MARKERS: "merge, with markers"}
TELL_EVERY = 50  # files
KEYS = "o keep mine · t take theirs · m merge · x merge with markers (O T M X: all) · Enter go · Esc cancel"


class ConflictScreen(AskingScreen[dict[bytes, str] | None]):
    """Returns how to resolve each file, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"choose('{way}')", WORDS[way]) for key, way in zip("otmx", WORDS, strict=True)),
        *(Binding(key, f"choose_all('{way}')", show=False) for key, way in zip("OTMX", WORDS, strict=True)),
        Binding("enter", "go", "go", priority=True),
        Binding("escape,q,ctrl+c", "leave", "cancel"),
        Binding("J,down", "pick(1)", show=False),
        Binding("K,up", "pick(-1)", show=False),
    ]
    DEFAULT_CSS = """
    ConflictScreen { background: $background; padding: 0 1; }
    ConflictScreen:ansi { background: ansi_default; }
    ConflictScreen #files { height: auto; max-height: 30%; margin: 1 0 0 0; }
    ConflictScreen #sides { height: 2fr; layout: vertical; }
    ConflictScreen.-wide #sides { layout: horizontal; height: 1fr; }
    ConflictScreen .pane { height: 1fr; width: 1fr; border: round $lane; padding: 0 1; }
    ConflictScreen .pane { border-title-color: $foreground; }
    ConflictScreen .pane:focus { border: round $primary; }
    ConflictScreen.-short .pane, ConflictScreen.-short #sides { display: none; }
    ConflictScreen.-short #files { max-height: 1fr; margin: 0; }
    ConflictScreen #notice { color: $warning; height: auto; }
    ConflictScreen #keys { color: $quiet; height: auto; }
    """
    VERTICAL_BREAKPOINTS = None  # inherited from the app
    app: TreeApp

    def __init__(self, planned: PlannedMove, notice: str = "") -> None:
        super().__init__()
        self._planned = planned
        self._notice = notice
        self._conflicts: list[PathMove] = planned.plan.conflicts
        self._chosen: dict[bytes, str] = {}
        self._asked: dict[bytes, object] = {}  # choices that are still being computed
        self._sides: dict[bytes, ThreeWay] = {}

    def compose(self) -> ComposeResult:
        changed = f"{files_text(len(self._conflicts))} changed since. "
        wanted = f"To {self._planned.intent}, choose how to resolve each:"
        yield Static(styled((changed, "bold $warning"), (wanted, "bold")))
        yield PickList(id="files")
        with Container(id="sides"):
            yield LinesView(id="mine", classes="pane")
            yield LinesView(id="theirs", classes="pane")
        yield LinesView(id="merged", classes="pane")
        yield Static("", id="notice")
        yield Static(styled(KEYS), id="keys")

    def on_mount(self) -> None:
        self._list()
        self.set_focus(self.query_one("#files"))
        self._say(self._notice)
        self._show(self._move)

    # The files.

    def _list(self) -> None:
        picklist = self.query_one("#files", PickList)
        picklist.show_rows([self._row(move) for move in self._conflicts], picklist.picked)

    def _row(self, move: PathMove) -> Content:
        way = self._chosen.get(move.path)
        chosen = (f"{SHORT[way]:<11}", "bold $success") if way else (f"{'undecided':<11}", "$warning")
        return styled(chosen, path_text(move.path), (f"  {remark(move)}", "$quiet"))

    @property
    def _move(self) -> PathMove:
        return self._conflicts[self.query_one("#files", PickList).picked]

    def on_pick_list_picked(self) -> None:
        self._show(self._move)

    def action_pick(self, step: int) -> None:
        self.query_one("#files", PickList).action_pick(step)

    # The three sides of the selected file.

    @work(group="sides", exclusive=True)
    async def _show(self, move: PathMove) -> None:
        sides = await self._read(move)
        shown = await asyncio.to_thread(_panes, move, sides)  # comparing large files is slow
        for name, (title, lines) in shown.items():
            pane = self.query_one(f"#{name}", LinesView)
            pane.border_title = Text(safe(title))
            if isinstance(lines, str):
                pane.show_lines([styled((lines, "$quiet italic"))])
            else:
                pane.show_made(lines)

    async def _read(self, move: PathMove) -> ThreeWay:
        if move.path not in self._sides:
            try:
                self._sides[move.path] = await asyncio.to_thread(self._three_way, move)
            except Exception as error:  # whatever is wrong with the store is shown here
                return ThreeWay(why=trouble(error))
        return self._sides[move.path]

    def _three_way(self, move: PathMove) -> ThreeWay:
        with self.app.store(recover=False) as store:
            return three_way(store.session(self._planned.plan.session), self._planned.plan, move.path)

    # Choosing.

    def action_choose(self, way: str) -> None:
        self._choose(way, [self._move])

    def action_choose_all(self, way: str) -> None:
        self._choose(way, self._conflicts)

    def _choose(self, way: str, moves: list[PathMove]) -> None:
        """Record a choice for some files.

        The last choice for a file counts, even if an earlier one takes longer to compute.
        """
        asked = object()
        self._asked |= {move.path: asked for move in moves}
        if way in (SKIP, FORCE):
            self._chose([self._decide(way, move, self._never(way, move)) for move in moves])
        else:
            self._compute(way, moves, asked)

    @work(group="choose")
    async def _compute(self, way: str, moves: list[PathMove], asked: object) -> None:
        refused = []
        for number, move in enumerate(moves):
            if number % TELL_EVERY == TELL_EVERY - 1:
                self._chose([f"{number + 1:,} of {len(moves):,} computed…"])
            why = self._never(way, move) or await self._why_not(way, move)
            if self._asked.get(move.path) is asked:
                refused.append(self._decide(way, move, why))
        self._chose(refused)

    def _decide(self, way: str, move: PathMove, why: str) -> str:
        del self._asked[move.path]
        if why:
            return f"{path_text(move.path)} cannot be resolved that way: {why}."
        self._chosen[move.path] = way
        return ""

    def _chose(self, told: list[str]) -> None:
        self._list()
        self._say(next((text for text in reversed(told) if text), ""))

    def _never(self, way: str, move: PathMove) -> str:
        if way != SKIP and isinstance(move.found, str):
            return f"{move.found} is there, which cannot be saved"
        return ""

    async def _why_not(self, way: str, move: PathMove) -> str:
        sides = await self._read(move)
        if sides.merged is None or (way == MERGE and not sides.clean):
            return str(sides.why)
        return ""

    def action_go(self) -> None:
        if self._asked:
            self._say(f"{files_text(len(self._asked))} still being computed: please wait.")
            return
        undecided = [move for move in self._conflicts if move.path not in self._chosen]
        if undecided:
            self._say(f"{files_text(len(undecided))} undecided: choose for each of them.")
            picklist = self.query_one("#files", PickList)
            picklist.pick(self._conflicts.index(undecided[0]))
        else:
            self.dismiss(dict(self._chosen))

    def action_leave(self) -> None:
        self.dismiss(None)

    def _say(self, text: str) -> None:
        self.query_one("#notice", Static).update(styled(text))


def _panes(move: PathMove, sides: ThreeWay) -> dict[str, tuple[str, Lines | str]]:
    """Return a title and the lines below it for each of the three panes."""
    language, base = language_of(move.path), sides.base or ""

    def side(text: str | None, state: object) -> Lines | str:
        return changes_of(base, text, language) if text is not None else _absent(state)

    merged: tuple[str, Lines | str] = ("Merged", f"Cannot be merged: {sides.why}. Keep mine, or take theirs.")
    if sides.merged is not None:
        how = "both changes" if sides.clean else f"only with markers, {sides.why}"
        merged = (f"Merged: {how}", TextLines(sides.merged, language))
    return {
        "mine": ("Mine: the file on disk", side(sides.mine, move.found)),
        "theirs": ("Theirs: the result of this move", side(sides.theirs, move.wanted)),
        "merged": merged,
    }


def _absent(state: object) -> str:
    if state is None:
        return "deleted"
    return f"{state} is there" if isinstance(state, str) else "not text, or too large to show"
