"""Report a change of branches or checkpoints.

The report says what happened, where the user is, and how to undo the change.
"""

from __future__ import annotations

from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.output import DIM, GREEN, safe
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.operations import Operation


def tell(context: Context, session: Session, operation: Operation | None, text: str, *notes: str) -> int:
    """Print the report of a change and return the exit status.

    Without an operation there was nothing to do, and `text` says so.
    """
    if context.json:
        from snapstore.surface.records.branches import ChangeRecord

        context.document(ChangeRecord.of(session, operation, text, notes))
        return 0
    graph = Graph(session.store, session.name)
    out = context.out
    out.line(f"{out.paint('✓', GREEN)} {safe(text)}" if operation else safe(text))
    for note in notes:
        out.line(safe(note), DIM)
    turn = graph.turn_of(graph.cursor)
    place = f"turn {turn}" if turn else "the start"
    out.line(f"You are at {place} on {safe(graph.branch)}; no file was touched.")
    if operation is not None:
        other = "" if session.store.active_session() == session.name else f" --session {session.name}"
        out.line(f"Undo this: `{out.program} ops undo{other} {operation.number}`", DIM)
    return 0
