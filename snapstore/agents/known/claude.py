"""Claude Code's hooks. Codex uses the same format with a few fields of its own."""

from __future__ import annotations

from snapstore.agents.hooks.claude_form import claude_events
from snapstore.agents.hooks.events import Event
from snapstore.agents.hooks.payload import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.agents.hooks.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    if is_copilots(payload, environ):
        from snapstore.agents.known import copilot

        return copilot.events(payload, environ)
    return claude_events(payload, "claude", environ.get("CLAUDE_PROJECT_DIR", ""))


def is_copilots(payload: Payload, environ: Mapping[str, str]) -> bool:
    """Return whether the payload comes from Copilot.

    Copilot also runs the hooks in a repository's Claude settings. The location of its transcripts identifies Copilot.
    """
    transcript = text(payload, "transcript_path", "transcriptPath")
    if "/.copilot/" in transcript or "/session-state/" in transcript:
        return True
    return not any(name.startswith("CLAUDE") for name in environ) and any(
        name.startswith("COPILOT_") for name in environ
    )
