"""Cline's hooks: one program per event, which answers with a JSON object."""

from __future__ import annotations

from snapstore.agents.hooks.events import PROMPT, START, STOP, Event
from snapstore.agents.hooks.payload import AFTER, BEFORE, first, text, tool_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from snapstore.agents.hooks.payload import Payload

_ENDS = {"TaskComplete": "done", "TaskError": "interrupted", "TaskCancel": "interrupted"}


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    name = text(payload, "hookName")
    common: dict[str, Any] = {
        "agent": "cline",
        "session_id": text(payload, "taskId"),
        "cwd": first(payload, "workspaceRoots") or text(payload, "cwd"),
    }
    if name in ("PreToolUse", "PostToolUse"):
        kind, field = (BEFORE, "tool_call") if name == "PreToolUse" else (AFTER, "tool_result")
        call = payload.get(field)
        call = call if isinstance(call, dict) else {}
        return tool_events(kind, text(call, "name"), call.get("input"), common)
    if name == "UserPromptSubmit":
        return [Event(PROMPT, prompt=_prompt(payload), **common)]
    if name in ("TaskStart", "TaskResume"):
        source = "startup" if name == "TaskStart" else "resume"
        prompt = _prompt(payload)
        opened = Event(START, source=source, **common)
        return [opened, Event(PROMPT, prompt=prompt, **common)] if prompt else [opened]
    if name in _ENDS:
        return [Event(STOP, status=_ENDS[name], **common)]
    return []


def _prompt(payload: Payload) -> str:
    for name in ("userPromptSubmit", "taskStart", "prompt"):
        found = payload.get(name)
        said = found if isinstance(found, str) else text(found, "prompt", "task", "text")
        if said:
            return said
    return text(payload, "task")
