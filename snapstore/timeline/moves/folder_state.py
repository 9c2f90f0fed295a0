"""Find what no tree holds: empty folders to keep, and private permission bits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from stat import S_IRUSR

from snapstore.errors import Failed
from snapstore.git.objects.ids import EMPTY_TREE
from snapstore.git.repository import Shadow
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import is_path, paths_in, read_node
from snapstore.timeline.history.operations import Operation
from snapstore.timeline.moves.plan import REMOVE, WRITE, Plan
from snapstore.worktree.write.file_moves import folders_above
from snapstore.worktree.write.safe_dirs import FOLDER_THERE, UNREADABLE_THERE
from snapstore.worktree.write.writer import Writer


def private_modes(shadow: Shadow, passed: Iterable[bytes]) -> dict[bytes, int]:
    """Return unusual permission bits from the records of nodes.

    The nodes are those that created or removed the files.
    """
    found: dict[bytes, int] = {}
    for oid in passed:
        modes = read_node(shadow, oid, files=False).record.get("modes", {})
        for path, mode in modes.items():
            if isinstance(mode, int) and 0 <= mode <= 0o777 and is_path(path):
                # The record may come from another machine. A file that its owner cannot read would be unreadable to
                # snapstore too.
                found[os.fsencode(path)] = mode | S_IRUSR
    return found


def folders_to_keep(graph: Graph, plan: Plan, last: Operation | None) -> list[bytes]:
    """Return the folders to keep even if the move empties them.

    A move may remove only folders that were created by a turn it leaves, or removed by a turn it enters. A folder that
    a person had made before the last move wrote the turn's files into it is kept too.
    """
    left, entered = list(plan.undone), list(plan.redone)
    if plan.new_node is not None and plan.new_node.kind == "revert":
        left.append(plan.new_node.of)
    elif plan.new_node is not None and plan.new_node.kind == "apply":
        entered.append(plan.new_node.of)
    removed = plan.of(REMOVE)
    ours: set[bytes] = set()
    if removed:
        shadow = graph.store.shadow
        ours.update(*(_folders_made(shadow, graph, oid, "empty_folders") for oid in left))
        ours.update(*(_folders_made(shadow, graph, oid, "left_folders", backwards=True) for oid in entered))
        if last is not None and last.to is not None and last.to.get("commit") == plan.start.hex():
            ours -= {os.fsencode(folder) for folder in last.standing if is_path(folder)}
    return sorted(folders_above(removed) - ours)


def _folders_made(shadow: Shadow, graph: Graph, oid: bytes, besides: str, *, backwards: bool = False) -> set[bytes]:
    """Return the folders that a turn created (`backwards`: removed).

    Folders in the record's field `besides` are left out: they existed, empty, before the turn (`backwards`: after it).
    """
    added = [path for path, old, new in graph.turns.touched(oid) if (new if backwards else old) is None]
    if not added:
        return set()
    node = graph.node(oid)
    before = graph.node(node.parent).tree if node.parent is not None else EMPTY_TREE
    tree = node.tree if backwards else before
    found = {folder for path in added for folder in shadow.trees.missing(tree, path)}
    return found - paths_in(read_node(shadow, oid, files=False).record, besides) if found else found


def existing_empty_folders(shadow: Shadow, plan: Plan, restore: Writer, tree: bytes) -> list[str]:
    """Return existing folders without recorded files that the move writes files into."""
    found = []
    for folder in {folder for path in plan.of(WRITE) for folder in shadow.trees.missing(tree, path)}:
        state = restore.observe(folder)
        if state == UNREADABLE_THERE:
            raise Failed(f"{os.fsdecode(folder)} cannot be read")
        if state == FOLDER_THERE:
            found.append(os.fsdecode(folder))
    return sorted(found)
