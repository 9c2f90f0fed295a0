"""`snapstore daemon run|status|stop`: the warm process, which makes commands and hooks start quickly."""

from __future__ import annotations

import time

from snapstore import __version__
from snapstore.cli.options import Command, Family, Option
from snapstore.cli.output import DIM, duration_text, path_text
from snapstore.errors import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context


def run(context: Context, *, idle: float | None) -> int:
    from snapstore.cli import main
    from snapstore.cli.warm import load
    from snapstore.daemon import server

    try:
        place = server.Place()
    except server.Taken as error:
        raise Busy(f"the warm process was not started: {error}", "See `snapstore daemon status`.") from error
    load()
    warm = server.Server(place, main, idle=server.IDLE if idle is None else idle)
    context.out.line(f"Listening at {path_text(place.path)}. Stop with Ctrl-C or `snapstore daemon stop`.")
    context.out.flush()
    warm.work()
    return 0


def status(context: Context) -> int:
    from snapstore.daemon import server

    found = server.running()
    document: dict[str, Any] = {"running": found is not None, "version": __version__}
    if found is not None:
        document |= {
            "pid": found.pid,
            "socket": found.socket,
            "started_at": found.started_at,
            "served": found.served,
            "memory_bytes": found.memory_bytes,
        }
    if context.json:
        context.document(document)
    elif found is None:
        context.out.line("No warm process runs. A hook or `snapstore turn` leaves one behind.")
    else:
        age = duration_text(time.time() - found.started_at)
        memory = f", {found.memory_bytes / 1e6:.0f} MB" if found.memory_bytes else ""
        requests = "1 request" if found.served == 1 else f"{found.served:,} requests"
        context.out.line(f"The warm process {found.pid} has run for {age}: {requests}{memory}.")
        context.out.line(f"socket    {path_text(found.socket)}", DIM)
    return 0


def stop(context: Context) -> int:
    from snapstore.daemon import server

    found = server.stop()
    if context.json:
        context.document({"stopped": found})
    else:
        context.out.line("Stopped the warm process." if found else "No warm process runs.")
    return 0


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds") from None


COMMAND = Family(
    "daemon",
    "See or stop the warm process, which makes commands and hooks start quickly.",
    (
        Command(
            "run",
            run,
            "Be the warm process, here, until it is stopped. A hook or `turn` starts one by itself.",
            options=(
                Option("idle", "--idle", "Leave after so many seconds without work.", metavar="S", convert=_seconds),
            ),
        ),
        Command("status", status, "Show whether the warm process runs, since when, and how much it has done."),
        Command("stop", stop, "Stop the warm process. Commands that are running go on."),
    ),
    default="status",
)
