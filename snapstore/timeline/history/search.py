"""Search a session's turns: prompts, replies and paths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from snapstore.timeline.history.graph import Graph, GraphNode
from snapstore.timeline.history.nodes import file_changes, read_node

Where = Literal["prompt", "path", "reply"]

MOST = 200
_AROUND = 80  # characters shown on each side of a match


class Hit:
    """One place in a node that matches, with the text around the match."""

    __slots__ = ("branch", "node", "text", "where")

    def __init__(self, node: GraphNode, branch: str | None, where: Where, text: str) -> None:
        self.node = node
        self.branch = branch
        self.where = where
        self.text = text


def search(graph: Graph, text: str, limit: int = MOST) -> list[Hit]:
    """Return matches regardless of case, newest first, one per place in a node."""
    wanted = text.casefold()
    hits: list[Hit] = []
    for node in reversed(graph.by_seq()):
        for where, found in _places(graph, node.oid, wanted):
            at = found.casefold().find(wanted)
            if at < 0:
                continue
            shown = found if where == "path" else _around(found, at, len(text))
            hits.append(Hit(node, graph.branch_of(node.oid), where, shown))
            if len(hits) == limit:
                return hits
    return hits


def _places(graph: Graph, oid: bytes, wanted: str) -> Iterator[tuple[Where, str]]:
    shadow = graph.store.shadow
    note = shadow.note(oid)
    if note is None or _may_hold(note, wanted):
        found = read_node(shadow, oid, files=False)
        if found.prompt:
            yield "prompt", found.prompt
        replies = [reply for reply in found.record.get("replies", []) if isinstance(reply, str)]
        if replies:
            yield "reply", "\n".join(replies)
    node = graph.node(oid)
    if node.kind != "baseline" and node.parent is not None:
        before = graph.node(node.parent).tree
        for change in file_changes(shadow, before, node.tree) if before != node.tree else ():
            yield "path", os.fsdecode(change.path)


def _may_hold(note: bytes, wanted: str) -> bool:
    """Return whether a note may match and is worth parsing.

    JSON escapes some characters, so only a plain text can be ruled out.
    """
    plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set('"\\/')
    return not plain or wanted.encode() in note.lower() or b"\\u" in note


def _around(text: str, at: int, length: int) -> str:
    start, end = max(at - _AROUND, 0), at + length + _AROUND
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
