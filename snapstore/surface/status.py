"""The state of a store and of one session in a single record."""

from __future__ import annotations

from dataclasses import dataclass

from snapstore.agents.events.not_known import sentences
from snapstore.agents.known.registry import AGENTS
from snapstore.api import Session
from snapstore.errors import Corrupt
from snapstore.git.ref_names import HEADS
from snapstore.store import log
from snapstore.store.conversations import AgentSession, Conversations, ConversationState
from snapstore.store.disk_usage import folder_size
from snapstore.store.locations import home_folder
from snapstore.store.state import OpenTurn
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange, Node
from snapstore.timeline.record.conversation import seen_from


@dataclass(frozen=True, slots=True)
class FirstUndoneTurn:
    """The first undone turn: the conversation counts as undone from there on."""

    turn: int | None
    commit: str
    message_id: str | None
    prompt: str
    turns: int  # how many turns are undone


@dataclass(frozen=True, slots=True)
class ConversationStatus:
    """State of the agent's conversation."""

    state: ConversationState
    known: AgentSession | None
    running: bool
    reverted: FirstUndoneTurn | None


@dataclass(slots=True)
class Status:
    """State of a session."""

    root: bytes
    store: str
    git_dir: str
    session: str
    branch: str
    cursor: Node
    tip: Node
    turn: int  # the number of the last turn at or before the cursor
    prompt: str  # the prompt of that turn
    undone_turns: int
    open_turns: list[OpenTurn]
    edits: list[FileChange]
    left_out: dict[bytes, str]  # path: reason
    branches: list[str]
    sessions: list[str]
    size_bytes: int
    max_store_size: int
    recovery: str | None
    pending_fork: bool
    conversation: ConversationStatus | None
    hook_errors: list[str]
    not_known: list[str]  # events and tools that no adapter knows


def read_status(session: Session, recovery: str | None = None, *, edits: bool = True) -> Status:
    """Read the status of a session.

    Without `edits` the disk is not scanned: `Status.edits` is empty, and `left_out` is the result of an earlier scan.
    """
    store = session.store
    history = History(session)
    graph = history.graph
    last = next((node for node in graph.upwards(history.cursor) if node.turn is not None), None)
    cursor, tip = history.node(history.cursor), history.node(history.tip)
    changed = history.edits() if edits else []
    heads = store.shadow.refs.list(f"{HEADS}{session.name}/")
    talk = _conversation(history)
    return Status(
        root=store.root,
        store=store.folder,
        git_dir=store.shadow.git_dir,
        session=session.name,
        branch=history.branch,
        cursor=cursor,
        tip=tip,
        turn=last.turn or 0 if last else 0,
        prompt=last.subject if last else "",
        undone_turns=sum(graph.node(oid).turn is not None for oid in graph.undone()),
        open_turns=store.open_turns(),
        edits=changed,
        left_out=store.left_out(),
        branches=sorted(name.rpartition("/")[2] for name in heads),
        sessions=store.sessions(),
        size_bytes=folder_size(store.folder),
        max_store_size=store.header.max_store_size,
        recovery=recovery,
        pending_fork=talk is not None and talk.state.pending_fork,
        conversation=talk,
        hook_errors=log.last(f"{store.folder}/log"),
        not_known=sentences(home_folder(), AGENTS),
    )


def _conversation(history: History) -> ConversationStatus | None:
    """Return the state of the agent's conversation and its first undone turn (S4-14)."""
    store, graph = history.store, history.graph
    conversations = Conversations(store)
    try:
        state = seen_from(store, graph.session, history.session.speaks_for)
        known = conversations.agent_session(state.id) if state is not None else None
    except Corrupt:  # turns and files do not depend on this document, and the hooks have logged the damage
        return None
    if state is None:
        return None
    undone = [oid for oid in graph.undone() if graph.node(oid).kind == "turn"]
    reverted = None
    if undone and store.open_turn(graph.session) is None:  # a new prompt leaves undone turns behind (S4-17)
        first = history.node(undone[0])
        about = first.record.get("conversation")
        message = about.get("message_id") if isinstance(about, dict) else None
        message = message if isinstance(message, str) else None
        reverted = FirstUndoneTurn(first.turn, first.commit, message, first.prompt, len(undone))
    return ConversationStatus(state, known, conversations.is_running(known) if known else False, reverted)
