"""opencode's hooks: the plugin `opencode_plugin.js` sends one document per event."""

from __future__ import annotations

from snapstore.agents.hooks.events import END, PROMPT, START, STOP, Event
from snapstore.agents.hooks.payload import AFTER, BEFORE, text, tool_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from snapstore.agents.hooks.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    name = text(payload, "event")
    parent = text(payload, "parent_id")
    common: dict[str, Any] = {
        "agent": "opencode",
        # The work of a subagent's session is part of the turn that started the subagent.
        "session_id": parent or text(payload, "session_id"),
        "cwd": text(payload, "directory"),
        "prompt_id": "" if parent else text(payload, "prompt_id"),
    }
    if name in ("before", "after"):
        kind = BEFORE if name == "before" else AFTER
        return tool_events(kind, text(payload, "tool"), payload.get("args"), common)
    if parent:
        return []
    if name == "prompt":
        return [Event(PROMPT, prompt=text(payload, "prompt"), **common)]
    if name == "stop":
        return [Event(STOP, status="done", **{**common, "prompt_id": ""})]
    if name == "start":
        return [Event(START, source="startup", **common)]
    if name == "end":
        return [Event(END, **common)]
    return []
