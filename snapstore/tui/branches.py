"""`b`: the branches of the session, to look at, switch to, rename, archive."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from snapstore.timeline.branch import ARCHIVED, CURRENT, Branch
from snapstore.timeline.branches import Branches
from snapstore.timeline.store import Store
from snapstore.timeline.text import age, cells, clip, first_line, safe
from snapstore.timeline.wording import turns_text
from snapstore.tui.lines import styled
from snapstore.tui.picklist import PickList

SWITCH, RENAME, ARCHIVE = "switch", "rename", "archive"
WIDEST_NAME = 30
KEYS = "Enter switches · r renames · a archives, or lists again · Esc leaves"
_STYLES = {CURRENT: "bold $here", ARCHIVED: "$quiet"}


def read_branches(opened: Callable[[], AbstractContextManager[Store]], session: str) -> list[Branch]:
    with opened() as store:
        return Branches(store.session(session)).list()


class BranchesScreen(ModalScreen[tuple[str, Branch] | None]):
    """Gives what is to be done with which."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose('switch')", "switch"),
        Binding("r", "choose('rename')", "rename"),
        Binding("a", "choose('archive')", "archive"),
        Binding("escape,q,b", "leave", "leave"),
    ]
    DEFAULT_CSS = """
    BranchesScreen { align: center middle; }
    BranchesScreen #branches {
        width: 94%; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1;
    }
    BranchesScreen PickList { max-height: 70vh; background: $surface; }
    BranchesScreen .quiet { color: $quiet; }
    """

    def __init__(self, found: list[Branch], now: float, at: str = "", notice: str = "") -> None:
        super().__init__()
        self._found = found
        self._now = now
        self._at = at
        self._notice = notice

    def compose(self) -> ComposeResult:
        with Vertical(id="branches"):
            yield PickList(id="list")
            if self._notice:
                yield Static(styled((self._notice, "$warning")))
            yield Static(styled(KEYS), classes="quiet")

    def on_mount(self) -> None:
        width = min(max((cells(safe(branch.name)) for branch in self._found), default=0), WIDEST_NAME)
        places = {branch.name: at for at, branch in enumerate(self._found)}
        view = self.query_one(PickList)
        view.show_rows([_row(branch, width, self._now) for branch in self._found], places.get(self._at, 0))
        view.focus()

    def action_choose(self, verb: str) -> None:
        if self._found:
            self.dismiss((verb, self._found[self.query_one(PickList).picked]))

    def action_leave(self) -> None:
        self.dismiss(None)


def _row(branch: Branch, width: int, now: float) -> Content:
    """`@ main-2  3 turns  2m ago  Branch from turn 1 · Add a login function`"""
    name = clip(safe(branch.name), width)
    name += " " * (width - cells(name))
    mark = "@ " if branch.state == CURRENT else "  "
    parts = ["archived"] if branch.state == ARCHIVED else []
    parts += [branch.label] if branch.label != branch.name else []
    parts += [f"◆ {', '.join(branch.pinned)}"] if branch.pinned else []
    parts.append(first_line(branch.prompt) or ("(no prompt)" if branch.turns else "(no turns yet)"))
    style = _STYLES.get(branch.state, "")
    columns = f"  {turns_text(branch.turns):>8}  {age(branch.seconds, now):<10}  "
    return styled((mark + name, style), (columns, "$quiet"), (" · ".join(parts), "$quiet" if style == "$quiet" else ""))
