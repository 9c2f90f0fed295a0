"""Cursor's hooks.

The hooks before a tool require an answer about permission, so only the hooks after a tool are used. The state of a file
before the turn is known from the snapshot before the turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.agents.events.event import END, PROMPT, SHELL, START, STOP, Event
from snapstore.agents.events.payload import AFTER, first, text, tool_events
from snapstore.agents.known.agent import NONE, Agent, Conversations, Forking, HookFiles, SharedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    name = text(payload, "hook_event_name")
    common: dict[str, Any] = {
        "agent": "cursor",
        "session_id": text(payload, "conversation_id", "session_id"),
        "cwd": first(payload, "workspace_roots") or text(payload, "cwd"),
        "prompt_id": text(payload, "generation_id"),
        "transcript": text(payload, "transcript_path"),
    }
    if name == "beforeSubmitPrompt":
        return [Event(PROMPT, prompt=text(payload, "prompt"), **common)]
    if name == "afterFileEdit":
        path = text(payload, "file_path")
        return [Event(AFTER, paths=[path], **common)] if path else []
    if name == "afterShellExecution":
        return [Event(SHELL, **common)]
    if name == "postToolUse":
        return tool_events(AFTER, text(payload, "tool_name"), payload.get("tool_input"), common)
    if name == "stop":
        status = "done" if text(payload, "status") in ("", "completed") else "interrupted"
        return [Event(STOP, status=status, **common)]
    if name == "sessionStart":
        return [Event(START, source="startup", **{**common, "prompt_id": ""})]
    if name == "sessionEnd":
        return [Event(END, source=text(payload, "reason"), **common)]
    return []


_HOOKS = "sessionStart beforeSubmitPrompt afterFileEdit afterShellExecution postToolUse stop sessionEnd"


def _entry(command: str) -> dict[str, Any]:
    return {"command": command}


AGENT = Agent(
    name="cursor",
    title="Cursor",
    events=events,
    tells_afterwards=True,
    hooks=HookFiles(
        content=SharedFile(dict.fromkeys(_HOOKS.split(), _entry), extras={"version": 1}),
        user=".cursor",
        project=".cursor",
        files=("hooks.json",),
    ),
    forking=Forking(
        way=NONE, notice="Cursor's chats cannot be undone from outside: go back in the chat, or start a new one."
    ),
    conversations=Conversations(parts=("/agent-transcripts/",)),
)
