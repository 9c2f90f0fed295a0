"""`snapstore ui`: open the page in a browser on this machine."""

from __future__ import annotations

import gc
import logging
import os
import tempfile
import webbrowser
from threading import Thread

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM
from snapstore.cli.param_types import PORT
from snapstore.errors import Usage

_PATIENCE = "5"  # seconds to wait for a locked store: a person at a page should hear of it soon


@click.command()
@click.option("--port", metavar="N", type=PORT, help="Listen on this port. Default: a free one.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
@common_options
def ui(context: Context, *, port: int | None, no_open: bool) -> int:
    """Open the turns as a page in your browser.

    Shows them as a conversation with its file changes; you can undo, redo and branch there. For this machine and
    this browser only. Needs the extra: pip install 'snapstore[ui]'.
    """
    try:
        from snapstore.web.server import Server
    except ImportError as error:
        if (error.name or "snapstore").partition(".")[0] == "snapstore":
            raise
        hint = "Install them with `pip install 'snapstore[ui]'`."
        raise Usage("the packages of the page are missing", hint) from None
    os.environ.setdefault("SNAPSTORE_LOCK_TIMEOUT", _PATIENCE)
    server = Server(".", port=port or 0)
    if context.json:
        from snapstore.surface.records.setup import ServerRecord

        context.document(ServerRecord(url=server.url, port=server.port))
    else:
        context.out.line(context.out.paint(server.url, BOLD))
        context.out.line("The address works once, for the first browser that opens it. Ctrl-C stops the server.", DIM)
    context.out.flush()
    opened = None if no_open else _open(server.url)
    gc.collect()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a flood of connections is no news to the user
    gc.freeze()  # rescanning all imported objects with each large tree took half of a request's time
    try:
        server.run()
    finally:
        if opened is not None:
            os.unlink(opened)
    return 0


def _open(url: str) -> str:
    """Open the browser with a file that redirects to the URL, and return its path.

    Every user of the machine can read the arguments of a process, and the first to open the URL could use it.
    """
    fd, path = tempfile.mkstemp(prefix="snapstore-", suffix=".html")
    with open(fd, "w", encoding="ascii") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><title>snapstore</title>')
    # In a thread: a text-mode browser returns only when the user quits it, and needs the server running before that.
    Thread(target=webbrowser.open, args=(f"file://{path}",), daemon=True).start()
    return path
