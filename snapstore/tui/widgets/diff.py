"""The diff panel, which shows the changes up to the selected node (S3-22).

The diff starts at the cursor, at the parent of the selected node, or at a marked node.
"""

from __future__ import annotations

import asyncio
from threading import Event
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.timer import Timer

from snapstore.base.text import files_text, safe
from snapstore.tui.move_steps import trouble
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.tree_app import TreeApp
from snapstore.tui.widgets.lines import LinesView, styled
from snapstore.tui.widgets.patch import PatchLines

PAUSE = 0.06  # seconds that a selection must last before it is compared
CURRENT, PARENT, MARKED = "current", "parent", "marked"


class DiffView(LinesView):
    """A panel that is hidden until opened, then read on a thread after each selection."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "file(1)", "Next file", show=False),
        Binding("left_square_bracket", "file(-1)", "Previous file", show=False),
    ]
    DEFAULT_CSS = """
    DiffView { padding: 0 1; }
    """
    app: TreeApp

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.against = CURRENT
        self._patch = PatchLines()
        self._of = ""
        self._asked: tuple[bytes, bytes] | None = None
        self._waiting: Timer | None = None

    def ways(self) -> list[str]:
        """Return what the node can be compared with, in the order in which `d` cycles."""
        return [CURRENT, PARENT, *([MARKED] if self.app.marked is not None else [])]

    def show(self, oid: bytes | None, snapshot: Snapshot | None) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        if not self.display:
            return
        if oid is None or snapshot is None:
            self._of = ""
            self._take(PatchLines(), "Select a turn.")
            return
        base = self._base(oid, snapshot)
        self._of = self._title(oid, base, snapshot)
        self._entitle()
        if base is None:
            self._take(PatchLines(), "Nothing comes before this one.")
        elif (base, oid) == self._asked:
            self._take(self._patch)
        else:
            self._waiting = self.set_timer(PAUSE, lambda: self._read(base, oid, snapshot.session))

    def _base(self, oid: bytes, snapshot: Snapshot) -> bytes | None:
        if self.against == MARKED and self.app.marked is not None:
            return self.app.marked
        return snapshot.cursor if self.against == CURRENT else snapshot.node(oid).parent

    def _title(self, oid: bytes, base: bytes | None, snapshot: Snapshot) -> str:
        of = {CURRENT: " (where you are)", MARKED: " (marked)", PARENT: " (before it)"}[self.against]
        return f"{name_of(snapshot, base) if base else 'nothing'}{of} → {name_of(snapshot, oid)}"

    @work(group="diff", exclusive=True)
    async def _read(self, old: bytes, new: bytes, session: str) -> None:
        given_up = Event()
        try:
            found = await asyncio.to_thread(self._compare, old, new, session, given_up)
        finally:
            given_up.set()
        if isinstance(found, PatchLines):
            self._asked = (old, new)
            self._take(found)
        else:
            self._take(PatchLines(), found)

    def _compare(self, old: bytes, new: bytes, session: str, given_up: Event) -> PatchLines | str:
        try:
            with self.app.store(recover=False) as store:
                return PatchLines().read(store.session(session), old, new, given_up)
        except Exception as error:  # the store is gone, damaged or being changed: show the error and go on
            return trouble(error)

    def _take(self, patch: PatchLines, text: str = "") -> None:
        self._patch = patch
        if text:
            self._asked = None
            self.show_lines([styled((text, "$quiet"))])
        else:
            self.show_made(patch)
        counts = f" · {files_text(patch.files)} +{patch.added:,} −{patch.removed:,}" if patch.files else ""
        if patch.read_files < patch.files:
            counts += f" in the first {patch.read_files:,}"
        self._entitle(counts)

    def _entitle(self, counts: str = "") -> None:
        self.border_title = Text(safe(self._of + counts))

    def action_file(self, step: int) -> None:
        """Scroll to the next or the previous file."""
        top, places = self.scroll_offset.y, self._patch.headers
        ahead = [at for at in places if at > top] if step > 0 else [at for at in reversed(places) if at < top]
        if ahead:
            self.scroll_to(y=ahead[0], animate=False)


def name_of(snapshot: Snapshot, oid: bytes) -> str:
    """Return a short name: `turn 5`, `edits #12`."""
    node = snapshot.graph.nodes.get(oid)
    if node is None:
        return oid.hex()[:8]
    return f"turn {node.turn}" if node.turn is not None else f"{node.kind} #{node.seq}"
