"""The screen of `b`: the session's branches, to switch to, rename or archive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from snapstore.api import Session
from snapstore.base.text import age, cells, clip, first_line, safe
from snapstore.surface.tree_rows import whose
from snapstore.surface.wording import turns_text
from snapstore.timeline.history.branch import ARCHIVED, CURRENT, Branch
from snapstore.timeline.history.operations import Operation
from snapstore.timeline.moves.branches import Branches
from snapstore.tui.move_steps import trouble
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.screens.pick import PickScreen
from snapstore.tui.widgets.lines import styled

WIDEST_NAME = 30
_STYLES = {CURRENT: "bold $here", ARCHIVED: "$quiet"}


class BranchesScreen(PickScreen[str | None]):
    """Returns the branch to switch to. Renaming and archiving keep the list open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "switch", "switch"),
        Binding("r", "rename", "rename"),
        Binding("a", "archive", "archive"),
        Binding("escape,q,b,ctrl+c", "leave", "close"),
    ]
    KEYS = "Enter switch · r rename · a archive or unarchive · Esc close"

    def __init__(self) -> None:
        super().__init__()
        self._found: list[Branch] = []

    @work(group="branches")
    async def fill(self, at: str = "", notice: str = "") -> None:
        try:
            self._found = await asyncio.to_thread(self._read)
        except Exception as error:  # whatever is wrong with the store is shown here
            notice = trouble(error)
        width = min(max((cells(safe(branch.name)) for branch in self._found), default=0), WIDEST_NAME)
        places = {branch.name: number for number, branch in enumerate(self._found)}
        rows = [_row(branch, width, self.app.clock()) for branch in self._found]
        self.show(rows, places.get(at, 0), notice)

    def _read(self) -> list[Branch]:
        with self.app.store(recover=False) as store:
            return Branches(store.session(self.app.snapshot.session)).list()

    @property
    def _picked(self) -> Branch | None:
        return self._found[self.picked] if self._found else None

    def action_switch(self) -> None:
        if self._picked is not None:
            self.dismiss(self._picked.name)

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
            told = f"Branch {safe(name)} is archived; nothing of it is lost"
            self._change(lambda session: Branches(session).archive(name), told, name)

    @work(group="branches")
    async def _change(self, made: Callable[[Session], Operation], told: str, at: str) -> None:
        notice = f"{told}."
        try:
            await self.app.change(made, told)
        except Exception as error:
            await self.app.refresh_snapshot()
            notice = trouble(error)
        self.fill(at, notice)


def _row(branch: Branch, width: int, now: float) -> Content:
    """Return a row: `@ main-2  3 turns  2m ago  Branch from turn 1 · Add a form`."""
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
