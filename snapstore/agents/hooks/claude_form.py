"""Hook payloads in the form that Claude Code has, and that Codex and Copilot send too."""

from __future__ import annotations

from snapstore.agents.hooks.events import END, PROMPT, START, STOP, Event
from snapstore.agents.hooks.payload import AFTER, BEFORE, text, tool_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.hooks.payload import Payload


def spoken(payload: Payload, agent: str, project: str) -> list[Event]:
    """The events of a payload in Claude's form. `project` is where the agent was started: it may have gone elsewhere
    since, and the files it was started for are still the same."""
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
        said = text(payload, "prompt")
        # A helper that worked on in the background has come to its end: nobody asked for anything new.
        return [Event(PROMPT, prompt=said, goes_on=said.lstrip().startswith("<task-notification>"), **common)]
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
    """Whether helpers of the turn are still at work: they go on after the answer. Programs in the background do not
    count: a server may run for days, and what the user edits meanwhile would be taken for the turn's."""
    tasks = payload.get("background_tasks")
    running = [task for task in tasks if text(task, "status") == "running"] if isinstance(tasks, list) else []
    return any("agent" in text(task, "type").lower() for task in running)
