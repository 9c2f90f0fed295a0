"""`snapstore tree`: every branch of the session, drawn."""

from __future__ import annotations

import json
import sys
from json.encoder import encode_basestring_ascii as quote

from snapstore.cli.drawing import NARROW, Glyphs, Row, Stamps, age, called, cells, clip, listed, rows
from snapstore.cli.options import Command, Option
from snapstore.cli.output import BOLD, CYAN, DIM, GREEN, YELLOW, Output, first_line, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapstore.cli.context import Context
    from snapstore.timeline.graph import Graph, GraphNode

LEAST_PROMPT = 12


def tree(context: Context, *, all: bool, ascii: bool) -> int:
    from snapstore.timeline.graph import Graph

    session = context.reading()
    with session.store as store:
        graph = Graph(store, session.name)
        if context.json:
            _print_document(context.out, graph, store.clock(), everything=all)
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


# For programs.


def _print_document(out: Output, graph: Graph, now: float, *, everything: bool) -> None:
    """The document of TreeRecord, a node a line. Written as text at once: as objects, checked and then encoded, ten
    thousand nodes would take longer than all the rest. Tests hold it to the record."""
    from snapstore.timeline.branch import ARCHIVED, CURRENT, LISTED, Branch

    nodes = graph.by_seq()
    if not everything:
        shown = listed(graph)
        nodes = [node for node in nodes if node.oid in shown]
    branches = [
        Branch(graph, name, tip, CURRENT if name == graph.branch else LISTED) for name, tip in graph.branches.items()
    ]
    if everything:
        branches += [Branch(graph, name, tip, ARCHIVED) for name, tip in graph.archived.items()]
    rows = json.dumps([branch.as_json(now) for branch in branches])
    head = {"session": graph.session, "cursor": graph.cursor.hex(), "branch": graph.branch}
    body = ",\n".join(_encoded(graph, nodes))
    out.raw(f'{json.dumps(head)[:-1]}, "nodes": [\n{body}\n], "branches": {rows}}}\n'.encode("ascii"))


def _encoded(graph: Graph, nodes: list[GraphNode]) -> Iterator[str]:
    undone, pinned, stamps = set(graph.undone()), graph.pinned, Stamps()
    session = quote(graph.session)
    names: dict[str | None, str] = {name: quote(name) for name in (*graph.branches, *graph.archived)}
    names[None] = '""'
    for node in nodes:
        turn = node.turn
        what = (
            f'"label": "Turn {turn}", "prompt": {quote(node.subject)}'
            if turn is not None
            else f'"label": {quote(node.kind.capitalize())}, "prompt": ""'
        )
        parent = f'"{node.parent.hex()}"' if node.parent else "null"
        yield (
            f'{{"seq": {node.seq}, "turn": {"null" if turn is None else turn}, "commit": "{node.oid.hex()}", '
            f'"tree": "{node.tree.hex()}", "parent": {parent}, "kind": {quote(node.kind)}, "session": {session}, '
            f'"branch": {names[graph.branch_of(node.oid)]}, {what}, "agent": {quote(node.agent)}, '
            f'"ended_at": "{stamps.of(node.seconds)}", "undone": {"true" if node.oid in undone else "false"}, '
            f'"checkpoints": {json.dumps(pinned[node.oid]) if node.oid in pinned else "[]"}}}'
        )


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
