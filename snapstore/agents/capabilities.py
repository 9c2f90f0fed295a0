"""What an agent's program can be asked to do with a conversation, and what to say where it cannot (G-21).

Only Claude Code takes up a session file that we write. Others fork a conversation as a whole, or resume it: where to
go back to has then to be said inside the agent.
"""

from __future__ import annotations

# How a conversation can go on from an earlier turn.
AT_TURN, WHOLE, RESUME, NONE = "at-turn", "whole", "resume", "none"


class Capability:
    """`resume`, `fork` and `fresh` are commands; `{}` stands for the id of the session."""

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
        self.notice = notice  # what the person has to do, or why it cannot be done
        self.transcripts = transcripts  # whether its conversations can be read


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
        notice="Cursor's chats cannot be taken back from outside: go back in the chat, or start a new one.",
    ),
    "cline": Capability(
        "Cline",
        NONE,
        notice="Cline's tasks cannot be taken back from outside: go back in the task, or start a new one.",
        transcripts=False,
    ),
}


def capability(agent: str) -> Capability:
    """An agent that is not known can do nothing, and the reason says so."""
    return _CAPABILITIES.get(agent) or Capability(
        agent, NONE, notice=f"How {agent}'s conversations go on is not known here.", transcripts=False
    )
