"""Rows of the drawn tree as text of a given width.

A row consists of parts, each with a role, because every surface has its own colours per role.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from snapstore.base.text import age, cells, clip, counted, first_line, safe
from snapstore.surface.tree_layout import Glyphs, Row
from snapstore.timeline.history.graph import Graph, GraphNode

Part = tuple[str, str]  # a text and its role

NARROW = 60  # below this many columns only the short name of a branch is shown
LEAST_PROMPT = 12  # columns

# The roles. QUIET is for rows that matter less: edits, undone turns, folded runs.
ROLES = ("lane", "here", "label", "branch", "checkpoint", "prompt", "age", "quiet", "space")
LANE, HERE, LABEL, BRANCH, CHECKPOINT, PROMPT, AGE, QUIET, SPACE = ROLES


# Marks that Vim users know: the cursor, the node that redo goes to, the newest node.
CURRENT, NEXT, NEWEST = (">", "<"), ("{", "}"), ("[", "]")
OPEN = "a turn is open"


class Painter:
    """Renders rows as parts: label, names, prompt, and the age at the right.

    The prompt is cut to the room that is left. Without a width nothing is cut, and the age follows the rest in
    brackets. `marks` are brackets around the numbers of some nodes. With `dates` the age becomes a date and time.
    With `open` the row of the cursor says that a turn is open.
    """

    def __init__(
        self,
        graph: Graph,
        glyphs: Glyphs,
        now: float,
        width: int = 0,
        *,
        marks: Mapping[bytes, tuple[str, str]] | None = None,
        dates: bool = False,
        open: bool = False,
    ) -> None:
        self._graph = graph
        self._glyphs = glyphs
        self._now = now
        self._width = width
        self._marks = marks or {}
        self._dates = dates
        self._open = open
        self._undone = set(graph.undone())
        self._ends: dict[bytes, list[tuple[str, str]]] = {}
        for group, state in ((graph.branches, ""), (graph.archived, "archived")):
            for name, tip in group.items():
                self._ends.setdefault(tip, []).append((name, state))

    def parts(self, row: Row) -> list[Part]:
        if row.node is not None:
            return self._node(row, row.node)
        sign = f"{self._glyphs.fold}  {self._run(row.folded)}" if row.folded else self._glyphs.join
        return [(self._cut(self._lanes(row.depth) + sign), QUIET)]

    def _cut(self, text: str) -> str:
        return clip(text, self._width, self._glyphs.more) if self._width else text

    def _lanes(self, depth: int) -> str:
        """Return the lanes to the left of a row.

        In a narrow terminal the innermost lanes are left out, so that there is room for the text.
        """
        most = max(self._width // 6, 2) if self._width else depth
        lanes = self._glyphs.lane * min(depth, most)
        return lanes if depth <= most else f"{lanes[:-2]}{self._glyphs.more[0]} "

    def _label(self, node: GraphNode) -> str:
        before, after = self._marks.get(node.oid, ("", ""))
        if node.turn is None:
            return f"{before}{safe(node.kind)}{after}"
        number = f"Turn {before}{node.turn}{after}"
        return number if node.kind == "turn" else f"{number} {safe(node.kind)}"

    def _node(self, row: Row, node: GraphNode) -> list[Part]:
        here = node.oid == self._graph.cursor
        undone = node.oid in self._undone
        quiet = node.turn is None and not here
        label = self._label(node)
        if row.forks:
            label += f" {self._glyphs.fork} {row.forks}"
        mark = self._glyphs.here if here else self._glyphs.of(node)
        parts = [(self._lanes(row.depth), LANE), (f"{mark}  {label}", HERE if here else LABEL)]
        parts += [(f"  {self._branch(name, state)}", BRANCH) for name, state in self._ends.get(node.oid, ())]
        parts += [(f"  [{safe(name)}]", CHECKPOINT) for name in self._graph.pinned.get(node.oid, ())]
        if undone:
            parts.append(("  undone", QUIET))
        if here and self._open:
            parts.append((f"  {OPEN}", HERE))
        prompt = first_line(node.subject) if node.kind not in ("baseline", "edits") else ""
        return self._fit(parts, prompt, self._when(node), quiet=quiet or undone)

    def _when(self, node: GraphNode) -> str:
        if not self._dates:
            return age(node.seconds, self._now)
        form = "%m-%d %H:%M" if 0 < self._width < NARROW else "%Y-%m-%d %H:%M"
        return time.strftime(form, time.localtime(node.seconds))

    def _fit(self, parts: list[Part], prompt: str, when: str, *, quiet: bool) -> list[Part]:
        """Fit one row into the width.

        The prompt is shortened first, then the age is dropped, then the names are cut.
        """
        head = "".join(text for text, _ in parts)
        if not self._width:
            return [*parts, (f"  {prompt}" if prompt else "", PROMPT), (f"  ({when})", SPACE)]
        left = self._width - cells(head)
        if left < 0:
            return [(self._cut(head), QUIET if quiet else SPACE)]
        wanted = 2 + min(cells(prompt), LEAST_PROMPT) if prompt else 0
        if left < wanted + 2 + len(when):
            when = ""
        room = left - 2 - (2 + len(when) if when else 0)
        text = f"  {clip(prompt, room, self._glyphs.more)}" if prompt and room > 2 else ""
        row = [(head + text, QUIET)] if quiet else [*parts, (text, PROMPT)]
        return [*row, (" " * (left - cells(text) - len(when)), SPACE), (when, AGE)] if when else row

    def _branch(self, name: str, state: str) -> str:
        if 0 < self._width < NARROW:
            return safe(name)
        owner = self._graph.owner_of(name)
        if owner is not None:  # the branch belongs to another machine
            state = f"{whose(owner)}, {state}" if state else whose(owner)
        return called(name, self._graph.label(name), state)

    def _run(self, folded: Sequence[GraphNode]) -> str:
        """Return the text of a folded run: `… 12 turns (5–16) and 2 edits`."""
        glyphs = self._glyphs
        numbers = [node.turn for node in folded if node.turn is not None]
        edits = len(folded) - len(numbers)
        parts = [f"{len(numbers):,} turns ({numbers[-1]}{glyphs.to}{numbers[0]})"] if numbers else []
        if edits:
            parts.append(counted(edits, "edit"))
        return f"{glyphs.more} {' and '.join(parts)}"


def called(name: str, label: str, state: str = "") -> str:
    """Return the label of a branch together with the name that commands accept."""
    if label == name:
        return f"{safe(name)} ({state})" if state else safe(name)
    return f"{label} ({safe(name)}{f', {state}' if state else ''})"


def whose(owner: dict[str, str]) -> str:
    """Return the machine and the person that own a branch: `laptop of Ada`."""
    return " of ".join(safe(text) for text in (owner["name"], owner.get("person", "")) if text)
