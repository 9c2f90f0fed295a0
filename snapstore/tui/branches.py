"""`b`: the branches of the session, to look at, switch to, rename, archive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from snapstore.timeline.branch import ARCHIVED, CURRENT, Branch
from snapstore.timeline.branches import Branches
from snapstore.timeline.ops import Operation
from snapstore.timeline.painting import whose
from snapstore.timeline.session import Session
from snapstore.timeline.text import age, cells, clip, first_line, safe
from snapstore.timeline.wording import turns_text
from snapstore.tui.lines import styled
from snapstore.tui.linescreen import LineScreen
from snapstore.tui.moves import trouble
from snapstore.tui.overlay import Overlay
from snapstore.tui.picklist import PickList

if TYPE_CHECKING:
    from snapstore.tui.acting import ActingApp

WIDEST_NAME = 30
PATIENCE = 5.0  # seconds
KEYS = "Enter switches · r renames · a archives, or lists again · Esc leaves"
_STYLES = {CURRENT: "bold $here", ARCHIVED: "$quiet"}


class BranchesScreen(Overlay[str | None]):
    """Gives the branch to switch to. What changes names is done here, and the list stays."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "switch", "switch"),
        Binding("r", "rename", "rename"),
        Binding("a", "archive", "archive"),
        Binding("escape,q,b,ctrl+c", "leave", "leave"),
    ]
    DEFAULT_CSS = """
    BranchesScreen { align: center middle; }
    BranchesScreen .box {
        width: 94%; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1;
    }
    BranchesScreen PickList { max-height: 60vh; background: $surface; }
    BranchesScreen #notice { color: $warning; height: auto; display: none; }
    BranchesScreen .quiet { color: $quiet; }
    """
    app: ActingApp

    def __init__(self) -> None:
        super().__init__()
        self._found: list[Branch] = []
        self._shown = asyncio.Event()

    async def read(self) -> None:
        """Waits for the rows: of keys typed ahead a `j` must not fall before them and its `a` on another branch."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._shown.wait(), PATIENCE)

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield PickList(id="list")
            yield Static("", id="notice")
            yield Static(styled(KEYS), classes="quiet")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(PickList))
        self._list()

    @work(group="branches")
    async def _list(self, at: str = "", notice: str = "") -> None:
        try:
            self._found = await asyncio.to_thread(self._read)
        except Exception as error:  # whatever is wrong with the store, it is told here
            notice = trouble(error)
        width = min(max((cells(safe(branch.name)) for branch in self._found), default=0), WIDEST_NAME)
        places = {branch.name: number for number, branch in enumerate(self._found)}
        rows = [_row(branch, width, self.app.clock()) for branch in self._found]
        self.query_one(PickList).show_rows(rows, places.get(at, 0))
        told = self.query_one("#notice", Static)
        told.update(styled(notice))
        told.display = bool(notice)
        self._shown.set()

    def _read(self) -> list[Branch]:
        with self.app.store(recover=False) as store:
            return Branches(store.session(self.app.snapshot.session)).list()

    @property
    def _picked(self) -> Branch | None:
        return self._found[self.query_one(PickList).picked] if self._found else None

    def action_switch(self) -> None:
        if self._picked is not None:
            self.dismiss(self._picked.name)

    def action_leave(self) -> None:
        self.dismiss(None)

    async def action_rename(self) -> None:
        branch = self._picked
        if branch is None:
            return

        def named(name: str | None) -> None:
            new = (name or "").strip()
            if new and new != branch.name:
                told = f"Branch {safe(branch.name)} is now called {safe(new)}"
                self._change(lambda session: Branches(session).rename(branch.name, new), told, new)

        await self.app.push_screen(LineScreen(f"New name for {safe(branch.name)}: ", branch.name), named)

    def action_archive(self) -> None:
        branch = self._picked
        if branch is None:
            return
        name = branch.name
        if branch.state == ARCHIVED:
            told = f"Branch {safe(name)} is listed again"
            self._change(lambda session: Branches(session).unarchive(name), told, name)
        else:
            told = f"Branch {safe(name)} is in the archive, whole"
            self._change(lambda session: Branches(session).archive(name), told, name)

    @work(group="branches")
    async def _change(self, made: Callable[[Session], Operation], told: str, at: str) -> None:
        notice = f"{told}."
        try:
            await self.app.change(made, told)
        except Exception as error:
            await self.app.refresh_snapshot()
            notice = trouble(error)
        self._list(at, notice)


def _row(branch: Branch, width: int, now: float) -> Content:
    """`@ main-2  3 turns  2m ago  Branch from turn 1 · Add a login function`"""
    name = clip(safe(branch.name), width)
    name += " " * (width - cells(name))
    mark = "@ " if branch.state == CURRENT else "  "
    parts = ["archived"] if branch.state == ARCHIVED else []
    parts += [whose(branch.owner)] if branch.owner is not None else []
    parts += [branch.label] if branch.label != branch.name else []
    parts += [f"◆ {', '.join(branch.pinned)}"] if branch.pinned else []
    parts.append(first_line(branch.prompt) or ("(no prompt)" if branch.turns else "(no turns yet)"))
    style = _STYLES.get(branch.state, "")
    columns = f"  {turns_text(branch.turns):>8}  {age(branch.seconds, now):<10}  "
    return styled((mark + name, style), (columns, "$quiet"), (" · ".join(parts), "$quiet" if style == "$quiet" else ""))
