"""The screen of `s`: the recorded sessions, each with its agent sessions below it.

Enter shows the tree of another session, and changes nothing.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from snapstore.base.text import ago, first_line, safe
from snapstore.surface.tree_rows import whose
from snapstore.surface.wording import turns_text
from snapstore.timeline.history.agent_sessions import SessionLine, describe, fork_tree, read_sessions
from snapstore.tui.move_steps import trouble
from snapstore.tui.screens.pick import PickScreen
from snapstore.tui.widgets.lines import styled


class SessionsScreen(PickScreen[str | None]):
    """Returns the session to show."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "look", "show"),
        Binding("escape,q,s,ctrl+c", "leave", "close"),
    ]
    KEYS = "Enter show its tree · Esc close"

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []  # by row

    @work(group="sessions")
    async def fill(self) -> None:
        lines, notice = list[SessionLine](), ""
        try:
            lines = await asyncio.to_thread(self._read)
        except Exception as error:  # whatever is wrong with the store is shown here
            notice = trouble(error)
        shown, now = self.app.snapshot.session, self.app.clock()
        rows = [(line.name, row) for line in lines for row in _rows(line, line.name == shown, now)]
        self._names = [name for name, _ in rows]
        self.show([row for _, row in rows], self._names.index(shown) if shown in self._names else 0, notice)

    def _read(self) -> list[SessionLine]:
        with self.app.store(recover=False) as store:
            return read_sessions(store)

    def action_look(self) -> None:
        if self._names:
            self.dismiss(self._names[self.picked])


def _rows(line: SessionLine, shown: bool, now: float) -> list[Content]:
    """Return the row of a session, and below it the tree of its agent sessions.

    The row reads `@ claude-3f2a9c1d  5 turns, 2m ago  Add a login form`. The rows below say which agent session was
    forked from which, and after which turn.
    """
    name = styled((("@ " if shown else "  ") + safe(line.name), "bold $here" if shown else "bold"))
    when = f"  {turns_text(line.turns)}, {ago(line.last_active, now)}  " if line.last_active else "  cannot be read  "
    parts = [whose(line.owner)] if line.owner is not None else []
    parts += [first_line(line.prompt)] if line.prompt else []
    rows = [Content.assemble(name, styled((when, "$quiet"), " · ".join(parts)))]
    for lead, one in fork_tree(line):
        style = "$here" if one.current else ""
        rows.append(styled((f"    {lead}", "$lane"), (safe(one.known.id), style), (f"  {describe(one)}", "$quiet")))
    return rows
