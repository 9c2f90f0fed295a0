"""The end of every line of a tree, like Vim's `:undolist`.

The list includes lines that were undone and lines that are archived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapstore.base.text import age, cells, clip, first_line, safe
from snapstore.surface.tree_rows import called
from snapstore.timeline.history.branch import Leaf
from snapstore.timeline.history.graph import Graph

WIDEST_NAME = 40
HEAD = ("number", "turns", "branch", "age", "state", "last prompt")
ESSENTIAL = (0, 2, 3, 5)  # the columns that fit into a narrow terminal


class End:
    """The last node of a line, and the branch of that node."""

    __slots__ = ("branch", "label", "leaf", "state")

    def __init__(self, graph: Graph, tip: bytes, *, listed: bool) -> None:
        self.leaf = Leaf(graph, tip)
        self.branch = graph.branch_of(tip)
        self.label = "" if self.branch is None else graph.label(self.branch)
        self.state = "listed" if listed else "pinned" if self.branch is None else "archived"
        if tip in (graph.tip, graph.cursor):
            self.state = "current"

    def name(self, *, narrow: bool) -> str:
        if self.branch is None:
            return safe(" ".join(f"[{name}]" for name in self.leaf.checkpoints))
        return safe(self.branch) if narrow else called(self.branch, self.label)


def ends(graph: Graph) -> list[End]:
    """Return the ends of all lines, oldest first."""
    listed = set(graph.branches.values())
    return [
        End(graph, node.oid, listed=node.oid in listed) for node in graph.by_seq() if node.oid not in graph.children
    ]


def table(found: Sequence[End], now: float, *, narrow: bool, more: str = "…") -> list[str]:
    """Return a header and one line per end."""
    rows = [
        [
            f"#{end.leaf.seq}",
            f"{end.leaf.turns:,}",
            clip(end.name(narrow=narrow), WIDEST_NAME, more),
            age(end.leaf.seconds, now),
            end.state,
            first_line(end.leaf.prompt) or "(no turns)",
        ]
        for end in found
    ]
    return list(_aligned([HEAD, *rows], ESSENTIAL if narrow else range(len(HEAD))))


def _aligned(rows: Sequence[Sequence[str]], shown: Sequence[int]) -> Iterator[str]:
    """Pad columns to the width of their contents, with the first two aligned right.

    The last column is not padded.
    """
    widths = {at: max(cells(row[at]) for row in rows) for at in shown[:-1]}
    for row in rows:
        texts = []
        for at, width in widths.items():
            space = " " * (width - cells(row[at]))
            texts.append(f"{space}{row[at]}" if at < 2 else f"{row[at]}{space}")
        yield "  ".join([*texts, row[shown[-1]]])
