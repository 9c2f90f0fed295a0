"""`snapstore tree`: draw every branch of the session."""

from __future__ import annotations

import sys

import click

from snapstore.base.text import counted
from snapstore.cli.commands.tui import show_tree
from snapstore.cli.context import Context
from snapstore.cli.options import ascii_option, common_options
from snapstore.cli.output import BOLD, CYAN, DIM, GREEN, YELLOW, Output
from snapstore.surface import tree_rows
from snapstore.surface.tree_layout import Glyphs, Row, can_draw, listed, rows
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.graph import Graph

_STYLES = {
    tree_rows.LANE: (DIM,),
    tree_rows.HERE: (CYAN, BOLD),
    tree_rows.LABEL: (BOLD,),
    tree_rows.BRANCH: (GREEN,),
    tree_rows.CHECKPOINT: (YELLOW,),
    tree_rows.AGE: (DIM,),
    tree_rows.QUIET: (DIM,),
}


@click.command()
@click.option("--all", is_flag=True, help="Show every node, and archived branches too.")
@ascii_option
@click.option("-i", "--interactive", is_flag=True, help="Browse the tree: `snapstore tui`.")
@common_options
def tree(context: Context, *, all: bool, ascii: bool, interactive: bool) -> int:
    """Draw all branches of the session, newest on top.

    `@` is where you are; from `Turn 5 ⑂ 2` two branches continue. Long runs are folded, and archived branches are
    hidden.
    """
    if interactive:
        return show_tree(context, ascii=ascii)
    session = context.reading()
    with session.store as store:
        graph = view(session)
        if context.json:
            from snapstore.surface.tree_document import tree_document

            shown_nodes = None if all else listed(graph)
            context.out.raw(tree_document(graph, store.clock(), shown_nodes))
            return 0
        ascii = ascii or not can_draw(sys.stdout.encoding)
        drawn = rows(graph, everything=all)
        out = context.out
        shown = drawn if all or not out.terminal else drawn[: _fitting(out, graph, drawn)]
        width = out.size()[0] if out.terminal else 0
        turn = store.open_turn(session.name)
        painter = tree_rows.Painter(graph, Glyphs(ascii=ascii), store.clock(), width, open=turn is not None)
        for row in shown:
            out.line("".join(out.paint(text, *_STYLES.get(role, ())) for text, role in painter.parts(row)))
        if len(graph.nodes) == 1:
            out.line("No turns yet. Record one: `snapstore run -- CMD…`", DIM)
        _footer(out, graph, drawn, len(drawn) - len(shown))
    return 0


def _fitting(out: Output, graph: Graph, drawn: list[Row]) -> int:
    """Return how many rows fit on the terminal, as in `log`.

    More rows would scroll the newest out of sight. The row of the cursor is always included.
    """
    here = next(at for at, row in enumerate(drawn) if row.node is not None and row.node.oid == graph.cursor)
    return max(10, out.size()[1] - 4, here + 4)


def _footer(out: Output, graph: Graph, drawn: list[Row], more: int) -> None:
    """Print what the drawing leaves out, and how to see it."""
    hidden = []
    if more:
        hidden.append(counted(more, "more row"))
    if any(row.folded for row in drawn):
        hidden.append("every turn")
    if graph.archived and sum(row.node is not None for row in drawn) < len(graph.nodes):
        number = len(graph.archived)
        hidden.append("the archived branch" if number == 1 else f"{number:,} archived branches")
    if hidden:
        out.line(
            f"`snapstore tree --all` shows {', '.join(hidden[:-1])}{' and ' * (len(hidden) > 1)}{hidden[-1]}.", DIM
        )
