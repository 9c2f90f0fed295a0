"""A session's tree as one document for programs, the one of TreeRecord.

Written as text at once: as objects, checked and then encoded, ten thousand nodes would take longer than all the rest.
Tests hold it to the record.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as quote

from snapstore.timeline.branch import ARCHIVED, CURRENT, LISTED, Branch
from snapstore.timeline.documents import timestamp
from snapstore.timeline.foreign import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import Any

    from snapstore.timeline.graph import Graph, GraphNode


def tree_document(graph: Graph, now: float, shown: Container[bytes] | None = None, **more: Any) -> bytes:
    """A node a line. With `shown` only those nodes, and no archived branches; `more` are fields beside them."""
    nodes = graph.by_seq()
    if shown is not None:
        nodes = [node for node in nodes if node.oid in shown]
    branches = [
        Branch(graph, name, tip, CURRENT if name == graph.branch else LISTED) for name, tip in graph.branches.items()
    ]
    if shown is None:
        branches += [Branch(graph, name, tip, ARCHIVED) for name, tip in graph.archived.items()]
    rows = json.dumps([branch.as_json(now) for branch in branches])
    head = {"session": graph.session, "cursor": graph.cursor.hex(), "branch": graph.branch, **told(graph.owner), **more}
    body = ",\n".join(_encoded(graph, nodes))
    return f'{json.dumps(head)[:-1]}, "nodes": [\n{body}\n], "branches": {rows}}}\n'.encode("ascii")


def _encoded(graph: Graph, nodes: list[GraphNode]) -> Iterator[str]:
    undone, pinned, stamps = set(graph.undone()), graph.pinned, _Stamps()
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


class _Stamps(dict[int, str]):
    """Time stamps as in every document; of each day only the first is worked out."""

    def __missing__(self, day: int) -> str:
        self[day] = found = timestamp(day * 86400)[:11]
        return found

    def of(self, seconds: int) -> str:
        day, rest = divmod(seconds, 86400)
        return f"{self[day]}{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.000Z"
