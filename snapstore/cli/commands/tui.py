"""`snapstore tui`: the tree to walk through, in the terminal."""

from __future__ import annotations

import gc
import os
import sys

import click

from snapstore.cli.context import Context
from snapstore.cli.errors import silence
from snapstore.cli.options import ascii_option, common_options
from snapstore.cli.param_types import SuggestingChoice
from snapstore.errors import Usage
from snapstore.surface.tree_layout import can_draw

_PATIENCE = "5"  # seconds: a person at a screen is told soon that the store is in use
LOOKS = ("auto", "dark", "light")


@click.command()
@click.option(
    "--look", metavar="LOOK", type=SuggestingChoice(LOOKS), default="auto", help="auto (unless given), dark or light."
)
@ascii_option
@common_options
def tui(context: Context, *, look: str, ascii: bool) -> int:
    """Walk through the tree in the terminal, with Vim's keys.

    Look at turns and differences, undo, redo, go anywhere; `?` lists the keys. What others record appears as they do.
    Needs the extra: pip install 'snapstore[tui]'.
    """
    return show_tree(context, look=look, ascii=ascii)


def show_tree(context: Context, *, look: str = "auto", ascii: bool = False) -> int:
    """Show the tree on the terminal until its user leaves it."""
    if context.json:
        raise Usage("the terminal tree is for people", "`snapstore tree --json` is the tree for programs.")
    if not (context.out.terminal and sys.stdin.isatty()) or os.environ.get("TERM") in ("dumb", ""):
        raise Usage("the terminal tree needs a terminal", "`snapstore tree` prints the same drawing anywhere.")
    try:
        from snapstore.tui.app import SnapstoreApp
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        hint = "Install it with `pip install 'snapstore[tui]'`."
        raise Usage("the package of the terminal tree is missing", hint) from None
    os.environ.setdefault("SNAPSTORE_LOCK_TIMEOUT", _PATIENCE)
    gc.freeze()  # what was imported stays: looking it over again with each large tree would take longer than the tree
    drawn = can_draw(sys.stdout.encoding)
    app = SnapstoreApp(
        session=context.session,
        look=_background() if look == "auto" else look,
        ascii=ascii or not drawn,
        encoding=None if drawn else sys.stdout.encoding,
    )
    app.run()
    _let_go_of_a_lost_terminal()
    if app.mistake is not None:
        raise app.mistake
    return app.return_code or 0


def _let_go_of_a_lost_terminal() -> None:
    """What is still to be written to one that was closed goes nowhere: else Python ends with a status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            silence(stream)


def _background() -> str:
    """As terminals tell it that tell it: the last number of `15;0` is the background's colour.

    Asking the terminal is no way: an answer that comes late would be taken for keys, and keys undo."""
    last = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if last in ("7", "15") else "dark"
