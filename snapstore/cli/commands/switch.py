"""`snapstore switch`: switch to another branch."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, move_sentence
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, travel_options
from snapstore.cli.param_types import BRANCH


@click.command(cls=MoveCommand)
@click.argument("branch", metavar="BRANCH[:TURN]", type=BRANCH)
@travel_options
@common_options
def switch(context: Context, *, branch: str, **options: Any) -> int:
    """Switch to another branch.

    To its end, or with `:5` to its turn 5. The branch you leave stays as it is.
    """
    move = MoveDescription(
        ["switch", branch],
        lambda session, how: session.plan_switch(branch, **how),
        ask=lambda plan: f"Switch to {plan.branch}, turn {plan.turn}? {move_sentence(plan)}",
        nothing="You are there already.",
    )
    return carry_out(context, move, options)
