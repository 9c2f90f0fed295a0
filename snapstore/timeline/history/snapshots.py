"""The states that undo can go back to, in the words of S2: one from before the first turn, and one after each."""

from __future__ import annotations

from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import read_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.store.handle import SessionHandle


class TurnSnapshot:
    """`message_index` counts the messages of the conversation so far, `snapshot_id` is the commit."""

    __slots__ = ("message_index", "snapshot_id", "timestamp")

    def __init__(self, message_index: int, snapshot_id: str, timestamp: float) -> None:
        self.message_index = message_index
        self.snapshot_id = snapshot_id
        self.timestamp = timestamp


def read_snapshots(session: SessionHandle) -> list[TurnSnapshot]:
    """Of the line up to where the session stands: the initial one first, then the one after each turn."""
    graph = Graph(session.store, session.name)
    line = list(graph.upwards(graph.cursor))[::-1]
    found = [TurnSnapshot(0, line[0].oid.hex(), line[0].seconds)]
    for node in line:
        if node.turn is not None:
            replies = read_node(session.store.shadow, node.oid).record.get("replies", [])
            found.append(TurnSnapshot(found[-1].message_index + 1 + len(replies), node.oid.hex(), node.seconds))
    return found
