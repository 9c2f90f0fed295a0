"""A session in the words of seed 0: where it stands, and the turns of its branches with all that was said (S0-08..11).

Turns are counted from 1; 0 is before the first. Nothing is kept of this: it is what the tree and the records say.
"""

from __future__ import annotations

from snapstore.timeline.branches import Branches
from snapstore.timeline.documents import timestamp
from snapstore.timeline.graph import Graph
from snapstore.timeline.nodes import read_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.git.shadow import Shadow
    from snapstore.timeline.branch import Branch
    from snapstore.timeline.session import Session

_CALL = {"file_path": "filePath", "old_string": "oldString", "new_string": "newString", "content": "content"}


def undo_state(session: Session, id: str) -> dict[str, Any]:
    """With one line only there are no branches, and none is active."""
    graph = Graph(session.store, session.name)
    found = Branches(session).list()
    several = len(found) > 1
    return {
        "sessionId": id,
        "currentTurnIndex": graph.turn_of(graph.cursor),
        "totalTurns": graph.turn_of(graph.tip),
        "branches": [_branch(graph, branch) for branch in found] if several else [],
        "activeBranchId": graph.branch if several else None,
        "expected": graph.cursor.hex(),
    }


def _branch(graph: Graph, branch: Branch) -> dict[str, Any]:
    """A branch with the turns that it shares with no other."""
    own: list[bytes] = []
    for node in graph.upwards(branch.tip):
        if node.oid == branch.parted:
            break
        if node.turn is not None:
            own.append(node.oid)
    records = [_turn(graph.store.shadow, oid) for oid in reversed(own)]
    return {
        "id": branch.name,
        "createdAt": timestamp(branch.created),
        "branchPointTurnIndex": branch.parted_turn or 0,
        "label": branch.label,
        "turns": [turn for turn, _ in records],
        "jsonlLines": [line for _, lines in records for line in lines],
    }


def _turn(shadow: Shadow, oid: bytes) -> tuple[dict[str, Any], list[str]]:
    node = read_node(shadow, oid, files=False)
    record = node.record
    turn = {
        "index": node.turn,
        "userMessage": node.prompt or None,
        "toolCalls": [_call(call) for call in record.get("tool_calls", []) if _changes_file(call)],
        "thinkingBlocks": _texts(record.get("thinking", [])),
        "assistantText": _texts(record.get("replies", [])),
        "commit": node.commit,
    }
    return turn, _texts(record.get("lines", []))


def _changes_file(call: object) -> bool:
    return isinstance(call, dict) and call.get("type") in ("Edit", "Write") and isinstance(call.get("file_path"), str)


def _call(call: dict[str, Any]) -> dict[str, Any]:
    told = {name: call[key] for key, name in _CALL.items() if isinstance(call.get(key), str)}
    return {"type": call["type"], **told}


def _texts(found: list[Any]) -> list[str]:
    """The record is a note, which anyone can write."""
    return [text for text in found if isinstance(text, str)]
