"""A session's tree as rows: one lane a branch, newest on top, the current line leftmost.

    @  Turn 6
    │ ○  Turn 7
    │ ○  Turn 6
    ├─╯
    ○  Turn 5 ⑂ 2

A branch beside the line joins it just above the turn it parts from, so there are as many lanes as branches are nested,
however many branches there are. Nothing recurses and every node is met once: trees have thousands.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from snapstore.timeline.history.graph import Graph, GraphNode

FOLD_OVER = 6  # plain nodes in a row
KEPT_ABOVE, KEPT_BELOW = 3, 1  # of a folded run: what came last, and what it began with
_NONE: list[bytes] = []


class Row:
    """One line of the drawing: a node, a run of folded ones, or the place where a branch joins the line it left."""

    __slots__ = ("depth", "folded", "forks", "node")

    def __init__(self, depth: int, node: GraphNode | None = None, forks: int = 0) -> None:
        self.depth = depth
        self.node = node
        self.forks = forks  # the ways that lead on from here, where there is more than one
        self.folded: Sequence[GraphNode] = ()


class Glyphs:
    """The signs to draw with."""

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
    """Whether an encoding has the signs that are not plain."""
    try:
        "│├─╯○◆┆⑂…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def rows(graph: Graph, *, everything: bool) -> list[Row]:
    """The drawing of a tree: all of it, or without archived branches and with long runs folded."""
    drawn = lanes(graph, everything=everything)
    return drawn if everything else folded(graph, drawn)


def listed(graph: Graph) -> set[bytes]:
    """The nodes that something other than the archive holds."""
    seen: set[bytes] = set()
    for tip in (graph.cursor, *graph.branches.values(), *graph.checkpoints.values()):
        at: bytes | None = tip
        while at is not None and at not in seen:
            seen.add(at)
            at = graph.nodes[at].parent
    return seen


def lanes(graph: Graph, *, everything: bool) -> list[Row]:
    """Every node in its lane, and where lanes join; archived branches too, or without them."""
    shown: Collection[bytes] = graph.nodes.keys() if everything else listed(graph)
    nodes, children, whole = graph.nodes, graph.children, len(shown) == len(graph.nodes)
    drawn: list[Row] = []
    # What is to be drawn, the next thing last: where a lane begins, or the rows of one that are ready, the last first.
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
            if len(ways) < 2:  # most of them
                ready.append(Row(depth, nodes[at]))
                at = ways[0] if ways else None
                continue
            ready.append(Row(depth, nodes[at], len(ways)))
            way = onward(graph, at, ways)
            for oid in ways:  # oldest first: the newest is drawn on top
                if oid != way:
                    ready.append(Row(depth))
                    waiting += [ready, (oid, depth + 1)]
                    ready = []
            at = way
        waiting.append(ready)
    return drawn


def onward(graph: Graph, oid: bytes, ways: list[bytes]) -> bytes | None:
    """The way that keeps the lane: along the branch to stand on here, else the one last made."""
    home = graph.branch_of(oid)
    return next((way for way in ways if graph.branch_of(way) == home), ways[-1] if ways else None)


def folded(graph: Graph, drawn: list[Row]) -> list[Row]:
    """The same with long runs of plain nodes folded. Where something is pinned or ends is not plain."""
    pins = graph.branches, graph.archived, graph.checkpoints
    ends = {graph.cursor, graph.tip, *(oid for names in pins for oid in names.values())}
    found: list[Row] = []
    start, depth = 0, -1  # of the plain run that goes on
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
