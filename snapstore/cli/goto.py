"""`snapstore goto` (also `rewind`): any turn, of any branch."""

from __future__ import annotations

from snapstore.cli.moves import TRAVEL, Move, carry_out, travelling
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def goto(context: Context, *, target: str, **options: Any) -> int:
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
    options=TRAVEL,
    operands=(Operand("target", "TARGET", required=True),),
)
