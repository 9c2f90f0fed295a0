"""Detect which agent wrote a transcript, from its content."""

from __future__ import annotations

import os
from typing import Any

from snapstore.transcripts.lines import lines, opened, parse

_HEAD = 64 << 10
_LOOKED_AT = 50  # lines


def detect_agent(path: str | os.PathLike[str]) -> str | None:
    """Return the agent whose format a transcript has, or None."""
    with opened(path) as file:
        head = file.read(_HEAD)
        if head.startswith(b"SQLite format 3\0"):
            return "opencode"
        for number, (_, raw) in enumerate(lines(file)):
            found = _agent_of(parse(raw) or {})
            if found is not None:
                return found
            if number >= _LOOKED_AT:
                break
    if b'"projectHash"' in head or (b'"sessionId"' in head and b'"startTime"' in head):
        return "gemini"
    if b'"agent"' in head and b'"sessionId"' in head and b'"messages"' in head:
        return "cline"
    if b'"info"' in head and b'"messages"' in head:
        return "opencode"
    return None


def _agent_of(record: dict[str, Any]) -> str | None:
    kind = record.get("type")
    if "parentUuid" in record and "provenance" in record:
        return "qwen"
    if "parentUuid" in record or (kind in ("summary", "file-history-snapshot") and "payload" not in record):
        return "claude"
    if kind in ("session_meta", "response_item", "event_msg", "turn_context") and "payload" in record:
        return "codex"
    if isinstance(kind, str) and "." in kind and isinstance(record.get("data"), dict):
        return "copilot"
    if "projectHash" in record or "$set" in record or ("sessionId" in record and "startTime" in record):
        return "gemini"
    if isinstance(record.get("info"), dict) and isinstance(record.get("messages"), list):
        return "opencode"
    if record.get("role") in ("user", "assistant") and isinstance(record.get("message"), dict):
        return "cursor"
    return None
