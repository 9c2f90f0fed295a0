"""Find the session an agent session belongs to: its own, or one it continues."""

from __future__ import annotations

from snapstore.agents.events.event import BEFORE, SHELL
from snapstore.agents.known.registry import find
from snapstore.errors import SnapstoreError
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.timeline.history.graph import Graph, last_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.event import Event
    from snapstore.api import Store
    from snapstore.store.conversations import ConversationState

_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "env", "snapstore")


def join(store: Store, event: Event, *, invent: bool) -> AgentSession | None:
    """Return the agent session of an event, updated from the event.

    An unknown id is the fork that was requested, or a fork that names its parent, or (`invent`) a new session of its
    own. The caller holds the lock; nothing is written here.
    """
    conversations = Conversations(store)
    known = conversations.agent_session(event.session_id)
    if known is None:
        known = _awaited(conversations, event) or _descended(store, conversations, event)
        if known is None and invent:
            known = _new(conversations, event, _free_name(store, conversations, event))
        if known is None:
            return None
    known.transcript = event.transcript or known.transcript
    known.cwd = event.cwd
    known.title = event.title or known.title
    known.process = agent_process() or known.process
    if _is_taken(store, conversations, known, event):
        known.session = _free_name(store, conversations, event)
    return known


def _is_taken(store: Store, conversations: Conversations, known: AgentSession, event: Event) -> bool:
    """Return whether another running agent has a turn open in this session.

    A fork and its parent may both continue, and each then needs a line of its own. If the other agent is gone, or the
    same process switched to this agent session, the open turn was only left behind. A tool call is the exception: an
    agent session that was left uses no tools, so a tool call means that both are running.
    """
    turn = store.open_turn(known.session)
    owner = turn.origin.get("session", "") if turn is not None else ""
    if not owner or owner == known.id:
        return False
    other = conversations.agent_session(owner)
    if other is None or not conversations.is_running(other):
        return False
    return other.process != known.process or event.kind in (BEFORE, SHELL)


def _free_name(store: Store, conversations: Conversations, event: Event) -> str:
    taken = {known.session for known in conversations.agent_sessions()}
    return event.short_name if event.short_name not in taken else event.full_name


def _new(conversations: Conversations, event: Event, session: str, parent: str | None = None) -> AgentSession:
    return AgentSession(
        id=event.session_id, agent=event.agent, session=session, created=conversations.now(), parent=parent
    )


def _awaited(conversations: Conversations, event: Event) -> AgentSession | None:
    """Return the most recently requested fork, if this event can be that fork.

    The event is not that fork if its transcript names another parent, or no parent.
    """
    waiting = list(conversations.waiting(event.agent))
    parent = (event.parent or _named_parent(event)) if waiting else None
    if parent is not None:
        waiting = [state for state in waiting if (parent or None) == (_awaiting(state).get("commit") and state.id)]
    if not waiting or _is_no_fork(event):
        return None
    state = max(waiting, key=lambda state: str(_awaiting(state).get("at")))
    awaiting = _awaiting(state)
    known = _new(conversations, event, state.session, state.id)
    known.fork_turn, known.fork_commit = awaiting.get("turn"), awaiting.get("commit")
    known.forked_at = awaiting.get("at")
    known.title = awaiting.get("title")
    known.alias = awaiting.get("alias")
    return known


def _is_no_fork(event: Event) -> bool:
    """Return whether the agent's own file says that the conversation is no fork."""
    known = find(event.agent)
    conversations = known.conversations if known is not None else None
    if conversations is None or conversations.is_fork is None:
        return False
    return conversations.is_fork(event.session_id, event.cwd) is False


def _awaiting(state: ConversationState) -> dict[str, Any]:
    return state.awaiting or {}


def _descended(store: Store, conversations: Conversations, event: Event) -> AgentSession | None:
    """Return an agent session that the agent itself forked, or None.

    If an undo is waiting for a fork of the parent, the new agent session continues in the parent's session. Otherwise
    both conversations may continue, and the fork gets a session of its own.
    """
    id = event.parent or _named_parent(event) or _parent_by_process(conversations, event)
    parent = conversations.agent_session(id) if id else None
    if parent is None:
        return None
    state = conversations.state(parent.session)
    graph = Graph(store, parent.session)
    last = last_turn(graph, graph.cursor)
    waits = state is not None and state.pending_fork and last is not None and last.oid.hex() != state.at
    continues = waits and state is not None and state.id == parent.id
    known = _new(
        conversations,
        event,
        parent.session if continues else _free_name(store, conversations, event),
        parent.id,
    )
    known.forked_at = known.created
    if last is not None:
        known.fork_turn = last.turn
        known.fork_commit = last.oid.hex() if continues else None
    return known


def _named_parent(event: Event) -> str | None:
    """Return the parent that the new transcript names: "" for none, None if unknown."""
    if not event.transcript:
        return None
    from snapstore.agents.hooks.turn_record import transcript_of
    from snapstore.transcripts.readers.read import AGENTS, forked_from, names_parents

    path = transcript_of(event.agent, {"session": event.session_id, "transcript": event.transcript})
    if path is None or event.agent not in AGENTS or not names_parents(event.agent):
        return None
    try:
        return forked_from(path, event.agent) or ""
    except SnapstoreError:
        return None  # not written yet


def _parent_by_process(conversations: Conversations, event: Event) -> str:
    """Find the parent of a Claude Code fork through the process that runs it.

    Claude Code names a fork's parent in no field and no transcript line. The parent is the agent session this process
    used so far, or the one that the process was started to resume.
    """
    process = agent_process() if event.source == "fork" else None
    if process is None:
        return ""
    sessions = list(conversations.agent_sessions())
    same = [known for known in sessions if known.process == process]
    if same:
        return max(same, key=lambda known: known.created).id
    asked = _resumed(process[0])
    return next((known.id for known in sessions if known.id == asked), "")  # the value may also be a title, or nothing


def _resumed(pid: object) -> str:
    """Return the argument of `--resume` on a process's command line, or ""."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            words = file.read().split("\0")
    except OSError:
        return ""
    for at, word in enumerate(words[:-1]):
        option, _, value = word.partition("=")
        if option in ("--resume", "-r"):
            return value or words[at + 1]
    return ""


def agent_process() -> list[object] | None:
    """Return the agent process that runs this hook: the parent, skipping shells.

    Return None if the system does not provide the information.
    """
    from snapstore.base import locks, platform

    pid = platform.parent_pid()
    for _ in range(3):
        found = _process(pid)
        if found is None:
            return None
        name, parent = found
        if name not in _SHELLS:
            return [pid, locks.process_started(pid)]
        pid = parent
    return None


def _process(pid: int) -> tuple[str, int] | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return (name, int(fields[1])) if len(fields) > 1 and pid > 1 else None
