"""List the states that undo can return to: the first, and one after each turn."""

from __future__ import annotations

from snapstore.store.handle import SessionHandle
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.nodes import read_node


class TurnSnapshot:
    """One snapshot: its commit, and the number of messages in the conversation so far."""

    __slots__ = ("message_index", "snapshot_id", "timestamp")

    def __init__(self, message_index: int, snapshot_id: str, timestamp: float) -> None:
        self.message_index = message_index
        self.snapshot_id = snapshot_id
        self.timestamp = timestamp


def read_snapshots(session: SessionHandle) -> list[TurnSnapshot]:
    """Return the snapshots up to the cursor: the initial one, then one per turn."""
    graph = view(session)
    line = list(graph.upwards(graph.cursor))[::-1]
    found = [TurnSnapshot(0, line[0].oid.hex(), line[0].seconds)]
    for node in line:
        if node.turn is not None:
            replies = read_node(session.store.shadow, node.oid).record.get("replies", [])
            found.append(TurnSnapshot(found[-1].message_index + 1 + len(replies), node.oid.hex(), node.seconds))
    return found
