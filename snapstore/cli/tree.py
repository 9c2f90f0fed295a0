"""`snapstore tree`: every branch of the session, drawn."""

from __future__ import annotations

import sys

from snapstore.cli.drawing import NARROW, Glyphs, Row, age, called, cells, clip, listed, rows
from snapstore.cli.options import Command, Option
from snapstore.cli.output import BOLD, CYAN, DIM, GREEN, YELLOW, Output, first_line, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context
    from snapstore.timeline.graph import Graph, GraphNode

LEAST_PROMPT = 12


def tree(context: Context, *, all: bool, ascii: bool) -> int:
    from snapstore.timeline.graph import Graph

    session = context.reading()
    with session.store as store:
        graph = Graph(store, session.name)
        if context.json:
            from snapstore.timeline.treedocument import tree_document

            shown_nodes = None if all else listed(graph)
            context.out.raw(tree_document(graph, store.clock(), shown_nodes))
            return 0
        ascii = ascii or not _can_draw(sys.stdout.encoding)
        drawn = rows(graph, everything=all)
        out = context.out
        shown = drawn if all or not out.terminal else drawn[: _fitting(out, graph, drawn)]
        painter = Painter(out, graph, Glyphs(ascii=ascii), store.clock())
        for row in shown:
            out.line(painter.line(row))
        if len(graph.nodes) == 1:
            out.line("No turns yet. Record one: `snapstore run -- CMD…`", DIM)
        _footer(out, graph, drawn, len(drawn) - len(shown))
    return 0


def _can_draw(encoding: str | None) -> bool:
    try:
        "│├─╯○◆┆⑂…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _fitting(out: Output, graph: Graph, drawn: list[Row]) -> int:
    """How many rows fit on the terminal, as in `log`: more would push the newest out of sight. The cursor is shown."""
    here = next(at for at, row in enumerate(drawn) if row.node is not None and row.node.oid == graph.cursor)
    return max(10, out.size()[1] - 4, here + 4)


def _footer(out: Output, graph: Graph, drawn: list[Row], more: int) -> None:
    """What is not in the picture, and how to see it."""
    hidden = []
    if more:
        hidden.append("1 more row" if more == 1 else f"{more:,} more rows")
    if any(row.folded for row in drawn):
        hidden.append("every turn")
    if graph.archived and sum(row.node is not None for row in drawn) < len(graph.nodes):
        number = len(graph.archived)
        hidden.append("the archived branch" if number == 1 else f"{number:,} archived branches")
    if hidden:
        out.line(
            f"`snapstore tree --all` shows {', '.join(hidden[:-1])}{' and ' * (len(hidden) > 1)}{hidden[-1]}.", DIM
        )


class Painter:
    """Rows as text: the label, names, the prompt in what room is left, and the age at the right."""

    def __init__(self, out: Output, graph: Graph, glyphs: Glyphs, now: float) -> None:
        self._out = out
        self._graph = graph
        self._glyphs = glyphs
        self._now = now
        self._width = out.size()[0] if out.terminal else 0
        self._undone = set(graph.undone())
        self._names: dict[bytes, list[str]] = {}
        for group, state in ((graph.branches, ""), (graph.archived, "archived")):
            for name, tip in group.items():
                self._names.setdefault(tip, []).append(self._branch(name, state))

    def line(self, row: Row) -> str:
        if row.node is not None:
            return self._node(row, row.node)
        if row.folded:
            text = f"{self._glyphs.fold}  {self._run(row.folded)}"
            return self._out.paint(self._cut(self._lanes(row.depth) + text), DIM)
        return self._out.paint(self._cut(self._lanes(row.depth) + self._glyphs.join), DIM)

    def _cut(self, text: str) -> str:
        return clip(text, self._width, self._glyphs.more) if self._width else text

    def _lanes(self, depth: int) -> str:
        """The lanes left of a row. Where they would take the room of the text, the innermost are left out."""
        most = max(self._width // 6, 2) if self._width else depth
        lanes = self._glyphs.lane * min(depth, most)
        return lanes if depth <= most else f"{lanes[:-2]}{self._glyphs.more[0]} "

    def _node(self, row: Row, node: GraphNode) -> str:
        here = node.oid == self._graph.cursor
        undone = node.oid in self._undone
        quiet = node.turn is None and not here
        label = f"Turn {node.turn}" if node.turn is not None else safe(node.kind)
        if node.turn is not None and node.kind != "turn":
            label += f" {safe(node.kind)}"
        if row.forks:
            label += f" {self._glyphs.fork} {row.forks}"
        mark = self._glyphs.here if here else self._glyphs.of(node)
        parts: list[tuple[str, tuple[str, ...]]] = [
            (self._lanes(row.depth), (DIM,)),
            (f"{mark}  {label}", (CYAN, BOLD) if here else (BOLD,)),
        ]
        parts += [(f"  {name}", (GREEN,)) for name in self._names.get(node.oid, ())]
        parts += [(f"  [{safe(name)}]", (YELLOW,)) for name in self._graph.pinned.get(node.oid, ())]
        if undone:
            parts.append(("  undone", ()))
        prompt = first_line(node.subject) if node.kind not in ("baseline", "edits") else ""
        return self._fit(parts, prompt, age(node.seconds, self._now), dim=quiet or undone)

    def _fit(self, parts: list[tuple[str, tuple[str, ...]]], prompt: str, age: str, *, dim: bool) -> str:
        """One row of at most the terminal's width. The prompt gives way first, then the age, then the names."""
        head = "".join(text for text, _ in parts)
        if not self._width:
            return f"{head}{f'  {prompt}' if prompt else ''}  ({age})"
        left = self._width - cells(head)
        if left < 0:
            return self._cut(head)
        wanted = 2 + min(cells(prompt), LEAST_PROMPT) if prompt else 0
        if left < wanted + 2 + len(age):
            age = ""
        room = left - 2 - (2 + len(age) if age else 0)
        text = f"  {clip(prompt, room, self._glyphs.more)}" if prompt and room > 2 else ""
        paint = self._out.paint
        row = paint(head + text, DIM) if dim else "".join(paint(text, *styles) for text, styles in parts) + text
        return f"{row}{' ' * (left - cells(text) - len(age))}{paint(age, DIM)}" if age else row

    def _branch(self, name: str, state: str) -> str:
        if 0 < self._width < NARROW:
            return safe(name)
        return called(name, self._graph.label(name), state)

    def _run(self, folded: list[GraphNode]) -> str:
        """What is folded: `… 12 turns (5–16) and 2 edits`."""
        glyphs = self._glyphs
        numbers = [node.turn for node in folded if node.turn is not None]
        edits = len(folded) - len(numbers)
        parts = [f"{len(numbers):,} turns ({numbers[-1]}{glyphs.to}{numbers[0]})"] if numbers else []
        if edits:
            parts.append("1 edit" if edits == 1 else f"{edits:,} edits")
        return f"{glyphs.more} {' and '.join(parts)}"


COMMAND = Command(
    "tree",
    tree,
    "Draw the session's turns with all their branches, newest on top. `@` is where you are; `Turn 5 ⑂ 2` has two ways "
    "on from it. Long runs are folded and archived branches left out.",
    options=(
        Option("all", "--all", "Every node, and the archived branches too."),
        Option("ascii", "--ascii", "Draw with plain characters only."),
    ),
)
