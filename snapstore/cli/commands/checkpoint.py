"""`snapstore checkpoint`: pin a name to a node."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.param_types import CHECKPOINT, TARGET
from snapstore.cli.reports.change import tell
from snapstore.errors import Usage
from snapstore.timeline.history.addresses import resolve
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.moves.branches import Branches


@click.command()
@click.argument("name", metavar="NAME", type=CHECKPOINT)
@click.argument("target", metavar="[TARGET]", required=False, type=TARGET)
@click.option("--delete", is_flag=True, help="Delete the checkpoint. The turn stays.")
@click.option("--force", is_flag=True, help="Move an existing checkpoint of this name.")
@common_options
def checkpoint(context: Context, *, name: str, target: str | None, delete: bool, force: bool) -> int:
    """Name a turn: the current one, or TARGET.

    A branch with a checkpoint is never archived automatically; `snapstore goto NAME` goes there.
    """
    if delete and (target is not None or force):
        raise Usage("--delete takes only the name", "`snapstore checkpoint --delete NAME`.")
    session = context.reading()
    with session.store:
        found = Branches(session)
        if delete:
            return tell(context, session, found.delete_checkpoint(name), f"Deleted checkpoint {name}.")
        graph = view(session)
        oid = resolve(graph, "@" if target is None else target)
        operation = found.checkpoint(name, oid, force=force)
        turn = graph.turn_of(oid)
        place = f"turn {turn}" if turn else "the start, before the first turn"
        verb = "is at" if operation is not None else "is already at"
        return tell(context, session, operation, f"Checkpoint {name} {verb} {place}.")
