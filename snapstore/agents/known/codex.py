"""Codex CLI's hooks, in Claude Code's format."""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.agents.events.claude_form import claude_events
from snapstore.agents.events.event import Event
from snapstore.agents.known.agent import WHOLE, Agent, Conversations, Forking, HookFiles, SharedFile, group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.agents.events.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    return claude_events(payload, "codex", "")


AGENT = Agent(
    name="codex",
    title="Codex",
    events=events,
    hooks=HookFiles(
        content=SharedFile(
            {
                **{event: group() for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")},
                "Stop": group(),
                "SessionEnd": group(timeout=3),  # the maximum that Codex allows
            }
        ),
        variable="CODEX_HOME",
        user=".codex",
        project=".codex",
        files=("hooks.json",),
        tells_at="UserPromptSubmit",
        after="Restart Codex. It asks whether to trust new hooks, and does not run them until you agree.",
    ),
    forking=Forking(
        way=WHOLE,
        resume="codex resume {}",
        fork="codex fork {}",
        fresh="codex",
        notice="Codex forks the whole conversation: press Esc twice in it to go back to the turn.",
    ),
    conversations=Conversations(),
)
