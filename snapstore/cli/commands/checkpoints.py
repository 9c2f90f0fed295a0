"""`snapstore checkpoints`: list the names pinned to nodes."""

from __future__ import annotations

import click

from snapstore.base.text import cells, clip, timestamp
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, CYAN, DIM, ago, first_line, safe
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.branch import Leaf

LEAST_PROMPT = 12  # columns; with fewer the prompt is left out


@click.command()
@common_options
def checkpoints(context: Context) -> int:
    """List the checkpoints, oldest turn first."""
    session = context.reading()
    with session.store as store:
        graph = view(session)
        pinned = {name: Leaf(graph, oid) for name, oid in graph.checkpoints.items()}
        names = sorted(pinned, key=lambda name: (pinned[name].seq, name))
        if context.json:
            from snapstore.surface.records.branches import CheckpointsRecord

            context.document(CheckpointsRecord.of(graph, ((name, pinned[name]) for name in names)))
            return 0
        out, now = context.out, store.clock()
        width = out.size()[0] if out.terminal else 0
        widest = max((cells(safe(name)) for name in names), default=0)
        for name in names:
            leaf = pinned[name]
            here = out.paint("@", CYAN, BOLD) if leaf.tip == graph.cursor else " "
            shown = safe(name) + " " * (widest - cells(safe(name)))
            branch = graph.branch_of(leaf.tip)
            place = f"turn {leaf.turns} on {safe(branch)}" if branch else f"turn {leaf.turns}"
            columns = f"{place}  {ago(timestamp(leaf.seconds), now):<10}"
            prompt = first_line(leaf.prompt)
            if width:
                room = width - widest - cells(columns) - 6
                prompt = clip(prompt, room) if room >= LEAST_PROMPT else ""
            out.line(f"{here} {out.paint(shown, BOLD)}  {out.paint(columns, DIM)}  {prompt}".rstrip())
        if not names:
            out.line("No checkpoints yet. Create one where you are: `snapstore checkpoint NAME`", DIM)
    return 0
