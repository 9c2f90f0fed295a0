"""A session's tree at one moment, as the terminal tree shows it.

A snapshot is made on a thread. No lock is held while a person looks at it, and changes by others produce a new snapshot
(S3-30).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from snapstore.api import Store
from snapstore.surface.tree_layout import Row, folded, lanes, listed, onward
from snapstore.surface.tree_rows import CURRENT, NEWEST, NEXT
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.graph import Graph, GraphNode
from snapstore.tui.search_index import Words

UNPROMPTED = ("baseline", "edits")  # kinds of nodes without a prompt: their subjects are generated


class Snapshot:
    """The rows to draw, and how to walk between nodes.

    The store is closed again after reading. The graph therefore serves nodes, lines and names, but no addresses.
    """

    def __init__(self, store: Store, session: str | None = None, *, archived: bool = False) -> None:
        self._read(view(store.session(session)), archived)

    @classmethod
    def now(cls, store: Store, before: Snapshot, *, archived: bool) -> Snapshot:
        """Return the current snapshot, or `before` itself if nothing visible has changed."""
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
        """The nodes that are drawn or folded away."""
        return self.graph.nodes.keys() if self.archived else listed(self.graph)

    @cached_property
    def runs(self) -> dict[bytes, Row]:
        """The folded run of each node that is part of one."""
        return {node.oid: row for row in self.rows for node in row.folded}

    @cached_property
    def marks(self) -> dict[bytes, tuple[str, str]]:
        """The marks of the cursor, the next redo and the newest node, as in Vim."""
        found = {self.newest: NEWEST}
        if self.next_redo is not None:
            found[self.next_redo] = NEXT
        found[self.cursor] = CURRENT
        return found

    # Search.

    @cached_property
    def order(self) -> list[bytes]:
        """Every shown node from top to bottom, including those in folded runs."""
        return [row.node.oid for row in self.unfolded if row.node is not None]

    @cached_property
    def places(self) -> dict[bytes, int]:
        return {oid: place for place, oid in enumerate(self.order)}

    @cached_property
    def words(self) -> Words:
        """The case-folded texts on the screen per node: the prompt's first line and names."""
        graph = self.graph
        found = {oid: node.subject.casefold() for oid, node in graph.nodes.items() if node.kind not in UNPROMPTED}
        for names in (graph.branches, graph.archived, graph.checkpoints):
            for name, oid in names.items():
                found[oid] = f"{found.get(oid, '')}\n{name.casefold()}"
        return Words(found)

    # Walking between nodes.

    def ways(self, oid: bytes) -> list[bytes]:
        """Return the shown children of a node from left to right.

        The child that continues the lane comes first, then the newest.
        """
        ways = [way for way in self.graph.children.get(oid, ()) if way in self.shown]
        first = onward(self.graph, oid, ways)
        return [way for way in ways if way == first] + [way for way in reversed(ways) if way != first]

    def branch_point(self, oid: bytes) -> bytes:
        """Return the nearest ancestor with more than one shown child, or the root."""
        at = oid
        while (parent := self.node(at).parent) is not None:
            at = parent
            if len(self.ways(at)) > 1:
                break
        return at

    def end(self, oid: bytes) -> bytes:
        """Return the end of the line of a node."""
        at = oid
        while ways := self.ways(at):
            at = ways[0]
        return at

    def beside(self, oid: bytes, step: int) -> bytes | None:
        """Return the node at the same distance from the fork on the neighbouring branch.

        `step` is 1 for the branch to the right, -1 for the one to the left.
        """
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
        """Return whether a branch forks off anywhere before the node."""
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
    """Return a key of everything that the drawing depends on."""
    return (
        *(graph.session, graph.cursor_value, graph.cursor, graph.branch),
        *(graph.branches, graph.archived, graph.checkpoints, archived, is_open(graph)),
    )


def is_open(graph: Graph) -> bool:
    """Return whether the session has an open turn."""
    return graph.store.open_turn(graph.session) is not None
