"""`snapstore tui`: browse the tree in the terminal."""

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

_PATIENCE = "5"  # seconds to wait for a locked store: a person at a screen should hear of it soon
LOOKS = ("auto", "dark", "light")


@click.command()
@click.option(
    "--look", metavar="LOOK", type=SuggestingChoice(LOOKS), default="auto", help="auto (the default), dark or light."
)
@ascii_option
@common_options
def tui(context: Context, *, look: str, ascii: bool) -> int:
    """Browse the tree in the terminal, with Vim's keys.

    Look at turns and differences, undo, redo, go anywhere; `?` lists the keys. New turns appear as they are
    recorded. Needs the extra: pip install 'snapstore[tui]'.
    """
    return show_tree(context, look=look, ascii=ascii)


def show_tree(context: Context, *, look: str = "auto", ascii: bool = False) -> int:
    """Show the tree on the terminal until the user quits."""
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
    gc.freeze()  # rescanning all imported objects with each large tree would take longer than the tree itself
    drawn = can_draw(sys.stdout.encoding)
    app = SnapstoreApp(
        session=context.session,
        look=_background() if look == "auto" else look,
        ascii=ascii or not drawn,
        encoding=None if drawn else sys.stdout.encoding,
    )
    app.run()
    _discard_unwritten_output()
    if app.mistake is not None:
        raise app.mistake
    return app.return_code or 0


def _discard_unwritten_output() -> None:
    """Discard unwritten output if the terminal was closed.

    Otherwise the flush at exit would fail, and Python would exit with its own status.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            silence(stream)


def _background() -> str:
    """Return `light` or `dark`, as the variable COLORFGBG says.

    The last number of `15;0` is the background's colour. Terminals are not queried: a late answer would be taken for
    key presses, and keys undo turns.
    """
    last = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if last in ("7", "15") else "dark"
