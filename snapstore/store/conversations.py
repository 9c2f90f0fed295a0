"""What a session knows about its agent's conversation: its id, its last turn, and whether it must be forked.

An agent's conversation only grows; nothing can be removed from it. So an undo leaves the conversation unchanged and
notes that a fork is pending (S4): the next prompt belongs in a new conversation that ends at the session's cursor. Only
a fork uses the note up. Undoing the very first prompt needs no fork, because the next conversation starts empty.

Nothing is stored here that can be read from the tree of turns, such as which turns are undone (those after the cursor)
or which turns an agent session holds (their records say).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from snapstore.base import locks
from snapstore.base.text import timestamp
from snapstore.store.handle import StoreHandle
from snapstore.store.state import check_name, encode


class ConversationState:
    """The state of a session's conversation: `state/conversations/<session>.json`."""

    __slots__ = (
        "agent",
        "at",
        "awaiting",
        "ended_prompt",
        "id",
        "left",
        "materialized",
        "pending_fork",
        "session",
        "stopped_prompt",
        "strays",
    )

    def __init__(
        self,
        *,
        session: str,
        agent: str,
        id: str,
        at: str = "",
        materialized: bool = False,
        pending_fork: bool = False,
        awaiting: dict[str, Any] | None = None,
        ended_prompt: str = "",
        stopped_prompt: str = "",
        left: dict[str, str] | None = None,
        strays: dict[str, list[str]] | None = None,
    ) -> None:
        self.session = session
        self.agent = agent
        self.id = id  # the agent session that was last used
        self.at = at  # the last turn that the agent session knows of
        self.materialized = materialized  # whether the agent session holds anything that is not undone
        self.pending_fork = pending_fork  # whether the agent session holds turns that are undone
        self.awaiting = awaiting  # a requested fork: the agent's next new session is the fork
        self.ended_prompt = ended_prompt  # the prompt of the last turn that ended
        self.stopped_prompt = stopped_prompt  # a prompt whose answer was reported before the prompt itself
        self.left = left or {}  # other agent sessions used here, each with the last turn that it knows of
        # Per agent session, the ends of undone turns that it still remembers although its conversation went on.
        self.strays = strays or {}

    def switch_to(self, known: AgentSession) -> bool:
        """Switch to the agent session in use (S4-09); return whether that is another one.

        Another agent session is either the pending fork, or an old conversation that was resumed.
        """
        if self.id == known.id and self.agent == known.agent:
            return False
        self.left[self.id] = self.at
        self.id, self.agent, self.at = known.id, known.agent, self.left.pop(known.id, "") or known.fork_commit or ""
        self.materialized, self.pending_fork, self.awaiting = bool(self.at), False, None
        self.ended_prompt = self.stopped_prompt = ""
        return True

    def answered(self, commit: bytes, prompt_id: str) -> None:
        """Note that a turn ended with this commit."""
        self.at, self.ended_prompt = commit.hex(), prompt_id


class AgentSession:
    """One agent session, by the agent's own id: `state/agents/<id>.json`."""

    __slots__ = (
        "agent",
        "alias",
        "created",
        "cwd",
        "fork_commit",
        "fork_turn",
        "forked_at",
        "id",
        "parent",
        "process",
        "session",
        "title",
        "transcript",
    )

    def __init__(
        self,
        *,
        id: str,
        agent: str,
        session: str,
        created: str,
        parent: str | None = None,
        fork_turn: int | None = None,
        fork_commit: str | None = None,
        forked_at: str | None = None,
        alias: str | None = None,
        title: str | None = None,
        transcript: str = "",
        cwd: str = "",
        process: list[Any] | None = None,
    ) -> None:
        self.id = id
        self.agent = agent
        self.session = session
        self.created = created
        self.parent = parent  # the agent session that this one was forked from
        self.fork_turn = fork_turn  # the turn after which it was forked
        self.fork_commit = fork_commit
        self.forked_at = forked_at
        self.alias = alias
        self.title = title
        self.transcript = transcript
        self.cwd = cwd
        self.process = process  # id and start time of the agent's process, as its hooks last saw it


class Conversations:
    """Reads a store's conversations, and encodes changed ones for the journal."""

    def __init__(self, store: StoreHandle) -> None:
        self._store = store
        self._documents = store.documents

    def state(self, session: str) -> ConversationState | None:
        return self._documents.read(ConversationState, f"conversations/{session}.json")

    def agent_session(self, id: str) -> AgentSession | None:
        return self._documents.read(AgentSession, f"agents/{check_name(id, 'agent session')}.json")

    def session_of(self, id: str) -> str | None:
        """Return the session that an agent session belongs to."""
        known = self.agent_session(id)
        return known.session if known is not None else None

    def ids(self) -> list[str]:
        """Return the ids of all agent sessions ever seen in this store."""
        return [name[:-5] for name in _names(f"{self._store.state}/agents")]

    def agent_sessions(self) -> Iterator[AgentSession]:
        """Yield all agent sessions ever seen in this store."""
        for id in self.ids():
            found = self.agent_session(id)
            if found is not None:
                yield found

    def is_running(self, known: AgentSession) -> bool:
        """Return whether the agent process that last used the session is still running.

        A running agent remembers turns that have been undone since (G-06).
        """
        if not known.process:
            return False
        pid, started = known.process
        return started is not None and locks.process_started(int(pid)) == started

    def is_gone(self, id: str) -> bool:
        """Return whether the agent that last used its session is known to have exited."""
        known = self.agent_session(id)
        if known is None or not known.process or known.process[1] is None:
            return False
        return not self.is_running(known)

    def waiting(self, agent: str) -> Iterator[ConversationState]:
        """Yield the agent's conversations with a requested fork whose id is not known yet."""
        for name in _names(f"{self._store.state}/conversations"):
            found = self.state(name[:-5])
            if found is not None and found.agent == agent and found.awaiting is not None:
                yield found

    def state_file(self, state: ConversationState) -> dict[str, bytes | None]:
        return {f"conversations/{state.session}.json": encode(state)}

    def agent_session_file(self, known: AgentSession) -> dict[str, bytes | None]:
        return {f"agents/{known.id}.json": encode(known)}

    def now(self) -> str:
        return timestamp(self._store.clock())


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return []
