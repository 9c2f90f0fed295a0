"""`snapstore restore`: restore single files as they were after a turn."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, changing
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import PathsAloneCommand, common_options, move_options, patch_options
from snapstore.cli.param_types import FILE, TARGET
from snapstore.cli.paths import below
from snapstore.errors import Usage


@click.command(cls=PathsAloneCommand)
@click.argument("turn", metavar="[TURN --]", type=TARGET, required=False)
@click.argument("paths", metavar="PATH…", nargs=-1, type=FILE)
@patch_options
@move_options
@common_options
def restore(context: Context, *, turn: str | None, paths: tuple[str, ...], **options: Any) -> int:
    """Restore single files or folders as they were after a turn.

    Without a turn: as they were after the last one. All other files stay as they are. The result is a new turn, which
    can be undone.
    """
    if not paths:
        raise Usage("which files?", f"Name them: `snapstore restore {f'{turn} -- ' if turn else ''}PATH…`.")
    move = MoveDescription(
        ["restore", *([turn] if turn else []), "--", *paths],
        lambda session, how: session.plan_restore(turn, [below(session.store.root, path) for path in paths], **how),
        ask=lambda plan: f"Restore from {turn or 'the last turn'}? {changing(plan)}",
        nothing="Nothing to restore: the files are already in that state.",
    )
    return carry_out(context, move, options)
