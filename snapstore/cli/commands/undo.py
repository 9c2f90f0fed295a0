"""`snapstore undo`: undo the last turns."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, revert_sentence, turns_text
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, travel_options
from snapstore.cli.param_types import COUNT


@click.command(cls=MoveCommand)
@click.argument("number", metavar="[N]", required=False, type=COUNT)
@travel_options
@common_options
def undo(context: Context, *, number: int | None, **options: Any) -> int:
    """Undo the last turn, or the last N.

    Only what these turns changed is undone; your own edits stay. `redo` brings them back.
    """
    move = MoveDescription(
        ["undo", *([str(number)] if number else [])],
        lambda session, how: session.plan_undo(number or 1, **how),
        ask=lambda plan: f"Undo {turns_text(len(plan.undone))}? {revert_sentence(plan)}",
        nothing="Nothing to undo",
        reverts=True,
    )
    return carry_out(context, move, options)
