"""`snapstore revert`: revert one turn and keep the turns after it."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, revert_sentence
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, move_options, patch_options
from snapstore.cli.param_types import TARGET


@click.command(cls=MoveCommand)
@click.argument("turn", metavar="TURN", type=TARGET)
@patch_options
@move_options
@common_options
def revert(context: Context, *, turn: str, **options: Any) -> int:
    """Undo one turn, and keep those after it.

    Files that later turns changed are merged. The result is a new turn, which can be undone.
    """
    move = MoveDescription(
        ["revert", turn],
        lambda session, how: session.plan_revert(turn, **how),
        ask=lambda plan: f"Revert {turn}? {revert_sentence(plan)}",
        nothing="Nothing to revert: none of its changes are left.",
        reverts=True,
    )
    return carry_out(context, move, options)
