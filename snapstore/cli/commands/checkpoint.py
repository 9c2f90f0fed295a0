"""`snapstore checkpoint`: a name pinned to a node."""

from __future__ import annotations

from snapstore.cli.options import Command, Operand, Option
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


def checkpoint(context: Context, *, name: str, target: str | None, delete: bool, force: bool) -> int:
    from snapstore.cli.changed import tell
    from snapstore.timeline.addresses import resolve
    from snapstore.timeline.branches import Branches
    from snapstore.timeline.graph import Graph

    if delete and (target is not None or force):
        raise Usage("--delete takes only the name", "`snapstore checkpoint --delete NAME`.")
    session = context.reading()
    with session.store as store:
        found = Branches(session)
        if delete:
            return tell(context, session, found.delete_checkpoint(name), f"Deleted checkpoint {name}.")
        graph = Graph(store, session.name)
        oid = resolve(graph, "@" if target is None else target)
        operation = found.checkpoint(name, oid, force=force)
        turn = graph.turn_of(oid)
        place = f"turn {turn}" if turn else "the start, before the first turn"
        verb = "is at" if operation is not None else "is already at"
        return tell(context, session, operation, f"Checkpoint {name} {verb} {place} ({oid.hex()[:8]}).")


COMMAND = Command(
    "checkpoint",
    checkpoint,
    "Pin a name to a turn: where you are, or TARGET. Its branch is never archived by itself; `snapstore goto NAME` "
    "goes there.",
    options=(
        Option("delete", "--delete", "Remove the name. The turn stays."),
        Option("force", "--force", "Move a name that is taken by another checkpoint."),
    ),
    operands=(Operand("name", "NAME", required=True), Operand("target", "[TARGET]")),
)
