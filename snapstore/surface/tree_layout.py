"""Layout of a session's tree as rows: one lane per branch, newest on top.

    @  Turn 6
    │ ○  Turn 7
    │ ○  Turn 6
    ├─╯
    ○  Turn 5 ⑂ 2

The current line is the leftmost lane. A side branch joins its line just above the turn where it forks off, so the
number of lanes is the nesting depth of the branches and not their number. Trees have thousands of nodes: nothing
recurses, and every node is visited once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from snapstore.timeline.history.graph import Graph, GraphNode

FOLD_OVER = 6  # plain nodes in a row
KEPT_ABOVE, KEPT_BELOW = 3, 1  # of a folded run: the newest nodes, and the oldest one
_NONE: list[bytes] = []


class Row:
    """One row of the drawing: a node, a folded run of nodes, or the join of two lanes."""

    __slots__ = ("depth", "folded", "forks", "node")

    def __init__(self, depth: int, node: GraphNode | None = None, forks: int = 0) -> None:
        self.depth = depth
        self.node = node
        self.forks = forks  # the number of children, if there is more than one
        self.folded: Sequence[GraphNode] = ()


class Glyphs:
    """The characters to draw with."""

    def __init__(self, *, ascii: bool) -> None:
        self.lane, self.join, self.fold = ("| ", "|/", ":") if ascii else ("│ ", "├─╯", "┆")
        self.here, self.root = ("@", "*") if ascii else ("@", "◆")
        self.turn, self.edits = ("o", ".") if ascii else ("○", "·")
        self.fork = "Y" if ascii else "⑂"
        self.more, self.to = ("...", "-") if ascii else ("…", "–")

    def of(self, node: GraphNode) -> str:
        if node.parent is None:
            return self.root
        return self.edits if node.turn is None else self.turn


def can_draw(encoding: str | None) -> bool:
    """Return whether an encoding has the non-ASCII glyphs."""
    try:
        "│├─╯○◆┆⑂…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def rows(graph: Graph, *, everything: bool) -> list[Row]:
    """Return the rows of a tree.

    Without `everything`, archived branches are left out and long runs are folded.
    """
    drawn = lanes(graph, everything=everything)
    return drawn if everything else folded(graph, drawn)


def listed(graph: Graph) -> set[bytes]:
    """Return the nodes reachable from the cursor, a listed branch or a checkpoint."""
    seen: set[bytes] = set()
    for tip in (graph.cursor, *graph.branches.values(), *graph.checkpoints.values()):
        at: bytes | None = tip
        while at is not None and at not in seen:
            seen.add(at)
            at = graph.nodes[at].parent
    return seen


def lanes(graph: Graph, *, everything: bool) -> list[Row]:
    """Return one row per node in its lane, and one row per join of two lanes.

    Without `everything`, archived branches are left out.
    """
    shown: Collection[bytes] = graph.nodes.keys() if everything else listed(graph)
    nodes, children, whole = graph.nodes, graph.children, len(shown) == len(graph.nodes)
    drawn: list[Row] = []
    # A stack of what is left to draw: the first node and depth of a lane, or finished rows of a lane, oldest first.
    waiting: list[tuple[bytes, int] | list[Row]] = [
        (node.oid, 0) for node in graph.by_seq() if node.parent is None and node.oid in shown
    ]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            item.reverse()
            drawn += item
            continue
        start, depth = item
        ready: list[Row] = []
        at: bytes | None = start
        while at is not None:
            ways = children.get(at, _NONE)
            if not whole:
                ways = [oid for oid in ways if oid in shown]
            if len(ways) < 2:  # the common case
                ready.append(Row(depth, nodes[at]))
                at = ways[0] if ways else None
                continue
            ready.append(Row(depth, nodes[at], len(ways)))
            way = onward(graph, at, ways)
            for oid in ways:  # oldest first, so that the newest is drawn on top
                if oid != way:
                    ready.append(Row(depth))
                    waiting += [ready, (oid, depth + 1)]
                    ready = []
            at = way
        waiting.append(ready)
    return drawn


def onward(graph: Graph, oid: bytes, ways: list[bytes]) -> bytes | None:
    """Return the child that continues the lane of a node.

    The child on the same branch as the node is preferred, then the newest child.
    """
    home = graph.branch_of(oid)
    return next((way for way in ways if graph.branch_of(way) == home), ways[-1] if ways else None)


def folded(graph: Graph, drawn: list[Row]) -> list[Row]:
    """Return the rows with long runs of plain nodes folded.

    A node is not plain if it is a root or a fork, or if the cursor, a branch or a checkpoint points to it.
    """
    pins = graph.branches, graph.archived, graph.checkpoints
    ends = {graph.cursor, graph.tip, *(oid for names in pins for oid in names.values())}
    found: list[Row] = []
    start, depth = 0, -1  # of the current run of plain nodes
    for at, row in enumerate(drawn):
        node = row.node
        if node is None or row.forks or node.parent is None or node.oid in ends:
            found += _shortened(drawn[start:at])
            found.append(row)
            start, depth = at + 1, -1
        elif row.depth != depth:
            if start < at:
                found += _shortened(drawn[start:at])
                start = at
            depth = row.depth
    return found + _shortened(drawn[start:])


def _shortened(run: list[Row]) -> list[Row]:
    if len(run) > FOLD_OVER:
        fold = Row(run[0].depth)
        fold.folded = [row.node for row in run[KEPT_ABOVE:-KEPT_BELOW] if row.node is not None]
        run[KEPT_ABOVE:-KEPT_BELOW] = [fold]
    return run
