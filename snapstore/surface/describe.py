"""Lines of text that describe one node to a person.

Anyone can write a turn's record (a git note), so no value in a record is trusted to have the right type.
"""

from __future__ import annotations

from typing import Any

from snapstore.base.text import ago, date_text, duration_text, first_line, path_text, safe, seconds_of, shorten
from snapstore.git.ref_names import HEADS
from snapstore.timeline.history.nodes import FileChange, Node

FOUND_BY = {"named": "named by the agent", "scanned": "found by scan", "watched": "seen by the watcher"}
FOUND_BY["replayed"] = "according to the conversation"


def who(node: Node) -> str:
    """Return a node's session, branch, sequence number and agent in one line."""
    parts = [f"session {safe(node.session)}", f"branch {safe(node.branch)}" if node.branch else "", f"#{node.seq}"]
    if node.agent:
        parts.append(f"by {safe(node.agent)}")
    return " · ".join(part for part in parts if part)


def when(node: Node, now: float) -> str:
    """Return when a node was recorded, how long its turn took, and its exit status."""
    parts = [f"{date_text(node.started_at)} ({ago(node.started_at, now)})"]
    start, end = seconds_of(node.started_at), seconds_of(node.ended_at or "")
    if start is not None and end is not None and end - start >= 1:
        parts.append(f"took {duration_text(end - start)}")
    if node.record.get("exit_status") is not None:
        parts.append(f"exit status {safe(str(node.record['exit_status']))}")
    return " · ".join(parts)


def listed(node: Node, name: str) -> list[Any]:
    """Return the list that a node's record holds under `name`, or an empty list."""
    found = node.record.get(name)
    return found if isinstance(found, list) else []


def calls(node: Node) -> list[str]:
    """Return the agent's tool calls, one line each: `Write src/login.py`."""
    return [text for call in listed(node, "tool_calls") if (text := _call(call))]


def _call(call: Any) -> str:
    if not isinstance(call, dict):
        return ""
    given = call.get("input")
    command = given.get("command") if isinstance(given, dict) else None
    what = call.get("file_path") or (command if isinstance(command, str) else "")
    failed = "  (failed)" if call.get("is_error") is True else ""
    return shorten(safe(first_line(f"{call.get('name') or ''} {what}".strip())), 100) + failed


def git_moves(node: Node) -> list[str]:
    """Describe how the user's own repository changed during a turn (G-29)."""
    moved = node.record.get("user_git")
    if not isinstance(moved, dict):
        return []
    lines = []
    heads = _pair(moved.get("head")) or _pair(moved.get("head_commit"))
    if heads:
        lines.append(f"HEAD went from {_ref(heads[0])} to {_ref(heads[1])}")
    if moved.get("index"):
        lines.append("the index changed")
    branches = moved.get("branches")
    for name, ends in sorted(branches.items()) if isinstance(branches, dict) else ():
        if pair := _pair(ends):
            old, new = pair
            what = "was created at" if old is None else "was deleted at" if new is None else f"went from {_ref(old)} to"
            lines.append(f"branch {safe(str(name))} {what} {_ref(new or old)}")
    if "branches_digest" in moved:
        lines.append("branches changed")
    return lines


def _pair(value: object) -> list[object] | None:
    return value if isinstance(value, list) and len(value) == 2 else None


def _ref(name: object) -> str:
    text = str(name or "nothing")
    if len(text) in (40, 64) and not text.strip("0123456789abcdef"):
        return text[:8]
    return safe(text.removeprefix(HEADS))


def change_text(change: FileChange) -> str:
    """Return the path of a changed file, or `old -> new` if the file was renamed."""
    path = path_text(change.path)
    return path if change.renamed_from is None else f"{path_text(change.renamed_from)} -> {path}"
