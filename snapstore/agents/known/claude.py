"""Claude Code's hooks. Codex uses the same format with a few fields of its own."""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.agents.events.claude_form import claude_events
from snapstore.agents.events.event import Event
from snapstore.agents.events.payload import text
from snapstore.agents.known.agent import (
    AT_TURN,
    LONG,
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
    from typing import Any

    from snapstore.agents.events.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    if is_copilots(payload, environ):
        from snapstore.agents.known import copilot

        return copilot.events(payload, environ)
    return claude_events(payload, "claude", environ.get("CLAUDE_PROJECT_DIR", ""))


def is_copilots(payload: Payload, environ: Mapping[str, str]) -> bool:
    """Return whether the payload comes from Copilot.

    Copilot also runs the hooks in a repository's Claude settings, and sets Claude Code's variables for them. It is
    known by the location of its transcripts, and by a variable that it sets for hooks only: a Claude Code that was
    started from Copilot's shell does not have it.
    """
    transcript = text(payload, "transcript_path", "transcriptPath")
    if "/.copilot/" in transcript or "/session-state/" in transcript:
        return True
    if "/.claude/" in transcript:
        return False
    return "COPILOT_PROJECT_DIR" in environ or (
        not any(name.startswith("CLAUDE") for name in environ) and any(name.startswith("COPILOT_") for name in environ)
    )


def _stored(cwd: str) -> list[dict[str, Any]]:
    from snapstore.transcripts.locate import claude_sessions

    return claude_sessions(cwd)


_WRITING = "Edit|Write|MultiEdit|NotebookEdit"

AGENT = Agent(
    name="claude",
    title="Claude Code",
    events=events,
    hooks=HookFiles(
        content=SharedFile(
            {
                "SessionStart": group(),
                "UserPromptSubmit": group(timeout=LONG),
                "PreToolUse": group(f"^({_WRITING}|Bash|PowerShell|mcp__.*)$"),
                "PostToolUse": group(f"^({_WRITING})$"),
                "Stop": group(timeout=LONG),
                "StopFailure": group(),
                "SessionEnd": group(timeout=SHORT),
            }
        ),
        variable="CLAUDE_CONFIG_DIR",
        user=".claude",
        project=".claude",
        files=("settings.json",),
        after="Restart Claude Code, and accept the folder's trust question if it asks.",
        tells_at="UserPromptSubmit",
        plugin="claude --plugin-dir {}",
    ),
    forking=Forking(way=AT_TURN, resume="claude --resume {}", fresh="claude --session-id {}"),
    conversations=Conversations(stored=_stored),
)
