"""`snapstore undolist`: every end of the tree, as Vim's `:undolist` has it."""

from __future__ import annotations

from snapstore.cli.drawing import NARROW, age, called, cells, clip, leaf_document
from snapstore.cli.options import Command
from snapstore.cli.output import BOLD, CYAN, DIM, first_line, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.timeline.graph import Graph, GraphNode

WIDEST_NAME = 40
HEAD = ("number", "turns", "branch", "age", "state", "last prompt")
ESSENTIAL = (0, 2, 3, 5)  # the columns that a narrow terminal has room for


def undolist(context: Context) -> int:
    from snapstore.timeline.graph import Graph

    session = context.reading()
    with session.store as store:
        graph = Graph(store, session.name)
        listed = set(graph.branches.values())
        leaves = [node for node in graph.by_seq() if node.oid not in graph.children]
        found = [_leaf(graph, node, listed=node.oid in listed) for node in leaves]
        if context.json:
            from snapstore.records import UndolistRecord, dump

            document = {"session": session.name, "cursor": graph.cursor.hex(), "leaves": found}
            context.document(dump(UndolistRecord, document))
            return 0
        out = context.out
        width = out.size()[0] if out.terminal else 0
        narrow = 0 < width < NARROW
        rows = [
            [
                f"#{leaf['seq']}",
                f"{leaf['turns']:,}",
                clip(_name(leaf, narrow), WIDEST_NAME),
                age(node.seconds, store.clock()),
                str(leaf["state"]),
                first_line(leaf["prompt"]) or "(no turns)",
            ]
            for node, leaf in zip(leaves, found, strict=True)
        ]
        shown = ESSENTIAL if narrow else range(len(HEAD))
        for text, leaf in zip(_table([HEAD, *rows[::-1]], shown), [{}, *found[::-1]], strict=True):
            styles = {"current": (CYAN, BOLD), "listed": (), "pinned": ()}.get(leaf.get("state", ""), (DIM,))
            out.line(clip(text, width) if width else text, *styles)
    return 0


def _leaf(graph: Graph, node: GraphNode, *, listed: bool) -> dict[str, Any]:
    branch = graph.branch_of(node.oid)
    if node.oid in (graph.tip, graph.cursor):
        state = "current"
    else:
        state = "listed" if listed else "pinned" if branch is None else "archived"
    label = "" if branch is None else graph.label(branch)
    return {**leaf_document(graph, node), "branch": branch, "label": label, "state": state}


def _name(leaf: dict[str, Any], narrow: bool) -> str:
    if leaf["branch"] is None:
        return safe(" ".join(f"[{name}]" for name in leaf["checkpoints"]))
    return safe(leaf["branch"]) if narrow else called(leaf["branch"], leaf["label"])


def _table(rows: Sequence[Sequence[str]], shown: Sequence[int]) -> Iterator[str]:
    """Columns as wide as what is in them, numbers at the right of theirs; the last is open."""
    widths = {at: max(cells(row[at]) for row in rows) for at in shown[:-1]}
    for row in rows:
        texts = []
        for at, width in widths.items():
            space = " " * (width - cells(row[at]))
            texts.append(f"{space}{row[at]}" if at < 2 else f"{row[at]}{space}")
        yield "  ".join([*texts, row[shown[-1]]])


COMMAND = Command(
    "undolist",
    undolist,
    "List the last turn of every line, newest first: its number, how many turns lead to it, its branch, age and state. "
    "Nothing that was undone is missing here.",
)
