"""`snapstore undo`: undo the last turns."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, revert_sentence, turns_text
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, patch_options, travel_options
from snapstore.cli.param_types import COUNT
from snapstore.errors import Usage


@click.command(cls=MoveCommand)
@click.argument("number", metavar="[N]", required=False, type=COUNT)
@patch_options
@travel_options
@common_options
def undo(context: Context, *, number: int | None, **options: Any) -> int:
    """Undo the last turn, or the last N.

    Only what these turns changed is undone; your own edits stay. `redo` brings them back. With --patch or --hunk, only
    some hunks of the last turn are undone, by a new turn, which can itself be undone.
    """
    if options["patch"] or options["hunks"]:
        return _undo_hunks(context, number, options)
    move = MoveDescription(
        ["undo", *([str(number)] if number else [])],
        lambda session, how: session.plan_undo(number or 1, **how),
        ask=lambda plan: f"Undo {turns_text(len(plan.turns_undone))}? {revert_sentence(plan)}",
        nothing="Nothing to undo",
        reverts=True,
    )
    return carry_out(context, move, options)


def _undo_hunks(context: Context, number: int | None, options: dict[str, Any]) -> int:
    """Undo some hunks of the last turn, by a new turn: a session cannot stand on half a turn."""
    whole = [name for name in ("files_only", "conversation_only", "exact") if options.pop(name)]
    if number not in (None, 1) or whole:
        other = f"--{whole[0].replace('_', '-')}" if whole else "a number of turns"
        raise Usage(f"--patch and {other} exclude each other", "`snapstore revert TURN --patch` takes any turn.")
    move = MoveDescription(
        ["undo", *(["--patch"] if options["patch"] else [])],
        lambda session, how: session.plan_revert(**how),
        ask=lambda plan: f"Undo these hunks? {revert_sentence(plan)}",
        nothing="Nothing to undo: no hunk was chosen, or none of the changes are left.",
        reverts=True,
    )
    return carry_out(context, move, options)
