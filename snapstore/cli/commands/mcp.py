"""`snapstore mcp`: serve turns to agents over MCP.

The tools are status, list, diff, preview, undo, redo and restore.
"""

from __future__ import annotations

import os
import signal
import sys

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.paths import below
from snapstore.errors import Usage


@click.command()
@common_options
def mcp(context: Context) -> int:
    """Serve the turns to an agent over MCP.

    The agent can ask for status, lists, differences and previews, and undo, redo and restore, on standard input and
    output. For Claude Code: claude mcp add snapstore -- snapstore mcp. Needs the extra: pip install
    'snapstore[mcp]'.
    """
    try:
        from snapstore.mcp.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        hint = "Install it with `pip install 'snapstore[mcp]'`."
        raise Usage("the mcp package, version 2 or later, is missing", hint) from None
    folders = [os.getcwd()]
    project = os.environ.get("CLAUDE_PROJECT_DIR")
    if project and context.out.program == "snapstore":  # only without -C, which names the folder explicitly
        folders.append(project)
    if sys.stdin.isatty():
        context.say("serving MCP on standard input and output; Ctrl-D ends it")
    # Python's handler would wait for the thread that reads the input. The next command finishes an interrupted move.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(folders, context.session, below)
    return 0
