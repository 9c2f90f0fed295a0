"""`snapstore discard`: throw away what changed on disk since the last turn."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, changing
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import MoveCommand, common_options, move_options
from snapstore.cli.param_types import FILE
from snapstore.cli.paths import below


@click.command(cls=MoveCommand)
@click.argument("paths", metavar="[PATH…]", nargs=-1, type=FILE)
@move_options
@common_options
def discard(context: Context, *, paths: tuple[str, ...], **options: Any) -> int:
    """Throw away what changed on disk since the last turn.

    In the named files and folders, or everywhere. Files that are new since are removed. What is thrown away is saved
    first, and the answer says how to get it back.
    """
    move = MoveDescription(
        ["discard", *(["--", *paths] if paths else [])],
        lambda session, how: session.plan_discard([below(session.store.root, path) for path in paths], **how),
        ask=lambda plan: f"Discard what changed since turn {plan.turn}? {changing(plan)}",
        nothing="Nothing to discard: nothing changed since the last turn.",
    )
    return carry_out(context, move, options)
