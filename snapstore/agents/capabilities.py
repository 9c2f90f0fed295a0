"""Describe what each agent can do with a conversation (G-21).

Only Claude Code resumes a session file that we write. The other agents fork a whole conversation or resume it, so the
user has to go back to the right turn inside the agent.
"""

from __future__ import annotations

from dataclasses import dataclass

from snapstore.agents.known.agent import AT_TURN, NONE, RESUME, WHOLE
from snapstore.agents.known.registry import find

__all__ = ["AT_TURN", "NONE", "RESUME", "WHOLE", "Capability", "capability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """The commands of one agent's program and how the agent forks conversations.

    `resume`, `fork` and `fresh` are commands; `{}` stands for the agent session's id.
    """

    name: str
    forks: str
    resume: str = ""
    fork: str = ""
    fresh: str = ""
    notice: str = ""  # what the user has to do, or why a fork is impossible
    transcripts: bool = False  # whether we can read the agent's conversations


def capability(agent: str) -> Capability:
    """Return the agent's capabilities; an unknown agent has none and a notice."""
    known = find(agent)
    if known is None:
        return Capability(
            name=agent, forks=NONE, notice=f"snapstore does not know how {agent} continues conversations."
        )
    able = known.forking
    return Capability(
        name=known.title,
        forks=able.way,
        resume=able.resume,
        fork=able.fork,
        fresh=able.fresh,
        notice=able.notice,
        transcripts=known.conversations is not None,
    )
