"""`snapstore version`: show the version of the program."""

from __future__ import annotations

import click

from snapstore import __version__
from snapstore.cli.context import Context
from snapstore.cli.options import common_options


@click.command()
@common_options
def version(context: Context) -> int:
    """Show the version."""
    if context.json:
        from snapstore.surface.records.setup import VersionRecord

        context.document(VersionRecord(version=__version__))
    else:
        context.out.line(f"snapstore {__version__}")
    return 0
