"""Codex CLI's hooks, in Claude Code's format."""

from __future__ import annotations

from snapstore.agents.hooks.claude_form import claude_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.agents.hooks.events import Event
    from snapstore.agents.hooks.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    return claude_events(payload, "codex", "")
