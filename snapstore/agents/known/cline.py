"""Cline's hooks: one program per event, which answers with a JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snapstore.agents.events.event import PROMPT, START, STOP, Event
from snapstore.agents.events.payload import AFTER, BEFORE, first, text, tool_events
from snapstore.agents.known.agent import NONE, Agent, Forking, HookFiles, Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload

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


_HOOKS = "TaskStart TaskResume UserPromptSubmit PreToolUse PostToolUse TaskComplete TaskError TaskCancel"


def _script(command: str) -> str:
    return f"#!/bin/sh\n{command}\nexit 0\n"


def _command_in(text: str) -> str:
    return text.partition("\n")[2].partition("\n")[0]


def _command(words: Sequence[str], shown: str) -> str:
    from shlex import quote  # only `connect` needs this

    return f"command -v {quote(words[0])} >/dev/null 2>&1 && {shown} || echo '{{}}'"


AGENT = Agent(
    name="cline",
    title="Cline",
    events=events,
    answer="{}",
    hooks=HookFiles(
        content=Script(make=_script, find=_command_in, comment="#", executable=True),
        user="Documents/Cline/Hooks",
        project=".cline/hooks",
        files=_HOOKS.split(),
        after="Restart Cline, and make sure that hooks are enabled in its settings.",
        command=_command,
    ),
    forking=Forking(
        way=NONE, notice="Cline's tasks cannot be undone from outside: go back in the task, or start a new one."
    ),
)
