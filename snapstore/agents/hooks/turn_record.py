"""Read a turn's conversation from the agent's transcript when the turn ends.

The transcript may lag behind the hooks, be switched off, or be written by another program. The record is then smaller,
but never wrong. Tool calls in the transcript are a second source for the files that the turn touched.
"""

from __future__ import annotations

import json
import os

from snapstore.agents.events.tool_effects import effect
from snapstore.errors import SnapstoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from snapstore.store.state import OpenTurn
    from snapstore.transcripts.model import ConversationTurn

_LONGEST_PART = 1 << 16  # characters of a tool's input or result
_LARGEST_LINES = 32 << 20  # bytes of raw lines kept per turn
_LARGEST_CALLS = 8 << 20  # characters of tool calls; beyond that, only the fields in _CALL are kept
_CALL = ("id", "name", "type", "file_path", "is_error")
_LOOK_BACK = 3  # turns; a hook may be late


class Remembered:
    """Fields for the turn's record, and the file effects of the turn's tool calls."""

    __slots__ = ("complete", "interrupted", "paths", "record", "scans")

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.complete = False
        self.interrupted = False  # whether the transcript says that the user interrupted the turn
        self.paths: list[str] = []
        self.scans = False


def remember(agent: str, origin: dict[str, str], prompt: str, reply: str = "", after: str = "") -> Remembered:
    """Read the turn that began with `prompt` from the transcript.

    `after` is the first message of the previous turn; only later turns are considered. This function never raises,
    because a hook must not fail.
    """
    found = Remembered()
    turn = None
    try:
        turn = _find(agent, origin, prompt, after)
    except (SnapstoreError, OSError, ValueError, RecursionError, MemoryError) as error:
        found.record["transcript_error"] = str(error)[:500]
    about: dict[str, Any] = {"agent_session": origin.get("session", ""), "prompt_id": origin.get("prompt_id", "")}
    if turn is not None:
        found.record |= conversation_fields(turn)
        about |= {"message_id": turn.messages[0].id if turn.messages else None, "compacted": turn.compacted_before}
        if turn.prompt and not prompt:
            found.record["prompt"] = turn.prompt
        for call in turn.tool_calls:
            if not call.is_error:
                touched = effect(call.name, call.input)
                found.paths += touched.paths
                # A subagent's work is not in this transcript.
                found.scans |= touched.scans or call.name.lower() in ("agent", "task")
        found.interrupted = turn.interrupted
        found.complete = _is_told(reply, turn.replies) if reply else bool(turn.replies)
    replies = found.record.get("replies", [])
    if reply and reply not in replies and not _is_told(reply, replies):
        found.record["replies"] = [*found.record.get("replies", []), reply]
    found.record["conversation"] = {**about, "complete": found.complete}
    return found


def _is_told(reply: str, replies: list[str]) -> bool:
    """Return whether a reply is the last of these, or the last ones joined, as Gemini CLI reports a turn's replies."""
    wanted = "".join(reply.split())
    for each in reversed(replies):
        tail = "".join(each.split())
        if not wanted.endswith(tail):
            return False
        wanted = wanted.removesuffix(tail)
        if not wanted:
            return True
    return False


def conversation_fields(turn: ConversationTurn) -> dict[str, Any]:
    """Convert a transcript's turn to record fields (S0-07, S0-10, S0-11)."""
    lines: list[str] = []
    size = 0
    for line in turn.lines:
        size += len(line)
        if size <= _LARGEST_LINES:
            lines.append(line.decode("utf-8", "surrogateescape"))
    fields: dict[str, Any] = {
        "replies": turn.replies,
        "thinking": turn.thinking,
        "tool_calls": _bounded(call.fields() for call in turn.tool_calls),
        "lines": lines,
    }
    if len(lines) < len(turn.lines):
        fields["lines_left_out"] = len(turn.lines) - len(lines)
    return fields


def _bounded(calls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop what is too long for a record, or duplicated; the raw lines have it all."""
    kept = []
    room = _LARGEST_CALLS
    for call in calls:
        call.pop("outcome", None)
        result = call.get("result")
        if isinstance(result, str) and len(result) > _LONGEST_PART:
            call["result"] = result[:_LONGEST_PART] + "…"
        if "input" in call and len(json.dumps(call["input"])) > _LONGEST_PART:
            del call["input"]
        room -= len(str(call)) if room > 0 else 0
        kept.append(call if room > 0 else {name: call[name] for name in _CALL if name in call})
    return kept


def _find(agent: str, origin: dict[str, str], prompt: str, after: str) -> ConversationTurn | None:
    from snapstore.transcripts.readers.read import AGENTS, last_turns

    if agent not in AGENTS:
        return None
    path = transcript_of(agent, origin)
    if path is None:
        return None
    found = last_turns(path, agent, _LOOK_BACK, origin.get("session"))
    old = [at for at, turn in enumerate(found, 1) if after and turn.messages and turn.messages[0].id == after]
    turns = found[old[-1] :] if old else found
    wanted = origin.get("prompt_id")
    if wanted:
        for turn in reversed(turns):
            ids = {turn.prompt_id, *(message.id for message in turn.messages[:1])}
            if wanted in ids:
                return turn
    said = prompt.strip()
    for turn in reversed(turns):
        if said and (turn.prompt or "").strip() == said:
            return turn
    return turns[-1] if turns and not said and not wanted else None


def transcript_of(agent: str, origin: dict[str, str]) -> str | None:
    """Return the path of the conversation's transcript, or None.

    The path that the agent reports is used only if it belongs to that agent session; otherwise the agent's usual
    location is searched. A payload could name any of the user's files, and the text of such a file must not end up in
    records.
    """
    from snapstore.transcripts.locate import find_transcript

    named, session = origin.get("transcript", ""), origin.get("session", "")
    own = session[:8] in os.path.basename(named) + os.path.basename(os.path.dirname(named))
    if named and session and own and not os.path.islink(named):
        return named
    try:
        return find_transcript(agent, session, origin.get("cwd") or None)
    except SnapstoreError:
        return None


def read_record(note: bytes | None) -> dict[str, Any]:
    try:
        record = json.loads(note) if note is not None else {}
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def is_incomplete(record: dict[str, Any]) -> bool:
    about = record.get("conversation")
    return isinstance(about, dict) and about.get("complete") is False


def origin_of(turn: OpenTurn) -> dict[str, str]:
    return {name: value for name, value in turn.origin.items() if isinstance(value, str)}
