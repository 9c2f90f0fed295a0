"""Counts events and tools that no adapter knows: a newer agent may have renamed or added them (M-22).

One file per agent in the home folder has one line per sighting, so hooks that run at once need no lock. Nothing is
decided by these counts, and the files are not synced.
"""

from __future__ import annotations

import os

from snapstore.agents.events.payload import text
from snapstore.agents.events.tool_effects import is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from snapstore.agents.events.event import Event
    from snapstore.agents.events.payload import Payload

_LARGEST = 1 << 16  # bytes of an agent's file; what is seen afterwards is not counted
_LONGEST = 80  # characters of a name

# Events that agents are documented to have and that mean nothing for a turn, and those of agents whose hook file does
# not name them.
_QUIET = {
    *("Setup", "InstructionsLoaded", "UserPromptExpansion", "MessageDisplay", "PermissionRequest", "PermissionDenied"),
    *("PostToolUseFailure", "PostToolBatch", "Notification", "SubagentStart", "SubagentStop", "TaskCreated"),
    *("TaskCompleted", "StopFailure", "TeammateIdle", "ConfigChange", "CwdChanged", "DirectoryAdded", "FileChanged"),
    *("WorktreeCreate", "WorktreeRemove", "PreCompact", "PostCompact", "Elicitation", "ElicitationResult"),
    *("PreCompress", "BeforeModel", "AfterModel", "BeforeToolSelection"),
    *("preToolUse", "beforeShellExecution", "beforeMCPExecution", "afterMCPExecution", "beforeReadFile"),
    *("afterAgentResponse", "afterAgentThought", "preCompact", "subagentStart", "subagentStop", "postToolUseFailure"),
    *("start", "prompt", "before", "after", "stop", "end"),
    *("agent_start", "agent_resume", "agent_abort", "agent_end", "agent_error", "tool_call", "tool_result"),
    *("prompt_submit", "session_shutdown"),
}


def unknown_in(payload: Payload, events: Sequence[Event], expected: Container[str]) -> str:
    """Return what in a payload no adapter knows, such as `event Foo` or `tool foo`; "" if all is known.

    `expected` are the names of the events that we asked the agent for, and `events` is what its adapter made of the
    payload.
    """
    call = payload.get("tool_call") or payload.get("tool_result")
    tool = text(payload, "tool_name", "toolName", "tool") or text(call, "name")
    if tool:
        input = next((payload[name] for name in ("tool_input", "toolArgs", "args") if name in payload), None)
        given = call.get("input") if isinstance(call, dict) else input
        return "" if is_known(tool, given) else f"tool {tool}"
    if events or text(payload, "parentAgentId"):
        return ""
    name = text(payload, "hook_event_name", "hookName", "event")
    return "" if name and (name in expected or name in _QUIET) else f"event {name or 'without a name'}"


def note(home: str, agent: str, what: str) -> bool:
    """Count a sighting; return whether it is the first."""
    what = " ".join("".join(each if each.isprintable() else " " for each in what).split())[:_LONGEST]
    first = what not in counts(home, agent)
    try:
        os.makedirs(f"{home}/not-known", mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(f"{home}/not-known/{agent}", flags, 0o600)
        try:
            if os.fstat(fd).st_size < _LARGEST:
                os.write(fd, f"{what}\n".encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except OSError:
        pass
    return first


def counts(home: str, agent: str) -> dict[str, int]:
    """Return what was seen of an agent, and how often."""
    try:
        with open(f"{home}/not-known/{agent}", "rb") as file:
            lines = file.read(_LARGEST * 2).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {line: lines.count(line) for line in dict.fromkeys(lines)}


def sentences(home: str, agents: Sequence[str]) -> list[str]:
    """Return one line per event or tool: `codex: event Foo, seen 3 times`."""
    return [
        f"{agent}: {what}, seen {'once' if number == 1 else f'{number} times'}"
        for agent in agents
        for what, number in counts(home, agent).items()
    ]
