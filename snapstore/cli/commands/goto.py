"""`snapstore goto` (also `rewind`): go to any turn of any branch."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.commands.fork import fork_conversation
from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, move_sentence
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, travel_options
from snapstore.cli.param_types import TARGET


@click.command(cls=MoveCommand)
@click.argument("target", metavar="TARGET", type=TARGET)
@click.option(
    "--new-session", is_flag=True, help="Continue in a new session of the agent, created at once: `fork TARGET`."
)
@travel_options
@common_options
def goto(context: Context, *, target: str, new_session: bool, **options: Any) -> int:
    """Go to any turn.

    The turn's own changes stay, and those after it are undone. TARGET is a turn's number (0 is before the first),
    `#12` by sequence, a branch, `branch:5`, a checkpoint, or a commit hash. Also called `rewind`.
    """
    if new_session:  # C7: fork at once, not with the next prompt
        return fork_conversation(context, target=target, **options)
    move = MoveDescription(
        ["goto", target],
        lambda session, how: session.plan_goto(target, **how),
        ask=lambda plan: f"Go to turn {plan.turn} on {plan.branch}? {move_sentence(plan)}",
        nothing="You are there already.",
    )
    return carry_out(context, move, options)
