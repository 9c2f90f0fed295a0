"""`snapstore revert`: one turn out of the middle."""

from __future__ import annotations

from snapstore.cli.moves import OPTIONS, Move, carry_out, reverting
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def revert(context: Context, *, turn: str, **options: Any) -> int:
    move = Move(
        ["revert", turn],
        lambda session, how: session.plan_revert(turn, **how),
        ask=lambda plan: f"Revert {turn}? {reverting(plan)}",
        nothing="Nothing to revert: of what it changed nothing is there any more.",
        reverts=True,
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "revert",
    revert,
    "Take one turn out, and keep those after it. Files that later turns changed are merged. It becomes a new turn, "
    "which can be undone.",
    options=OPTIONS,
    operands=(Operand("turn", "TURN", required=True),),
)
