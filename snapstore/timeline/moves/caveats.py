"""Caveats of undoing a turn: what cannot be restored, and whose work it may be.

A turn's record does not list these facts as file changes. Every command that undoes a turn shows these caveats (G-30,
G-31).
"""

from __future__ import annotations

import os

from snapstore.base.text import listed
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import Node
from snapstore.timeline.moves.plan import Plan
from snapstore.worktree.scan.blob_reader import REMOVED

_SHOWN = 3


def caveats_of(node: Node, changing: set[bytes], mentioned: set[bytes]) -> list[str]:
    """Return one sentence per caveat of a turn.

    `changing` holds the paths that the move writes or removes. `mentioned` holds the paths of earlier caveats, and gets
    those of this turn.
    """
    name = f"turn {node.turn}"
    notes: list[str] = []
    others = overlapping_turns(node)
    if others:
        notes.append(f"While {name} ran, {others}: its changes may be among these files.")
    for item in node.left_out:
        path, was = os.fsencode(item["path"]), item["why"].removeprefix(REMOVED)
        if path in mentioned or (path in changing and was == item["why"]):
            continue
        mentioned.add(path)
        if was == item["why"]:
            notes.append(f"{name} could not record {item['path']} ({was}): it stays as it is.")
        elif path in changing:
            notes.append(f"{name} removed {item['path']} ({was}): only content recorded earlier can be restored.")
        else:
            notes.append(f"{name} removed {item['path']} ({was}): it cannot be restored.")
    seen = [path for path in node.record.get("first_seen", []) if os.fsencode(path) not in mentioned | changing]
    if seen:
        mentioned.update(map(os.fsencode, seen))
        stays = "it stays as it is" if len(seen) == 1 else "they stay as they are"
        notes.append(
            f"{listed(seen, _SHOWN)} first became visible in {name}, and the state before is unknown: {stays}."
        )
    # An imported turn has only what its conversation file shows.
    for item in node.record.get("unknown", []):
        if isinstance(item, dict) and not item.get("path") and item.get("why"):
            notes.append(f"{name} {item['why']}, and stays as it is.")
    return notes


def overlapping_turns(node: Node) -> str:
    """Name the sessions whose turns were open when a scan ended this turn.

    A scan attributes every change to the turn that ends. Returns an empty string if no other turn was open.
    """
    names = [name for name in node.record.get("beside", []) if isinstance(name, str)]
    if not names:
        return ""
    return f"a turn of session {listed(names, _SHOWN)} was open"


def leave_line(plan: Plan, graph: Graph, seen: Graph) -> None:
    """Count the turns on the line that the session was opened for, if another line is left for it."""
    if seen.cursor == graph.cursor or plan.kind not in ("undo", "goto") or plan.target == plan.start:
        return
    left, entered = graph.path(seen.cursor, plan.target)
    if entered:
        return
    plan.on_line = [oid for oid in left if graph.node(oid).turn is not None] or None
    plan.notes.append(f"This leaves {graph.branch} for {seen.branch}, the line of {plan.speaks_for}.")
