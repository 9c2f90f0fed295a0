"""`snapstore earlier`: go back in time, across branches."""

from __future__ import annotations

from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import move_in_time
from snapstore.cli.options import MoveCommand, common_options, travel_options
from snapstore.cli.param_types import STEP, Step


@click.command(cls=MoveCommand)
@click.argument("step", metavar="[N|TIME]", required=False, type=STEP)
@travel_options
@common_options
def earlier(context: Context, *, step: Step | None, **options: Any) -> int:
    """Go back in time, across all branches.

    One step, N steps, or a duration (90s, 10m, 2h, 1d) counted from the current turn.
    """
    return move_in_time(context, "earlier", step, options)
