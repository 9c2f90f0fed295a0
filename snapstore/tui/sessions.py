"""`s`: the sessions recorded here, the agent's own below each. Enter shows another one's tree; nothing moves."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from snapstore.timeline.lineage import SessionLine, about, drawn, read_sessions
from snapstore.timeline.painting import whose
from snapstore.timeline.text import ago, first_line, safe
from snapstore.timeline.wording import turns_text
from snapstore.tui.lines import styled
from snapstore.tui.moves import trouble
from snapstore.tui.overlay import Overlay
from snapstore.tui.picklist import PickList

if TYPE_CHECKING:
    from snapstore.tui.acting import ActingApp

PATIENCE = 5.0  # seconds
KEYS = "Enter shows its tree · Esc leaves"


class SessionsScreen(Overlay[str | None]):
    """Gives the session to look at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "look", "look at it"),
        Binding("escape,q,s,ctrl+c", "leave", "leave"),
    ]
    DEFAULT_CSS = """
    SessionsScreen { align: center middle; }
    SessionsScreen .box {
        width: 94%; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1;
    }
    SessionsScreen PickList { max-height: 60vh; background: $surface; }
    SessionsScreen #notice { color: $warning; height: auto; display: none; }
    SessionsScreen .quiet { color: $quiet; }
    """
    app: ActingApp

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []  # by row
        self._shown = asyncio.Event()

    async def read(self) -> None:
        """Waits for the rows: keys typed ahead are for them."""
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

    @work(group="sessions")
    async def _list(self) -> None:
        try:
            lines = await asyncio.to_thread(self._read)
        except Exception as error:  # whatever is wrong with the store, it is told here
            lines = []
            told = self.query_one("#notice", Static)
            told.update(styled(trouble(error)))
            told.display = True
        shown, now = self.app.snapshot.session, self.app.clock()
        rows = [(line.name, row) for line in lines for row in _rows(line, line.name == shown, now)]
        self._names = [name for name, _ in rows]
        picked = self._names.index(shown) if shown in self._names else 0
        self.query_one(PickList).show_rows([row for _, row in rows], picked)
        self._shown.set()

    def _read(self) -> list[SessionLine]:
        with self.app.store(recover=False) as store:
            return read_sessions(store)

    def action_look(self) -> None:
        if self._names:
            self.dismiss(self._names[self.query_one(PickList).picked])

    def action_leave(self) -> None:
        self.dismiss(None)


def _rows(line: SessionLine, shown: bool, now: float) -> list[Content]:
    """`@ claude-3f2a9c1d  5 turns, 2m ago  Add a login form`; below it who was forked from whom, after which turn."""
    name = styled((("@ " if shown else "  ") + safe(line.name), "bold $here" if shown else "bold"))
    when = f"  {turns_text(line.turns)}, {ago(line.last_active, now)}  " if line.last_active else "  cannot be read  "
    parts = [whose(line.owner)] if line.owner is not None else []
    parts += [first_line(line.prompt)] if line.prompt else []
    rows = [Content.assemble(name, styled((when, "$quiet"), " · ".join(parts)))]
    for lead, one in drawn(line):
        style = "$here" if one["current"] else ""
        rows.append(styled((f"    {lead}", "$lane"), (safe(one["sessionId"]), style), (f"  {about(one)}", "$quiet")))
    return rows
