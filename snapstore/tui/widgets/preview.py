"""The panel beside the tree: time, prompt, files and replies of the selected turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Event

from textual import work
from textual.content import Content
from textual.timer import Timer

from snapstore.api import Store
from snapstore.base.text import and_more, files_text, path_text, safe_lines
from snapstore.surface.describe import FOUND_BY, calls, change_text, git_moves, listed, when, who
from snapstore.timeline.history.nodes import FileChange, Node, counted, read_node
from snapstore.tui.move_steps import trouble
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.tree_app import TreeApp
from snapstore.tui.widgets.lines import LONGEST, LinesView, styled

PAUSE = 0.04  # seconds that a selection must last before it is read
AGES_EVERY = 10.0
MOST_FILES = 200
FOLDED = "Turns are folded here: Enter shows them."
MOST_LINES = 300  # of a prompt, and of all replies
_LETTERS = {"A": "$success", "D": "$error"}


class Preview(LinesView):
    """Details of the selected node (S3-20).

    The node is read on a thread, which stops when the selection moves on.
    """

    DEFAULT_CSS = """
    Preview { padding: 0 1; overflow-x: hidden; }
    """
    app: TreeApp

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(wrap=True, id=id)
        self._node: Node | None = None
        self._counted = False
        self._waiting: Timer | None = None

    def on_mount(self) -> None:
        self.set_interval(AGES_EVERY, self._repaint)

    def show(self, oid: bytes | None, snapshot: Snapshot | None) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        if oid is None or snapshot is None:
            self._node = None
            self.show_lines([styled((FOLDED, "$quiet"))])
            return
        self._waiting = self.set_timer(PAUSE, lambda: self._read(oid, snapshot))

    @work(group="preview", exclusive=True)
    async def _read(self, oid: bytes, snapshot: Snapshot) -> None:
        given_up = Event()
        try:
            for counts in (False, True):  # show the node before the line counts, which need to read every file
                found = await asyncio.to_thread(self._look, oid, snapshot, counts, given_up)
                if isinstance(found, str):
                    self._node = None
                    self.show_lines([styled((found, "$error"))])
                    return
                same = self._node is not None and self._node.commit == found.commit
                self._node, self._counted = found, counts
                self._repaint(keep=same)
        finally:
            given_up.set()

    def _look(self, oid: bytes, snapshot: Snapshot, counts: bool, given_up: Event) -> Node | str:
        try:
            with self.app.store(recover=False) as store:
                node = read_node(store.shadow, oid, branch=snapshot.graph.branch_of(oid) or "")
                if counts:
                    node.files[:MOST_FILES] = _counts(store, node.files[:MOST_FILES], given_up)
        except Exception as error:  # the store is gone, damaged or being changed: show the error and go on
            return trouble(error)
        node.undone = oid in snapshot.undone
        node.checkpoints = list(snapshot.graph.pinned.get(oid, ()))
        return node

    def _repaint(self, keep: bool = True) -> None:
        if self._node is not None:
            self.show_lines(describe(self._node, self.app.clock(), counted=self._counted), keep=keep)


def _counts(store: Store, changes: list[FileChange], given_up: Event) -> list[FileChange]:
    return [change if given_up.is_set() else counted(store.shadow, change) for change in changes]


def describe(node: Node, now: float, *, counted: bool = True) -> Iterator[Content]:
    status = (f"  {node.status}", "bold $warning") if node.status != "done" else ""
    undone = ("  undone", "$quiet") if node.undone else ""
    names = [(f"  ◆ {name}", "$warning") for name in node.checkpoints]
    yield styled((node.label, "bold"), f"  {node.commit[:8]}", status, undone, *names)
    yield styled((who(node), "$quiet"))
    yield styled((when(node, now), "$quiet"))
    if node.prompt.strip():
        yield Content()
        yield from _told(safe_lines(node.prompt), "bold")
    yield Content()
    yield from _files(node, counted)
    yield from _remarks(node)
    done = calls(node)
    if done:
        yield Content()
    yield from _told([f"· {text}" for text in done], "$quiet", 12)
    replies = [line for reply in listed(node, "replies") for line in ("", *safe_lines(str(reply)))]
    yield from _told(replies, "")


def _told(lines: list[str], style: str, most: int = MOST_LINES) -> Iterator[Content]:
    for line in lines[:most]:
        yield styled((line[:LONGEST], style)) if line else Content()
    if len(lines) > most:
        yield styled((f"{and_more(len(lines), most)} lines", "$quiet"))


def _files(node: Node, counted: bool) -> Iterator[Content]:
    if node.kind == "baseline":
        yield styled(("Where the session began.", "$quiet"))
        return
    if not node.files:
        yield styled(("No file changed.", "$quiet"))
        return
    found = FOUND_BY.get(node.found_by or "")
    sums = [sum(getattr(change, side) or 0 for change in node.files) for side in ("added", "removed")]
    more = [(f"  +{sums[0]:,}", "$success"), (f" −{sums[1]:,}", "$error")] if counted else []
    if counted and len(node.files) > MOST_FILES:
        more.append((f" in the first {MOST_FILES:,}", "$quiet"))
    yield styled(f"{files_text(len(node.files))} changed", *more, (f"  {found}", "$quiet") if found else "")
    for change in node.files[:MOST_FILES]:
        yield file_line(change)
    if len(node.files) > MOST_FILES:
        yield styled((and_more(len(node.files), MOST_FILES), "$quiet"))


def file_line(change: FileChange) -> Content:
    """Return the line of a file: `M  src/a.py  +3 −1`."""
    counts: list[str | tuple[str, str]] = []
    if change.binary or change.large:
        counts.append(("  too large to compare" if change.large else "  binary", "$quiet"))
    if change.added:
        counts.append((f"  +{change.added:,}", "$success"))
    if change.removed:
        counts.append((f"  −{change.removed:,}", "$error"))
    letter = (change.change, _LETTERS.get(change.change, "$warning"))
    return styled(letter, f"  {change_text(change)}", *counts)


def _remarks(node: Node) -> Iterator[Content]:
    """Yield remarks: files left out, files first seen, changes of the user's git."""
    left_out = [f"  {path_text(item['path'])}  {item['why']}" for item in node.left_out]
    unknown = listed(node, "first_seen") if node.kind != "baseline" else []
    first_seen = [f"  {path_text(str(path))}" for path in unknown]
    moved = [f"  {text}" for text in git_moves(node)]
    for title, lines in (
        ("Left out:", left_out),
        ("First seen in this turn, earlier state unknown:", first_seen),
        ("Your own git repository changed meanwhile (snapstore never changes it):", moved),
    ):
        if lines:
            yield Content()
            yield styled((title, "$warning"))
            yield from _told(lines, "", 12)
