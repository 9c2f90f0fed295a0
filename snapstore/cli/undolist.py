"""`snapstore undolist`: every end of the tree, as Vim's `:undolist` has it."""

from __future__ import annotations

from snapstore.cli.options import Command
from snapstore.cli.output import BOLD, CYAN, DIM, first_line, safe
from snapstore.timeline.painting import NARROW, called
from snapstore.timeline.text import age, cells, clip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.timeline.branch import Leaf
    from snapstore.timeline.graph import Graph

WIDEST_NAME = 40
HEAD = ("number", "turns", "branch", "age", "state", "last prompt")
ESSENTIAL = (0, 2, 3, 5)  # the columns that a narrow terminal has room for


def undolist(context: Context) -> int:
    from snapstore.timeline.branch import Leaf
    from snapstore.timeline.graph import Graph

    session = context.reading()
    with session.store as store:
        graph = Graph(store, session.name)
        listed, now = set(graph.branches.values()), store.clock()
        leaves = [Leaf(graph, node.oid) for node in graph.by_seq() if node.oid not in graph.children]
        found = [{**leaf.as_json(now), **_place(graph, leaf, listed=leaf.tip in listed)} for leaf in leaves]
        if context.json:
            from snapstore.records.base import dump
            from snapstore.records.branches import UndolistRecord

            document = {"session": session.name, "cursor": graph.cursor.hex(), "leaves": found}
            context.document(dump(UndolistRecord, document))
            return 0
        out = context.out
        width = out.size()[0] if out.terminal else 0
        narrow = 0 < width < NARROW
        rows = [
            [
                f"#{leaf.seq}",
                f"{leaf.turns:,}",
                clip(_name(row, narrow), WIDEST_NAME),
                age(leaf.seconds, now),
                str(row["state"]),
                first_line(leaf.prompt) or "(no turns)",
            ]
            for leaf, row in zip(leaves, found, strict=True)
        ]
        shown = ESSENTIAL if narrow else range(len(HEAD))
        for text, row in zip(_table([HEAD, *rows[::-1]], shown), [{}, *found[::-1]], strict=True):
            styles = {"current": (CYAN, BOLD), "listed": (), "pinned": ()}.get(row.get("state", ""), (DIM,))
            out.line(clip(text, width) if width else text, *styles)
    return 0


def _place(graph: Graph, leaf: Leaf, *, listed: bool) -> dict[str, Any]:
    """The branch that a leaf is on."""
    branch = graph.branch_of(leaf.tip)
    if leaf.tip in (graph.tip, graph.cursor):
        state = "current"
    else:
        state = "listed" if listed else "pinned" if branch is None else "archived"
    return {"branch": branch, "label": "" if branch is None else graph.label(branch), "state": state}


def _name(row: dict[str, Any], narrow: bool) -> str:
    if row["branch"] is None:
        return safe(" ".join(f"[{name}]" for name in row["checkpoints"]))
    return safe(row["branch"]) if narrow else called(row["branch"], row["label"])


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
