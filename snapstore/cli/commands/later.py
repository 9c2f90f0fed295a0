"""`snapstore later`: forward in time, across branches."""

from __future__ import annotations

from snapstore.cli.moves import TRAVEL, Move, carry_out, count_or_duration, travelling
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def later(context: Context, *, step: str | None, **options: Any) -> int:
    far = count_or_duration(step)
    move = Move(
        ["later", *([step] if step else [])],
        lambda session, how: session.plan_later(**far, **how),
        ask=lambda plan: f"Go to turn {plan.turn} on {plan.branch}? {travelling(plan)}",
        nothing="There is nothing later.",
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "later",
    later,
    "Go forward in time, across all branches. By one step, N steps, or a time (90s, 10m, 2h, 1d) counted from the turn "
    "you are at.",
    options=TRAVEL,
    operands=(Operand("step", "[N|TIME]"),),
)
