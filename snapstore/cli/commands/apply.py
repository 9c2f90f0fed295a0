"""`snapstore apply`: apply one turn of another branch or session."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, changing
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, move_options, patch_options
from snapstore.cli.param_types import TARGET


@click.command(cls=MoveCommand)
@click.argument("turn", metavar="TURN", type=TARGET)
@patch_options
@move_options
@common_options
def apply(context: Context, *, turn: str, **options: Any) -> int:
    """Apply one turn of another branch or session here.

    TURN is `branch:5`, `session/branch:5`, `#12` or a commit hash. Files that differ here are merged. The result is
    a new turn, which can be undone.
    """
    move = MoveDescription(
        ["apply", turn],
        lambda session, how: session.plan_apply(turn, **how),
        ask=lambda plan: f"Apply {turn}? {changing(plan)}",
        nothing="Nothing to apply: its changes are here already.",
    )
    return carry_out(context, move, options)
