"""What a session knows of its agent's conversation: which one it is, where it stands, and how it is to go on.

The agent's conversation goes one way only: it cannot be told to forget. So an undo leaves it as it is and notes that it
must be *forked* (S4): the next prompt belongs into a new conversation that ends where the session stands. The note is
of one use. Undoing the very first prompt needs no fork: the next conversation starts afresh.

Nothing is noted that the tree of turns tells by itself. What is undone are the turns ahead of the cursor; which turns
an agent's session holds is in their records.
"""

from __future__ import annotations

import os

from snapstore.base import platform
from snapstore.store.state import check_name, encode, timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from snapstore.store.handle import StoreHandle


class ConversationState:
    """Where a session's conversation stands. `state/conversations/<session>.json`."""

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
    ) -> None:
        self.session = session
        self.agent = agent
        self.id = id  # the agent's session that was spoken with last
        self.at = at  # the last turn that it knows of
        self.materialized = materialized  # whether it holds anything that is not undone
        self.pending_fork = pending_fork  # whether it holds turns that are undone
        self.awaiting = awaiting  # a fork was asked for; the agent's next new session is it
        self.ended_prompt = ended_prompt  # the prompt of the last turn that is over
        self.stopped_prompt = stopped_prompt  # one that was said to be answered before it was told of
        self.left = left or {}  # other sessions of the agent that spoke here, and the last turn that each knows of

    def take_up(self, known: AgentSession) -> bool:
        """An agent's session speaks (S4-09). Another id than before is the fork that was pending, or an old line that
        was resumed. Gives whether anything is new."""
        if self.id == known.id and self.agent == known.agent:
            return False
        self.left[self.id] = self.at
        self.id, self.agent, self.at = known.id, known.agent, self.left.pop(known.id, "") or known.fork_commit or ""
        self.materialized, self.pending_fork, self.awaiting = bool(self.at), False, None
        self.ended_prompt = self.stopped_prompt = ""
        return True

    def prompted(self) -> None:
        """A prompt is on its way: a pending fork is of one use (S4-08), and whatever was undone is left behind."""
        self.materialized, self.pending_fork, self.awaiting = True, False, None

    def answered(self, commit: bytes, prompt_id: str) -> None:
        self.at, self.ended_prompt = commit.hex(), prompt_id

    def stand(self, last: bytes | None) -> None:
        """Note that the session goes to where the commit `last` is its last turn (S4-05, S4-06)."""
        self.materialized = last is not None
        self.pending_fork = last is not None and last.hex() != self.at
        self.awaiting = None


class AgentSession:
    """One session of an agent, by the agent's own id. `state/agents/<id>.json`."""

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
        self.parent = parent  # the agent's session that it was forked from
        self.fork_turn = fork_turn  # after which turn
        self.fork_commit = fork_commit
        self.forked_at = forked_at
        self.alias = alias
        self.title = title
        self.transcript = transcript
        self.cwd = cwd
        self.process = process  # number and start mark of the agent's process, as its hooks last saw it


class Conversations:
    """The conversations of a store. Changes come as state files, to go through the journal with what they belong to."""

    def __init__(self, store: StoreHandle) -> None:
        self._store = store
        self._documents = store.documents

    def state(self, session: str) -> ConversationState | None:
        return self._documents.read(ConversationState, f"conversations/{session}.json")

    def agent_session(self, id: str) -> AgentSession | None:
        return self._documents.read(AgentSession, f"agents/{check_name(id, 'agent session')}.json")

    def session_of(self, id: str) -> str | None:
        """The session that a session of an agent belongs to."""
        known = self.agent_session(id)
        return known.session if known is not None else None

    def agent_sessions(self) -> Iterator[AgentSession]:
        """All that were ever seen here."""
        for name in _names(f"{self._store.state}/agents"):
            found = self.agent_session(name[:-5])
            if found is not None:
                yield found

    def is_running(self, known: AgentSession) -> bool:
        """Whether the agent that last spoke in it is still there: it remembers what is undone by now (G-06)."""
        if not known.process:
            return False
        pid, started = known.process
        return started is not None and platform.process_started(int(pid)) == started

    def is_gone(self, id: str) -> bool:
        """Whether the agent that last spoke in one of its sessions is known to be there no more."""
        known = self.agent_session(id)
        if known is None or not known.process or known.process[1] is None:
            return False
        return not self.is_running(known)

    def waiting(self, agent: str) -> Iterator[ConversationState]:
        """Conversations for which a fork was asked for whose id only the agent will know."""
        for name in _names(f"{self._store.state}/conversations"):
            found = self.state(name[:-5])
            if found is not None and found.agent == agent and found.awaiting is not None:
                yield found

    def written(self, state: ConversationState) -> dict[str, bytes | None]:
        return {f"conversations/{state.session}.json": encode(state)}

    def known_as(self, known: AgentSession) -> dict[str, bytes | None]:
        return {f"agents/{known.id}.json": encode(known)}

    def now(self) -> str:
        return timestamp(self._store.clock())


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return []
