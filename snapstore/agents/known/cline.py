"""Cline's hooks: one program per event, which answers with a JSON object.

The event names in payloads are those of Cline CLI 3 (`agent_start`). Earlier versions used the programs' names
(`TaskStart`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snapstore.agents.events.event import END, PROMPT, START, STOP, Event
from snapstore.agents.events.payload import AFTER, BEFORE, first, text, tool_events
from snapstore.agents.known.agent import NONE, Agent, Conversations, Forking, HookFiles, Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload

_MARK = "<user_input"  # Cline sends the model what the user typed inside this tag


def typed(said: str) -> str:
    """Return what the user typed, without the tag around it."""
    if not said.startswith(_MARK):
        return said
    return said.partition(">")[2].rpartition("</user_input>")[0] or said


_TOOLS = {
    **dict.fromkeys(("tool_call", "PreToolUse"), (BEFORE, "tool_call")),
    **dict.fromkeys(("tool_result", "PostToolUse"), (AFTER, "tool_result")),
}
_STARTS = {"agent_start": "startup", "TaskStart": "startup", "agent_resume": "resume", "TaskResume": "resume"}
_ENDS = {
    **dict.fromkeys(("agent_end", "TaskComplete"), "done"),
    **dict.fromkeys(("agent_error", "agent_abort", "TaskError", "TaskCancel"), "interrupted"),
}


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    name = text(payload, "hookName")
    common: dict[str, Any] = {
        "agent": "cline",
        # `cline --id` takes the root session's id; each run of the agent has a `taskId` of its own.
        "session_id": text(payload.get("sessionContext"), "rootSessionId") or text(payload, "taskId"),
        "cwd": first(payload, "workspaceRoots") or text(payload, "cwd"),
    }
    if name in _TOOLS:
        kind, field = _TOOLS[name]
        call = payload.get(field)
        call = call if isinstance(call, dict) else {}
        return tool_events(kind, text(call, "name"), call.get("input"), common)
    if text(payload, "parent_agent_id"):
        return []  # a subagent: what its tools do is part of its caller's turn
    if name in ("prompt_submit", "UserPromptSubmit"):
        return [Event(PROMPT, prompt=_prompt(payload), **common)]
    if name in _STARTS:
        opened = Event(START, source=_STARTS[name], **common)
        prompt = _prompt(payload)
        # `agent_start` has no prompt, but starts a turn. The prompt comes with `prompt_submit`, or is read from the
        # transcript when the turn ends.
        begins = prompt or name.startswith("agent_")
        return [opened, Event(PROMPT, prompt=prompt, **common)] if begins else [opened]
    if name in _ENDS:
        return [Event(STOP, status=_ENDS[name], reply=text(payload.get("turn"), "outputText"), **common)]
    if name == "session_shutdown":
        return [Event(END, source=text(payload, "reason"), **common)]
    return []


def _prompt(payload: Payload) -> str:
    for name in ("userPromptSubmit", "taskStart", "prompt"):
        found = payload.get(name)
        said = found if isinstance(found, str) else text(found, "prompt", "task", "text")
        if said:
            return typed(said)
    return typed(text(payload, "task"))


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
    conversations=Conversations(),
)
