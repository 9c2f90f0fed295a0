"""`snapstore apply`: one turn of another branch or session."""

from __future__ import annotations

from snapstore.cli.moves import OPTIONS, Move, carry_out, changing
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def apply(context: Context, *, turn: str, **options: Any) -> int:
    move = Move(
        ["apply", turn],
        lambda session, how: session.plan_apply(turn, **how),
        ask=lambda plan: f"Apply {turn}? {changing(plan)}",
        nothing="Nothing to apply: what it changed is here already.",
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "apply",
    apply,
    "Take one turn of another branch or session in. `branch:5`, `session/branch:5`, `#12` or a commit hash. Files that "
    "differ here are merged. It becomes a new turn, which can be undone.",
    options=OPTIONS,
    operands=(Operand("turn", "TURN", required=True),),
)
