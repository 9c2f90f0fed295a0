"""`snapstore hook`: the command an agent runs at every step.

An agent's own call does not reach this module: `snapstore.cli.main` calls `cli.hook` directly. This module provides the
command's help, and handles calls with other options before the word `hook`.
"""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.hook import run_hook
from snapstore.cli.options import RawCommand, with_context


@click.command(cls=RawCommand, add_help_option=False)
@click.argument("words", metavar="AGENT", nargs=-1)
@with_context
def hook(context: Context, *, words: tuple[str, ...]) -> int:
    """Receive what an agent's hooks send.

    `snapstore connect` installs these hooks.
    """
    if words[:1] in (("-h",), ("--help",)):
        context.out.line(click.get_current_context().get_help())
        return 0
    return run_hook(words)
