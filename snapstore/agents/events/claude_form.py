"""Read hook payloads in Claude Code's format, which Codex and Copilot also send."""

from __future__ import annotations

from snapstore.agents.events.event import END, PROMPT, START, STOP, Event
from snapstore.agents.events.payload import AFTER, BEFORE, text, tool_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload


def claude_events(payload: Payload, agent: str, project: str) -> list[Event]:
    """Return the events of a payload in Claude Code's format.

    `project` is the folder in which the agent was started. The agent may have changed its current folder since, but
    still works on the same project.
    """
    name = text(payload, "hook_event_name")
    common: dict[str, Any] = {
        "agent": agent,
        "session_id": text(payload, "session_id"),
        "cwd": project or text(payload, "cwd"),
        "base": text(payload, "cwd"),
        "prompt_id": text(payload, "prompt_id", "turn_id"),
        "transcript": text(payload, "transcript_path"),
    }
    if name in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        kind = BEFORE if name == "PreToolUse" else AFTER
        return tool_events(kind, text(payload, "tool_name"), payload.get("tool_input"), common)
    if name == "UserPromptSubmit":
        prompt = text(payload, "prompt")
        # A background subagent has finished. The agent sends this prompt itself; the user did not ask for anything new.
        return [Event(PROMPT, prompt=prompt, goes_on=prompt.lstrip().startswith("<task-notification>"), **common)]
    if name in ("Stop", "StopFailure"):
        status = "done" if name == "Stop" else "interrupted"
        reply = text(payload, "last_assistant_message")
        return [Event(STOP, reply=reply, status=status, running=_is_running(payload), **common)]
    if name == "SessionStart":
        return [Event(START, source=text(payload, "source"), title=text(payload, "session_title"), **common)]
    if name == "SessionEnd":
        return [Event(END, source=text(payload, "reason"), **common)]
    return []


def _is_running(payload: Payload) -> bool:
    """Return whether subagents of the turn are still running after the answer.

    Programs in the background do not count: a server may run for days, and the user's own edits meanwhile would be
    attributed to the turn.
    """
    tasks = payload.get("background_tasks")
    running = [task for task in tasks if text(task, "status") == "running"] if isinstance(tasks, list) else []
    return any("agent" in text(task, "type").lower() for task in running)
