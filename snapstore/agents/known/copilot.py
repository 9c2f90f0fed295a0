"""Copilot CLI's hooks.

An event named in camelCase has a payload in camelCase. An event named in PascalCase has a payload like Claude Code's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from snapstore.agents.events.event import END, PROMPT, START, STOP, Event
from snapstore.agents.events.payload import AFTER, BEFORE, milliseconds, text, tool_events
from snapstore.agents.known.agent import (
    LONG,
    RESUME,
    SHORT,
    Agent,
    Conversations,
    Forking,
    HookFiles,
    SharedFile,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload
    from snapstore.agents.known.agent import Entry


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    if "hook_event_name" in payload:
        from snapstore.agents.events.claude_form import claude_events

        return claude_events(payload, "copilot", "")
    caller = text(payload, "parentAgentId")  # a subagent has a session of its own, and works on its caller's turn
    common: dict[str, Any] = {
        "agent": "copilot",
        "session_id": caller or text(payload, "sessionId"),
        "cwd": text(payload, "cwd"),
        "at": milliseconds(payload, "timestamp"),
        "transcript": "" if caller else text(payload, "transcriptPath"),
    }
    if "toolName" in payload:
        kind = AFTER if "toolResult" in payload else BEFORE
        return tool_events(kind, text(payload, "toolName"), _arguments(payload.get("toolArgs")), common)
    if caller:
        return []
    # Only the fields show which event this is.
    if "prompt" in payload:
        return [Event(PROMPT, prompt=text(payload, "prompt"), **common)]
    if "stopReason" in payload:
        return [Event(STOP, status="done", **common)]
    if "source" in payload:
        return [Event(START, source=text(payload, "source"), **common)]
    if "reason" in payload:
        return [Event(END, source=text(payload, "reason"), **common)]
    return []


def _arguments(given: Any) -> Any:
    """Decode a tool's arguments, which may be JSON in a string."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _entry(seconds: int) -> Entry:
    return lambda command: {"type": "command", "bash": command, "timeoutSec": seconds}


AGENT = Agent(
    name="copilot",
    title="Copilot CLI",
    events=events,
    hooks=HookFiles(
        content=SharedFile(
            {
                "sessionStart": _entry(SHORT),
                "userPromptSubmitted": _entry(LONG),
                "preToolUse": _entry(SHORT),
                "postToolUse": _entry(SHORT),
                "agentStop": _entry(LONG),
                "sessionEnd": _entry(SHORT),
            },
            field="bash",
            extras={"version": 1},
        ),
        variable="COPILOT_HOME",
        user=".copilot",
        inside="hooks",
        project=".github/hooks",
        files=("snapstore.json",),
        failure_refuses=True,
    ),
    forking=Forking(
        way=RESUME,
        resume="copilot --resume {}",
        fresh="copilot",
        notice="Copilot CLI neither forks nor goes back: it still remembers what was undone. Tell it, or start a new "
        "conversation.",
    ),
    conversations=Conversations(),
)
