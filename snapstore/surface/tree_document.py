"""A session's tree as one JSON document: a `TreeRecord`, or the page's variant.

A tree may have ten thousand nodes. Each node is therefore described and encoded on its own, and no record is kept.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator

from snapstore.base.text import timestamp
from snapstore.surface.records.base import document, json_text
from snapstore.surface.records.branches import TreeNodeRecord, TreeRecord
from snapstore.timeline.history.branch import ARCHIVED, CURRENT, LISTED, Branch
from snapstore.timeline.history.graph import Graph, GraphNode

_NODES = '"nodes": []'


def tree_document(graph: Graph, now: float, shown: Container[bytes] | None = None) -> bytes:
    """Encode a tree, one node per line.

    With `shown`, only those nodes are encoded, and archived branches are left out.
    """
    return encoded(TreeRecord.of(graph, listed_branches(graph, archived=shown is None), now), graph, shown)


def listed_branches(graph: Graph, *, archived: bool = True) -> list[Branch]:
    """Return the branches of a tree, including the archived ones if `archived` is set."""
    found = [
        Branch(graph, name, tip, CURRENT if name == graph.branch else LISTED) for name, tip in graph.branches.items()
    ]
    if archived:
        found += [Branch(graph, name, tip, ARCHIVED) for name, tip in graph.archived.items()]
    return found


def encoded(tree: TreeRecord, graph: Graph, shown: Container[bytes] | None = None) -> bytes:
    """Encode the record of a tree, which has no nodes, together with the nodes."""
    nodes = graph.by_seq()
    if shown is not None:
        nodes = [node for node in nodes if node.oid in shown]
    head, tail = json.dumps(document(tree)).split(_NODES, 1)
    body = ",\n".join(_rows(graph, nodes))
    return f'{head}"nodes": [\n{body}\n]{tail}\n'.encode("ascii")


def _rows(graph: Graph, nodes: list[GraphNode]) -> Iterator[str]:
    undone, stamps = set(graph.undone()), _Stamps()
    for node in nodes:
        yield json_text(TreeNodeRecord.of(graph, node, stamps.of(node.seconds), undone=node.oid in undone))


class _Stamps(dict[int, str]):
    """Timestamps in the format of every document, with the date cached per day.

    Formatting the date is most of the work, so only the first timestamp of each day pays for it.
    """

    def __missing__(self, day: int) -> str:
        self[day] = found = timestamp(day * 86400)[:11]
        return found

    def of(self, seconds: int) -> str:
        day, rest = divmod(seconds, 86400)
        return f"{self[day]}{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.000Z"
