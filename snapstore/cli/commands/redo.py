"""`snapstore redo`: redo undone turns."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, changing, turns_text
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, travel_options
from snapstore.cli.param_types import COUNT
from snapstore.errors import Usage


@click.command(cls=MoveCommand)
@click.argument("number", metavar="[N]", required=False, type=COUNT)
@click.option("--all", "everything", is_flag=True, help="Redo all undone turns.")
@travel_options
@common_options
def redo(context: Context, *, number: int | None, everything: bool, **options: Any) -> int:
    """Redo the next undone turn, or the next N.

    These are the undone turns of the branch you were on last.
    """
    if everything and number is not None:
        raise Usage("both a number and --all were given", "Give a number of turns, or --all.")
    wanted = None if everything else number or 1
    move = MoveDescription(
        ["redo", *([str(number)] if number else ["--all"] if everything else [])],
        lambda session, how: session.plan_redo(wanted, **how),
        ask=lambda plan: f"Redo {turns_text(len(plan.redone))}? {changing(plan)}",
        nothing="Nothing to redo",
    )
    return carry_out(context, move, options)
