"""`snapstore show`: one turn, whole."""

from __future__ import annotations

from snapstore.cli.options import Command, Operand
from snapstore.cli.output import (
    BOLD,
    DIM,
    LISTED,
    YELLOW,
    Output,
    ago,
    date_text,
    duration_text,
    file_rows,
    files_text,
    first_line,
    path_text,
    safe,
    safe_lines,
    seconds_of,
    shorten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.timeline.nodes import Node

FOUND_BY = {"named": "named by the agent", "scanned": "found by scan", "watched": "seen by the watcher"}
FOUND_BY["replayed"] = "as the conversation tells"


def show(context: Context, *, turn: str | None) -> int:
    from snapstore.cli.patches import print_patch
    from snapstore.timeline.history import History
    from snapstore.timeline.patches import patch_json, patched

    session = context.reading()
    with session.store as store:
        history = History(session)
        node = history.node(history.resolve("@" if turn is None else turn))
        node.files, patch = patched(history, node.files)
        if context.json:
            from snapstore.records.base import dump
            from snapstore.records.nodes import ShowRecord

            names = ("replies", "thinking", "tool_calls", "lines", "unknown")
            conversation: dict[str, Any] = {name: _list(node, name) for name in names}
            about = node.record.get("conversation")
            conversation["conversation"] = about if isinstance(about, dict) else None
            context.document(dump(ShowRecord, {**node.as_json(), **conversation, **patch_json(patch)}))
            return 0
        out = context.out
        _head(out, node, store.clock())
        _conversation(out, node)
        _files(out, node)
        _remarks(out, node)
        if patch:
            out.line()
            print_patch(out, patch)
    return 0


def _head(out: Output, node: Node, now: float) -> None:
    status = "" if node.status == "done" else out.paint(f"  [{safe(node.status)}]", YELLOW)
    out.line(f"{out.paint(safe(node.label), BOLD)}  {node.commit}{status}")
    who = [f"session {safe(node.session)}", f"branch {safe(node.branch)}", f"#{node.seq}"]
    if node.agent:
        who.append(f"by {safe(node.agent)}")
    out.line(" · ".join(who), DIM)
    when = [f"{date_text(node.started_at)} ({ago(node.started_at, now)})"]
    start, end = seconds_of(node.started_at), seconds_of(node.ended_at or "")
    if start is not None and end is not None and end - start >= 1:
        when.append(f"took {duration_text(end - start)}")
    if node.record.get("exit_status") is not None:
        when.append(f"exit status {safe(str(node.record['exit_status']))}")
    out.line(" · ".join(when), DIM)


def _conversation(out: Output, node: Node) -> None:
    if node.prompt.strip():
        out.line()
        for line in safe_lines(node.prompt):
            out.line(f"    {line}".rstrip())
    calls = [text for call in _list(node, "tool_calls") if (text := _call(call))]
    if calls:
        out.line()
    for text in calls[:LISTED]:
        out.line(f"  · {text}", DIM)
    if len(calls) > LISTED:
        out.line(f"  · … and {len(calls) - LISTED:,} more", DIM)
    for reply in _list(node, "replies"):
        out.line()
        for line in safe_lines(str(reply)):
            out.line(f"  > {line}".rstrip(), DIM)


def _call(call: Any) -> str:
    """`Write src/login.py`, `Bash make test`: what the agent did, in a line."""
    if not isinstance(call, dict):
        return ""
    given = call.get("input")
    command = given.get("command") if isinstance(given, dict) else None
    what = call.get("file_path") or (command if isinstance(command, str) else "")
    failed = "  (failed)" if call.get("is_error") is True else ""
    return shorten(safe(first_line(f"{call.get('name') or ''} {what}".strip())), 100) + failed


def _files(out: Output, node: Node) -> None:
    if node.kind == "baseline":
        return
    out.line()
    if not node.files:
        out.line("No file changed.", DIM)
        return
    found = FOUND_BY.get(node.found_by or "")
    out.line(f"{files_text(len(node.files))} changed{f', {found}' if found else ''}")
    for row in file_rows(out, node.files, "  "):
        out.line(row)


def _remarks(out: Output, node: Node) -> None:
    """What a reader must know beyond the files: what was not taken in, and what moved in their own repository."""
    if node.left_out:
        out.line()
        out.line("Left out:", YELLOW)
        for item in node.left_out:
            out.line(f"  {path_text(item['path'])}  {out.paint(safe(item['why']), DIM)}")
    unknown = [item for item in _list(node, "unknown") if isinstance(item, dict)]
    if unknown:
        out.line()
        out.line("Not known from the conversation:", YELLOW)
        for item in unknown:
            out.line(f"  {path_text(str(item.get('path') or ''))}  {out.paint(safe(str(item.get('why'))), DIM)}")
    first_seen = _list(node, "first_seen")
    if first_seen:
        out.line()
        out.line("First seen in this turn, their state before is unknown:", YELLOW)
        for path in first_seen:
            out.line(f"  {path_text(str(path))}")
    moved = list(git_moves(node))
    if moved:
        out.line()
        out.line("Your own git repository moved meanwhile (snapstore never moves it):", YELLOW)
        for text in moved:
            out.line(f"  {text}")


def git_moves(node: Node) -> list[str]:
    """How the user's own repository moved during the turn (G-29), for people."""
    moved = node.record.get("user_git")
    if not isinstance(moved, dict):
        return []
    lines = []
    heads = _pair(moved.get("head")) or _pair(moved.get("head_commit"))
    if heads:
        lines.append(f"HEAD went from {_ref(heads[0])} to {_ref(heads[1])}")
    if moved.get("index"):
        lines.append("what is staged changed")
    branches = moved.get("branches")
    for name, ends in sorted(branches.items()) if isinstance(branches, dict) else ():
        if pair := _pair(ends):
            old, new = pair
            what = "was created at" if old is None else "was deleted at" if new is None else f"went from {_ref(old)} to"
            lines.append(f"branch {safe(str(name))} {what} {_ref(new or old)}")
    if "branches_digest" in moved:
        lines.append("branches moved")
    return lines


def _pair(value: object) -> list[object] | None:
    """From and to. The record is a note, which anyone can write."""
    return value if isinstance(value, list) and len(value) == 2 else None


def _ref(name: object) -> str:
    text = str(name or "nothing")
    if len(text) in (40, 64) and not text.strip("0123456789abcdef"):
        return text[:8]
    return safe(text.removeprefix("refs/heads/"))


def _list(node: Node, name: str) -> list[object]:
    found = node.record.get(name)
    return found if isinstance(found, list) else []


COMMAND = Command(
    "show",
    show,
    "Show one turn, with its patch. Also its prompt and replies, and what was left out. TURN is a number (0 is before "
    "the first), `#12` by sequence, `@` where you are (the default), or a commit hash.",
    operands=(Operand("turn", "[TURN]"),),
)
