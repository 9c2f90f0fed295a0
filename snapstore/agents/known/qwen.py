"""Qwen Code's hooks, in Claude Code's format."""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.agents.events.claude_form import claude_events
from snapstore.agents.events.event import Event
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
    from snapstore.agents.events.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    return claude_events(payload, "qwen", environ.get("QWEN_PROJECT_DIR", ""))


AGENT = Agent(
    name="qwen",
    title="Qwen Code",
    events=events,
    hooks=HookFiles(
        content=SharedFile(
            {
                "SessionStart": group(timeout=SHORT),
                "UserPromptSubmit": group(timeout=LONG),
                "PreToolUse": group(timeout=SHORT),
                "PostToolUse": group(timeout=SHORT),
                "Stop": group(timeout=LONG),
                "StopFailure": group(timeout=SHORT),
                "SessionEnd": group(timeout=SHORT),
            }
        ),
        user=".qwen",
        project=".qwen",
        files=("settings.json",),
        after="Restart Qwen Code. It may warn once about new hooks of a project.",
    ),
    forking=Forking(
        way=RESUME,
        resume="qwen --resume {}",
        fresh="qwen",
        notice="Qwen Code resumes the conversation: it still remembers what was undone. Tell it, or start a new "
        "conversation.",
    ),
    conversations=Conversations(),
)
