"""Gemini CLI's hooks.

Gemini CLI accepts only JSON or nothing on standard output; an empty object is a neutral answer.
"""

from __future__ import annotations

from snapstore.agents.hooks.events import END, PROMPT, START, STOP, Event
from snapstore.agents.hooks.payload import AFTER, BEFORE, text, tool_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from snapstore.agents.hooks.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    name = text(payload, "hook_event_name")
    common: dict[str, Any] = {
        "agent": "gemini",
        "session_id": text(payload, "session_id") or environ.get("GEMINI_SESSION_ID", ""),
        "cwd": environ.get("GEMINI_PROJECT_DIR") or text(payload, "cwd"),
        "transcript": text(payload, "transcript_path"),
    }
    if name in ("BeforeTool", "AfterTool"):
        kind = BEFORE if name == "BeforeTool" else AFTER
        return tool_events(kind, text(payload, "tool_name"), payload.get("tool_input"), common)
    if name == "BeforeAgent":
        return [Event(PROMPT, prompt=text(payload, "prompt"), **common)]
    if name == "AfterAgent":
        return [Event(STOP, reply=text(payload, "prompt_response"), status="done", **common)]
    if name == "SessionStart":
        return [Event(START, source=text(payload, "source"), **common)]
    if name == "SessionEnd":
        return [Event(END, source=text(payload, "reason"), **common)]
    return []
