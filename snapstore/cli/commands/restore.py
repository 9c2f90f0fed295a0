"""`snapstore restore`: single files, as they were."""

from __future__ import annotations

from snapstore.cli.moves import OPTIONS, Move, carry_out, changing
from snapstore.cli.options import Command, Operand
from snapstore.cli.paths import below
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def restore(context: Context, *, turn: str, paths: tuple[str, ...], **options: Any) -> int:
    if not paths:
        raise Usage("which files?", f"Name them after two dashes: `snapstore restore {turn} -- PATH…`.")
    move = Move(
        ["restore", turn, "--", *paths],
        lambda session, how: session.plan_restore(turn, [below(session.store.root, path) for path in paths], **how),
        ask=lambda plan: f"Restore from {turn}? {changing(plan)}",
        nothing="Nothing to restore: the files are like that already.",
    )
    return carry_out(context, move, options)


COMMAND = Command(
    "restore",
    restore,
    "Bring single files or folders back as they were after a turn. All others stay as they are. It becomes a new turn, "
    "which can be undone.",
    options=OPTIONS,
    operands=(
        Operand("turn", "TURN", required=True),
        Operand("paths", "-- PATH…", many=True, dashed=True, complete="file"),
    ),
)
