"""`snapstore undo`: the last turns, gone."""

from __future__ import annotations

from snapstore.cli.moves import TRAVEL, Move, carry_out, count, reverting, turns_text
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def undo(context: Context, *, number: str | None, **options: Any) -> int:
    wanted = count(number)
    move = Move(
        ["undo", *([number] if number else [])],
        lambda session, how: session.plan_undo(wanted, **how),
        ask=lambda plan: f"Undo {turns_text(len(plan.undone))}? {reverting(plan)}",
        nothing="Nothing to undo",
        reverts=True,
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "undo",
    undo,
    "Undo the last turn, or the last N. Only what these turns changed; your own edits stay. `redo` brings them back.",
    options=TRAVEL,
    operands=(Operand("number", "[N]"),),
)
