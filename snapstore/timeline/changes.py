"""What a change of branches or checkpoints did, as a document."""

from __future__ import annotations

from snapstore.timeline.graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from snapstore.timeline.ops import Operation
    from snapstore.timeline.session import Session


def change_document(
    session: Session, operation: Operation | None, what: str, notes: Iterable[str] = ()
) -> dict[str, Any]:
    """Without an operation nothing had to be done, and `what` says so."""
    graph = Graph(session.store, session.name)
    return {
        "session": session.name,
        "what": what,
        "operation": operation and operation.number,
        "refs": operation.as_json()["refs"] if operation else [],
        "branch": graph.branch,
        "commit": graph.cursor.hex(),
        "notes": list(notes),
    }
