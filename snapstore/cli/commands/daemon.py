"""`snapstore daemon run|status|stop`: control the warm process.

The warm process makes commands and hooks start quickly.
"""

from __future__ import annotations

import time

import click

from snapstore import __version__
from snapstore.cli.context import Context
from snapstore.cli.main import main
from snapstore.cli.options import CommandGroup, common_options, level_options
from snapstore.cli.output import DIM, duration_text, path_text
from snapstore.cli.warm.preload import load
from snapstore.daemon import control
from snapstore.daemon.address import AddressUnavailable, ServerAddress
from snapstore.daemon.server import IDLE, Server
from snapstore.errors import Busy


@click.group(cls=CommandGroup, default="status")
@level_options
def daemon() -> None:
    """Show or stop the warm process.

    The warm process makes commands and hooks start quickly.
    """


@daemon.command()
@click.option("--idle", metavar="S", type=click.FLOAT, help="Exit after this many idle seconds.")
@common_options
def run(context: Context, *, idle: float | None) -> int:
    """Run the warm process in this terminal until it is stopped.

    Usually a hook or `turn` starts one automatically.
    """
    try:
        place = ServerAddress()
    except AddressUnavailable as error:
        raise Busy(f"the warm process was not started: {error}", "See `snapstore daemon status`.") from error
    load()
    warm = Server(place, main, idle=IDLE if idle is None else idle)
    context.out.line(f"Listening at {path_text(place.path)}. Stop with Ctrl-C or `snapstore daemon stop`.")
    context.out.flush()
    warm.work()
    return 0


@daemon.command()
@common_options
def status(context: Context) -> int:
    """Show whether the warm process runs, since when, and what it has done."""
    found = control.running()
    if context.json:
        from snapstore.surface.records.setup import DaemonRecord

        context.document(DaemonRecord.of(found, __version__))
    elif found is None:
        context.out.line("No warm process runs. A hook or `snapstore turn` starts one.")
    elif found.started_at is None or found.served is None:
        context.out.line(f"The warm process {found.pid} does not answer. Commands work without it.")
        context.out.line("`snapstore daemon stop` ends it.", DIM)
    else:
        age = duration_text(time.time() - found.started_at)
        memory = f", {found.memory_bytes / 1e6:.0f} MB" if found.memory_bytes else ""
        requests = "1 request" if found.served == 1 else f"{found.served:,} requests"
        context.out.line(f"The warm process {found.pid} has run for {age}: {requests}{memory}.")
        context.out.line(f"socket    {path_text(found.socket)}", DIM)
    return 0


@daemon.command()
@common_options
def stop(context: Context) -> int:
    """Stop the warm process.

    Commands that are running continue.
    """
    found = control.stop()
    if context.json:
        from snapstore.surface.records.setup import DaemonStopRecord

        context.document(DaemonStopRecord(stopped=found))
    else:
        context.out.line("Stopped the warm process." if found else "No warm process runs.")
    return 0
