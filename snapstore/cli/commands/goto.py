"""`snapstore goto` (also `rewind`): any turn, of any branch."""

from __future__ import annotations

from snapstore.cli.moves import TRAVEL, Move, carry_out, travelling
from snapstore.cli.options import Command, Operand, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def goto(context: Context, *, target: str, new_session: bool, **options: Any) -> int:
    if new_session:  # C7: at once, and not with the next prompt
        from snapstore.cli.commands.fork import fork

        return fork(context, target=target, name=None, run=False, compacted=False, **options)
    move = Move(
        ["goto", target],
        lambda session, how: session.plan_goto(target, **how),
        ask=lambda plan: f"Go to turn {plan.turn} on {plan.branch}? {travelling(plan)}",
        nothing="You are there already.",
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "goto",
    goto,
    "Go to any turn. Its own changes stay, those after it are undone. TARGET is a turn's number (0 is before the "
    "first), `#12` by sequence, a branch, `branch:5`, a checkpoint, or a commit hash. Also called `rewind`.",
    options=(
        Option("new_session", "--new-session", "Go on in a new session of the agent's, made at once: `fork TARGET`."),
        *TRAVEL,
    ),
    operands=(Operand("target", "TARGET", required=True),),
)
