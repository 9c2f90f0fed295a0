"""What each agent can do with a conversation, and the notice if it cannot (G-21).

Only Claude Code resumes a session file that we write. The other agents fork a whole conversation or resume it, so the
user has to go back to the right turn inside the agent.
"""

from __future__ import annotations

# How a conversation can continue from an earlier turn.
AT_TURN, WHOLE, RESUME, NONE = "at-turn", "whole", "resume", "none"


class Capability:
    """The commands of one agent's program and how the agent forks conversations.

    `resume`, `fork` and `fresh` are commands; `{}` stands for the agent session's id.
    """

    __slots__ = ("fork", "forks", "fresh", "name", "notice", "resume", "transcripts")

    def __init__(
        self,
        name: str,
        forks: str,
        *,
        resume: str = "",
        fork: str = "",
        fresh: str = "",
        notice: str = "",
        transcripts: bool = True,
    ) -> None:
        self.name = name
        self.forks = forks
        self.resume = resume
        self.fork = fork
        self.fresh = fresh
        self.notice = notice  # what the user has to do, or why a fork is impossible
        self.transcripts = transcripts  # whether we can read the agent's conversations


_CAPABILITIES = {
    "claude": Capability("Claude Code", AT_TURN, resume="claude --resume {}", fresh="claude --session-id {}"),
    "codex": Capability(
        "Codex",
        WHOLE,
        resume="codex resume {}",
        fork="codex fork {}",
        fresh="codex",
        notice="Codex forks the whole conversation: press Esc twice in it to go back to the turn.",
    ),
    "opencode": Capability(
        "opencode",
        WHOLE,
        resume="opencode --session {}",
        fork="opencode --session {} --fork",
        fresh="opencode",
        notice="opencode forks the whole conversation: `/undo` in it takes messages back.",
    ),
    "gemini": Capability(
        "Gemini CLI",
        RESUME,
        resume="gemini --resume {}",
        fresh="gemini",
        notice="Gemini CLI does not fork: it resumes the conversation, and `/rewind` in it goes back to the turn.",
    ),
    "copilot": Capability(
        "Copilot CLI",
        RESUME,
        resume="copilot --resume {}",
        fresh="copilot",
        notice="Copilot CLI neither forks nor goes back: it still remembers what was undone. Tell it, or start afresh.",
    ),
    "cursor": Capability(
        "Cursor",
        NONE,
        notice="Cursor's chats cannot be undone from outside: go back in the chat, or start a new one.",
    ),
    "cline": Capability(
        "Cline",
        NONE,
        notice="Cline's tasks cannot be undone from outside: go back in the task, or start a new one.",
        transcripts=False,
    ),
}


def capability(agent: str) -> Capability:
    """Return the agent's capabilities; an unknown agent has none and a notice."""
    return _CAPABILITIES.get(agent) or Capability(
        agent, NONE, notice=f"How {agent}'s conversations go on is not known here.", transcripts=False
    )
