"""Which session an agent's own session belongs to: one of its own, or one whose conversation it goes on with."""

from __future__ import annotations

from snapstore.agents.hooks.events import BEFORE, SHELL
from snapstore.errors import SnapstoreError
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.timeline.history.graph import Graph, last_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.hooks.events import Event
    from snapstore.api import Store
    from snapstore.store.conversations import ConversationState

_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "env", "snapstore")


def join(store: Store, event: Event, *, invent: bool) -> AgentSession | None:
    """What is known of the agent's session, brought up to date. A new id is the fork that was waited for, or that says
    where it comes from, else (`invent`) a session of its own. Under the lock; nothing is written here."""
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
    """Whether another agent is in the middle of a turn there: a fork and the session it came from may both live on,
    and each needs a line of its own. One that is gone, or went on to this session itself, only left its turn open;
    but a session that was left uses no tools."""
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
    """The fork that was asked for last, unless its transcript names another session that it comes from, or none."""
    waiting = list(conversations.waiting(event.agent))
    parent = (event.parent or _named_parent(event)) if waiting else None
    if parent is not None:
        waiting = [state for state in waiting if (parent or None) == (_awaiting(state).get("commit") and state.id)]
    if not waiting:
        return None
    state = max(waiting, key=lambda state: str(_awaiting(state).get("at")))
    awaiting = _awaiting(state)
    known = _new(conversations, event, state.session, state.id)
    known.fork_turn, known.fork_commit = awaiting.get("turn"), awaiting.get("commit")
    known.forked_at = awaiting.get("at")
    known.title = awaiting.get("title")
    known.alias = awaiting.get("alias")
    return known


def _awaiting(state: ConversationState) -> dict[str, Any]:
    return state.awaiting or {}


def _descended(store: Store, conversations: Conversations, event: Event) -> AgentSession | None:
    """A session that the agent itself forked. Where an undo waits for just that, it goes on here; otherwise both
    conversations may live on, and it gets a session of its own."""
    id = event.parent or _named_parent(event) or _parent_by_process(conversations, event)
    parent = conversations.agent_session(id) if id else None
    if parent is None:
        return None
    state = conversations.state(parent.session)
    graph = Graph(store, parent.session)
    last = last_turn(graph, graph.cursor)
    continues = state is not None and state.pending_fork and state.id == parent.id
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
    """The session that the new one's transcript says it comes from: empty for none, None where that is not known."""
    if not event.transcript:
        return None
    from snapstore.agents.hooks.turn_record import transcript_of
    from snapstore.transcripts.readers.read import AGENTS, forked_from

    path = transcript_of(event.agent, {"session": event.session_id, "transcript": event.transcript})
    if path is None or event.agent not in AGENTS or event.agent == "opencode":
        return None
    try:
        return forked_from(path, event.agent) or ""
    except SnapstoreError:
        return None  # not written yet


def _parent_by_process(conversations: Conversations, event: Event) -> str:
    """Claude Code's fork names the session it comes from in no field and no line: it is the one that the same process
    spoke in so far, else the one that it was started to resume."""
    process = agent_process() if event.source == "fork" else None
    if process is None:
        return ""
    sessions = list(conversations.agent_sessions())
    same = [known for known in sessions if known.process == process]
    if same:
        return max(same, key=lambda known: known.created).id
    asked = _resumed(process[0])
    return next((known.id for known in sessions if known.id == asked), "")  # it may be a title, or nothing at all


def _resumed(pid: object) -> str:
    """What a process was told to resume."""
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
    """The agent that runs this hook: the parent, past shells in between. None where the system does not tell."""
    from snapstore.base import platform

    pid = platform.parent_pid()
    for _ in range(3):
        found = _process(pid)
        if found is None:
            return None
        name, parent = found
        if name not in _SHELLS:
            return [pid, platform.process_started(pid)]
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
