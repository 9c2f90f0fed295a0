"""Gemini CLI's hooks.

Gemini CLI accepts only JSON or nothing on standard output; an empty object is a neutral answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.agents.events.event import END, PROMPT, START, STOP, Event
from snapstore.agents.events.payload import AFTER, BEFORE, text, tool_events
from snapstore.agents.known.agent import (
    LONG,
    RESUME,
    SHORT,
    Agent,
    Conversations,
    Forking,
    HookFiles,
    SharedFile,
    group,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload
    from snapstore.agents.known.agent import Entry


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


def _entry(seconds: int, matcher: str = "") -> Entry:
    return group(matcher, name="snapstore", timeout=seconds * 1000)


AGENT = Agent(
    name="gemini",
    title="Gemini CLI",
    events=events,
    answer="{}",
    hooks=HookFiles(
        content=SharedFile(
            {
                "SessionStart": _entry(SHORT),
                "BeforeAgent": _entry(LONG),
                "BeforeTool": _entry(SHORT, "*"),
                "AfterTool": _entry(SHORT, "*"),
                "AfterAgent": _entry(LONG),
                "SessionEnd": _entry(SHORT),
            }
        ),
        user=".gemini",
        project=".gemini",
        files=("settings.json",),
        tells_at="BeforeAgent",
        after="Restart Gemini CLI. It may warn once about new hooks of a project.",
    ),
    forking=Forking(
        way=RESUME,
        resume="gemini --resume {}",
        fresh="gemini",
        notice="Gemini CLI does not fork: it resumes the conversation, and `/rewind` in it goes back to the turn.",
    ),
    conversations=Conversations(),
)
