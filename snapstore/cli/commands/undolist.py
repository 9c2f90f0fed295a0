"""`snapstore undolist`: list every leaf of the tree, like Vim's `:undolist`."""

from __future__ import annotations

import sys

import click

from snapstore.base.text import clip
from snapstore.cli.context import Context
from snapstore.cli.options import ascii_option, common_options
from snapstore.cli.output import BOLD, CYAN, DIM
from snapstore.surface.tree_layout import Glyphs, can_draw
from snapstore.surface.tree_rows import NARROW
from snapstore.surface.undo_list import ends, table
from snapstore.timeline.history.agent_sessions import view


@click.command()
@ascii_option
@common_options
def undolist(context: Context, *, ascii: bool) -> int:
    """List the last turn of every line, newest first.

    Shows its number, how many turns lead to it, its branch, age and state. Undone turns are listed too.
    """
    session = context.reading()
    with session.store as store:
        graph, now = view(session), store.clock()
        found = ends(graph)
        if context.json:
            from snapstore.surface.records.branches import UndolistRecord

            context.document(UndolistRecord.of(graph, found, now))
            return 0
        out = context.out
        width = out.size()[0] if out.terminal else 0
        more = Glyphs(ascii=ascii or not can_draw(sys.stdout.encoding)).more
        newest = found[::-1]
        states = ["", *(end.state for end in newest)]
        for text, state in zip(table(newest, now, narrow=0 < width < NARROW, more=more), states, strict=True):
            styles = {"current": (CYAN, BOLD), "listed": (), "pinned": ()}.get(state, (DIM,))
            out.line(clip(text, width, more) if width else text, *styles)
    return 0
