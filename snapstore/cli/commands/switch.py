"""`snapstore switch`: another branch."""

from __future__ import annotations

from snapstore.cli.moves import TRAVEL, Move, carry_out, travelling
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def switch(context: Context, *, branch: str, **options: Any) -> int:
    move = Move(
        ["switch", branch],
        lambda session, how: session.plan_switch(branch, **how),
        ask=lambda plan: f"Switch to {plan.branch}, turn {plan.turn}? {travelling(plan)}",
        nothing="You are there already.",
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "switch",
    switch,
    "Switch to another branch. To its end, or with `:5` to its turn 5. The branch you leave stays as it is.",
    options=TRAVEL,
    operands=(Operand("branch", "BRANCH[:TURN]", required=True),),
)
