"""`snapstore redo`: what was undone, back again."""

from __future__ import annotations

from snapstore.cli.moves import TRAVEL, Move, carry_out, changing, count, turns_text
from snapstore.cli.options import Command, Operand, Option
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def redo(context: Context, *, number: str | None, everything: bool, **options: Any) -> int:
    if everything and number is not None:
        raise Usage("both a number and --all", "Say how many turns, or --all.")
    wanted = None if everything else count(number)
    move = Move(
        ["redo", *([number] if number else ["--all"] if everything else [])],
        lambda session, how: session.plan_redo(wanted, **how),
        ask=lambda plan: f"Redo {turns_text(len(plan.redone))}? {changing(plan)}",
        nothing="Nothing to redo",
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "redo",
    redo,
    "Redo the next undone turn, or the next N. They are those of the branch you stood on last.",
    options=(Option("everything", "--all", "Redo all that is undone."), *TRAVEL),
    operands=(Operand("number", "[N]"),),
)
