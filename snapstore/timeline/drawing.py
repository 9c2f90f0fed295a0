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
    from collections.abc import Callable, Iterable, Iterator

    from snapstore.timeline.graph import Graph, GraphNode

FOLD_OVER = 6  # plain nodes in a row
KEPT_ABOVE, KEPT_BELOW = 3, 1  # of a folded run: what came last, and what it began with


class Row:
    """One line of the drawing: a node, a run of folded ones, or the place where a branch joins the line it left."""

    __slots__ = ("depth", "folded", "forks", "node")

    def __init__(self, depth: int, node: GraphNode | None = None, forks: int = 0) -> None:
        self.depth = depth
        self.node = node
        self.forks = forks  # the ways that lead on from here, where there is more than one
        self.folded: list[GraphNode] = []


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


def rows(graph: Graph, *, everything: bool, fold: bool | None = None) -> list[Row]:
    """The drawing of a tree: all of it, or without archived branches and with long runs folded."""
    shown = graph.nodes.keys() if everything else listed(graph)
    drawn = list(_lanes(graph, shown))
    fold = not everything if fold is None else fold
    return list(_folded(drawn, _plain(graph))) if fold else drawn


def listed(graph: Graph) -> set[bytes]:
    """The nodes that something other than the archive holds."""
    seen: set[bytes] = set()
    for tip in (graph.cursor, *graph.branches.values(), *graph.checkpoints.values()):
        at: bytes | None = tip
        while at is not None and at not in seen:
            seen.add(at)
            at = graph.nodes[at].parent
    return seen


def _lanes(graph: Graph, shown: Iterable[bytes]) -> Iterator[Row]:
    shown = shown if isinstance(shown, set) else set(shown)
    roots = [node.oid for node in graph.by_seq() if node.parent is None and node.oid in shown]
    # What is to be drawn, the next thing last: where a lane begins, or a row that is ready.
    waiting: list[tuple[bytes, int] | Row] = [(root, 0) for root in roots]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Row):
            yield item
            continue
        start, depth = item
        at: bytes | None = start
        while at is not None:
            ways = [oid for oid in graph.children.get(at, ()) if oid in shown]
            waiting.append(Row(depth, graph.nodes[at], len(ways) if len(ways) > 1 else 0))
            way = onward(graph, at, ways)
            for oid in ways:  # oldest first: the newest is drawn on top
                if oid != way:
                    waiting += [Row(depth), (oid, depth + 1)]
            at = way


def onward(graph: Graph, oid: bytes, ways: list[bytes]) -> bytes | None:
    """The way that keeps the lane: along the branch to stand on here, else the one last made."""
    home = graph.branch_of(oid)
    return next((way for way in ways if graph.branch_of(way) == home), ways[-1] if ways else None)


def _plain(graph: Graph) -> Callable[[Row], bool]:
    tips = {graph.cursor, graph.tip, *graph.branches.values(), *graph.archived.values(), *graph.checkpoints.values()}

    def plain(row: Row) -> bool:
        node = row.node
        return node is not None and not row.forks and node.parent is not None and node.oid not in tips

    return plain


def _folded(drawn: list[Row], plain: Callable[[Row], bool]) -> Iterator[Row]:
    run: list[Row] = []
    for row in [*drawn, Row(-1)]:
        if plain(row) and (not run or run[-1].depth == row.depth):
            run.append(row)
            continue
        if len(run) > FOLD_OVER:
            fold = Row(run[0].depth)
            fold.folded = [row.node for row in run[KEPT_ABOVE:-KEPT_BELOW] if row.node is not None]
            run[KEPT_ABOVE:-KEPT_BELOW] = [fold]
        yield from run
        run = [row] if plain(row) else []
        if not run and row.depth >= 0:
            yield row
