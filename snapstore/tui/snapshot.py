"""A session's tree at one moment, as the terminal tree shows it. Made on a thread; nobody's lock is held while a person
looks at it, and what others do meanwhile makes another (S3-30)."""

from __future__ import annotations

from functools import cached_property

from snapstore.surface.tree_layout import folded, lanes, listed, onward
from snapstore.surface.tree_rows import CURRENT, NEWEST, NEXT
from snapstore.timeline.history.graph import Graph
from snapstore.tui.search_index import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from snapstore.api import Store
    from snapstore.surface.tree_layout import Row
    from snapstore.timeline.history.graph import GraphNode


UNSAID = ("baseline", "edits")  # kinds of nodes that nobody asked for: their subjects are made up


class Snapshot:
    """Rows to draw, and the ways between nodes. The graph has read all that it is asked for here: the store that it was
    read from is closed, so it serves nodes, lines and names, not addresses."""

    def __init__(self, store: Store, session: str | None = None, *, archived: bool = False) -> None:
        self._read(Graph(store, store.session(session).name), archived)

    @classmethod
    def now(cls, store: Store, before: Snapshot, *, archived: bool) -> Snapshot:
        """The session's tree as it is now; the very same snapshot where nothing changed that it shows."""
        graph = Graph(store, before.session)
        if moment_of(graph, archived) == before.moment:
            return before
        found = cls.__new__(cls)
        found._read(graph, archived)
        return found

    def _read(self, graph: Graph, archived: bool) -> None:
        self.session = graph.session
        self.graph = graph
        self.archived = archived
        self.cursor = graph.cursor
        self.tip = graph.tip
        self.branch = graph.branch
        self.open = is_open(graph)
        self.moment = moment_of(graph, archived)
        self.unfolded: list[Row] = lanes(graph, everything=archived)
        self.rows: list[Row] = folded(graph, self.unfolded)
        undone = graph.undone()
        self.undone = frozenset(undone)
        self.next_redo: bytes | None = undone[0] if undone else None
        self.newest = graph.by_seq()[-1].oid
        self.turns = sum(node.turn is not None for node in graph.nodes.values())

    def node(self, oid: bytes) -> GraphNode:
        return self.graph.nodes[oid]

    @cached_property
    def shown(self) -> Collection[bytes]:
        """The nodes that are drawn, or folded away."""
        return self.graph.nodes.keys() if self.archived else listed(self.graph)

    @cached_property
    def runs(self) -> dict[bytes, Row]:
        """The folded run that a node is part of, for those that are."""
        return {node.oid: row for row in self.rows for node in row.folded}

    @cached_property
    def marks(self) -> dict[bytes, tuple[str, str]]:
        """The nodes that undo and redo are about, as Vim's users know them."""
        found = {self.newest: NEWEST}
        if self.next_redo is not None:
            found[self.next_redo] = NEXT
        found[self.cursor] = CURRENT
        return found

    # Search.

    @cached_property
    def order(self) -> list[bytes]:
        """Every shown node from top to bottom, those in folded runs included."""
        return [row.node.oid for row in self.unfolded if row.node is not None]

    @cached_property
    def places(self) -> dict[bytes, int]:
        return {oid: place for place, oid in enumerate(self.order)}

    @cached_property
    def words(self) -> Words:
        """What the drawing says of each node, whatever its case: the prompt's first line and the names."""
        graph = self.graph
        found = {oid: node.subject.casefold() for oid, node in graph.nodes.items() if node.kind not in UNSAID}
        for names in (graph.branches, graph.archived, graph.checkpoints):
            for name, oid in names.items():
                found[oid] = f"{found.get(oid, '')}\n{name.casefold()}"
        return Words(found)

    # Ways.

    def ways(self, oid: bytes) -> list[bytes]:
        """The shown nodes after a node as they stand from left to right: the one that keeps the lane first, then the
        newest."""
        ways = [way for way in self.graph.children.get(oid, ()) if way in self.shown]
        first = onward(self.graph, oid, ways)
        return [way for way in ways if way == first] + [way for way in reversed(ways) if way != first]

    def branch_point(self, oid: bytes) -> bytes:
        """The nearest node before it that has more than one way on, or the root."""
        at = oid
        while (parent := self.node(at).parent) is not None:
            at = parent
            if len(self.ways(at)) > 1:
                break
        return at

    def end(self, oid: bytes) -> bytes:
        """The end of the line that a node is on."""
        at = oid
        while ways := self.ways(at):
            at = ways[0]
        return at

    def beside(self, oid: bytes, step: int) -> bytes | None:
        """The node of the branch beside, as far from where they part: to the right, or with -1 to the left."""
        if not self._has_siblings(oid) and len(ways := self.ways(oid)) > 1:
            return ways[1] if step > 0 else None
        distance, at = 0, oid
        while (parent := self.node(at).parent) is not None:
            ways = self.ways(parent)
            if len(ways) > 1:
                place = ways.index(at) + step
                if not 0 <= place < len(ways):
                    return None
                return self._along(ways[place], distance)
            distance, at = distance + 1, parent
        return None

    def _has_siblings(self, oid: bytes) -> bool:
        """Whether a branch parts anywhere before it."""
        point = self.branch_point(oid)
        return point != oid and len(self.ways(point)) > 1

    def _along(self, oid: bytes, steps: int) -> bytes:
        for _ in range(steps):
            ways = self.ways(oid)
            if not ways:
                break
            oid = ways[0]
        return oid


def moment_of(graph: Graph, archived: bool) -> object:
    """What tells one moment from another: all that the drawing depends on."""
    return (
        *(graph.session, graph.cursor_value, graph.cursor, graph.branch),
        *(graph.branches, graph.archived, graph.checkpoints, archived, is_open(graph)),
    )


def is_open(graph: Graph) -> bool:
    """Whether a turn of the session has begun and is not over."""
    return graph.store.open_turn(graph.session) is not None
