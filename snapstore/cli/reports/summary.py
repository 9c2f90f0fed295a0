"""Print a turn in one line, followed by warnings."""

from __future__ import annotations

from snapstore.base.text import and_more
from snapstore.cli.output import DIM, YELLOW, Output, files_text, path_text, safe
from snapstore.surface.describe import change_text
from snapstore.timeline.history.nodes import Node
from snapstore.timeline.moves.caveats import overlapping_turns

NAMED = 3  # files named in the line itself
LISTED = 20


def summary(out: Output, node: Node, lead: str = "") -> None:
    """Print what a turn changed, with warnings.

    Success is claimed only for what changed (G-23), and every file left out is named (G-30).
    """
    changed = "no file changed"
    if node.files:
        names = [change_text(change) for change in node.files[:NAMED]]
        if len(node.files) > NAMED:
            names.append("…")
        changed = f"{files_text(len(node.files))} changed: {', '.join(names)}"
    status = "" if node.status == "done" else out.paint(f" [{safe(node.status)}]", YELLOW)
    number = f"turn {node.turn}"
    after = out.paint(f"  (snapstore show {node.turn})", DIM)
    out.line(f"{lead}{number if lead else number.capitalize()}: {changed}{status}{after}")
    _list(out, lead, "left out", [f"{path_text(item['path'])} ({safe(item['why'])})" for item in node.left_out])
    first_seen = node.record.get("first_seen") or []
    _list(out, lead, "first seen, earlier state unknown", [path_text(str(path)) for path in first_seen])
    others = overlapping_turns(node)
    if others:
        out.line(f"{lead}{safe(others)} meanwhile: its changes may be among these files", YELLOW)
    if node.record.get("user_git"):
        out.line(f"{lead}your own git repository changed during this turn", YELLOW)


def _list(out: Output, lead: str, what: str, names: list[str]) -> None:
    for name in names[:LISTED]:
        out.line(f"{lead}{what}: {name}", YELLOW)
    if len(names) > LISTED:
        out.line(f"{lead}{what}: {and_more(len(names), LISTED)}", YELLOW)
