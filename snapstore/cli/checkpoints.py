"""`snapstore checkpoints`: the names pinned to nodes."""

from __future__ import annotations

from snapstore.cli.drawing import cells, clip, last_prompt
from snapstore.cli.options import Command
from snapstore.cli.output import BOLD, CYAN, DIM, ago, first_line, safe
from snapstore.timeline.documents import timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context
    from snapstore.timeline.graph import Graph

LEAST_PROMPT = 12  # columns; with fewer it is left out


def checkpoints(context: Context) -> int:
    from snapstore.timeline.graph import Graph

    session = context.reading()
    with session.store as store:
        graph = Graph(store, session.name)
        names = sorted(graph.checkpoints, key=lambda name: (graph.nodes[graph.checkpoints[name]].seq, name))
        if context.json:
            from snapstore.records import CheckpointsRecord, dump

            document = {"session": session.name, "checkpoints": [_document(graph, name) for name in names]}
            context.document(dump(CheckpointsRecord, document))
            return 0
        out, now = context.out, store.clock()
        width = out.size()[0] if out.terminal else 0
        widest = max((cells(safe(name)) for name in names), default=0)
        for name in names:
            node = graph.nodes[graph.checkpoints[name]]
            here = out.paint("@", CYAN, BOLD) if node.oid == graph.cursor else " "
            shown = safe(name) + " " * (widest - cells(safe(name)))
            branch = graph.branch_of(node.oid)
            place = f"turn {graph.turn_of(node.oid)} on {safe(branch)}" if branch else f"turn {graph.turn_of(node.oid)}"
            columns = f"{place}  {ago(timestamp(node.seconds), now):<10}"
            prompt = first_line(last_prompt(graph, node.oid))
            if width:
                room = width - widest - cells(columns) - 6
                prompt = clip(prompt, room) if room >= LEAST_PROMPT else ""
            out.line(f"{here} {out.paint(shown, BOLD)}  {out.paint(columns, DIM)}  {prompt}".rstrip())
        if not names:
            out.line("No checkpoints yet. Pin one where you are: `snapstore checkpoint NAME`", DIM)
    return 0


def _document(graph: Graph, name: str) -> dict[str, object]:
    node = graph.nodes[graph.checkpoints[name]]
    return {
        "name": name,
        "seq": node.seq,
        "turn": graph.turn_of(node.oid),
        "commit": node.oid.hex(),
        "branch": graph.branch_of(node.oid),
        "ended_at": timestamp(node.seconds),
        "prompt": last_prompt(graph, node.oid),
    }


COMMAND = Command("checkpoints", checkpoints, "List the checkpoints, oldest turn first.")
