"""Which conversation a session continues with, and which undone turns an agent still remembers.

An agent session is current where it left off: wherever a move leads, the agent session that ended exactly there is the
current one again, or else the one whose line that is. So leaving a line and returning to it needs no fork (M-03).

An agent's conversation only grows. A turn that was undone stays in the agent's memory, also when the user goes on in
the same conversation; only a fork is without it (M-04).
"""

from __future__ import annotations

import json
import os

from snapstore.errors import Unknown
from snapstore.git.ref_names import cursor_ref
from snapstore.store.conversations import AgentSession, Conversations, ConversationState
from snapstore.store.handle import SessionHandle, StoreHandle
from snapstore.timeline.history import raw_lines
from snapstore.timeline.history.agent_sessions import line_of, view
from snapstore.timeline.history.graph import Graph, GraphNode, last_turn
from snapstore.timeline.history.nodes import read_node


def stand(state: ConversationState, graph: Graph, target: bytes, branch: str, asked: str = "") -> None:
    """Note that the session moves to a node of a branch.

    `asked` is the agent session whose line the move was asked for. `graph` is the tree before the move. The caller
    writes the state.
    """
    last = last_turn(graph, target)
    known = _left_off(state, graph, last, branch, asked)
    if known is not None:
        state.switch_to(known)
    look_again(state, graph, target)


def look_again(state: ConversationState, graph: Graph, target: bytes) -> None:
    """Note what the conversation holds, seen from a node: a fork is pending if that is not what was said up to it."""
    last = last_turn(graph, target)
    state.materialized = last is not None
    strayed = any(not on_line(graph, target, end) for end in state.strays.get(state.id, ()))
    state.pending_fork = last is not None and (last.oid.hex() != state.at or strayed)
    state.awaiting = None


def prompted(state: ConversationState, store: StoreHandle, closed: bytes | None) -> None:
    """Note a new prompt in the conversation, at the session's cursor.

    Undone turns that the agent remembers are noted as strays: the conversation goes on from another turn than its last.
    `closed` is a turn that ends together with the prompt, which nobody can read yet.
    """
    cursor = _cursor(store, state.session)
    strays = state.strays.get(state.id, [])
    goes_on = (
        not state.at or cursor is None or state.at == (closed or cursor).hex() or _ends_at(store, cursor, state.at)
    )
    state.pending_fork = False
    if cursor is not None and (strays or not goes_on):
        graph = Graph(store, state.session)
        if not goes_on and state.at not in strays and not on_line(graph, cursor, state.at):
            strays = state.strays[state.id] = [*strays, state.at]
        state.pending_fork = any(not on_line(graph, cursor, end) for end in strays)
    state.materialized, state.awaiting = True, None


def seen_from(store: StoreHandle, session: str, id: str) -> ConversationState | None:
    """Return a session's conversation as the agent session `id` sees it, or as it is without one."""
    conversations = Conversations(store)
    state = conversations.state(session)
    known = conversations.agent_session(id) if id else None
    if state is not None and known is not None and state.id != known.id:
        graph = Graph(store, session)
        line = line_of(graph, known.id)
        state.switch_to(known)
        look_again(state, graph, line.stands_at)
    return state


def resume_options(session: SessionHandle) -> dict[str, str | bool | None]:
    """Return how an agent's SDK resumes the session's conversation, up to where the session stands."""
    state = seen_from(session.store, session.name, session.speaks_for)
    if state is None:
        raise Unknown(
            f"session {session.name} belongs to no agent's conversation",
            "Only a session that an agent's hooks recorded, or that was imported, can be resumed.",
            session=session.name,
        )
    graph = view(session)
    last = last_turn(graph, graph.cursor)
    if last is None:
        return {"resume": None, "forkSession": False, "resumeSessionAt": None}
    return {
        "resume": state.id,
        "forkSession": state.pending_fork,
        "resumeSessionAt": _last_message(session.store, last.oid) if state.pending_fork else None,
    }


def _last_message(store: StoreHandle, turn: bytes) -> str | None:
    """Return the id of the last message of the agent in a turn, from the lines of its transcript."""
    lines = raw_lines.with_lines(store.shadow, turn, read_node(store.shadow, turn, files=False).record)
    for line in reversed(lines.get(raw_lines.LINES) or []):
        try:
            found = json.loads(line)
        except (TypeError, ValueError, RecursionError):
            continue
        if isinstance(found, dict) and found.get("type") == "assistant" and not found.get("isSidechain"):
            return found["uuid"] if isinstance(found.get("uuid"), str) else None
    return None


def undone_turns(store: StoreHandle, known: AgentSession) -> list[GraphNode]:
    """Return the turns that an agent session ends with and that are undone, the last one first."""
    state = Conversations(store).state(known.session)
    cursor = _cursor(store, known.session)
    if state is None or cursor is None:
        return []
    at = state.at if state.id == known.id else state.left.get(known.id) or known.fork_commit or ""
    told = at in state.strays.get(known.id, ())  # with an earlier prompt, whose turn has not ended yet
    if not at or told or _ends_at(store, cursor, at):
        return []
    graph = Graph(store, known.session)
    if on_line(graph, cursor, at):
        return []
    left, _ = graph.path(bytes.fromhex(at), cursor)
    return [node for node in map(graph.node, left) if node.kind == "turn"]


def on_line(graph: Graph, target: bytes, commit: str) -> bool:
    """Return whether a turn lies on the line up to a node.

    A pruned turn counts as being there: nothing is left of it to tell of.
    """
    oid = bytes.fromhex(commit)
    if not graph.store.shadow.objects.contains(oid):
        return True
    seq = graph.node(oid).seq
    for node in graph.upwards(target):
        if node.oid == oid:
            return True
        if node.seq < seq:
            return False
    return False


def _cursor(store: StoreHandle, session: str) -> bytes | None:
    return store.shadow.refs.read(cursor_ref(session))


def _ends_at(store: StoreHandle, cursor: bytes, commit: str) -> bool:
    """Return whether a commit is the last turn up to the cursor. This is the common case, and reads next to nothing."""
    at: bytes | None = cursor
    while at is not None:
        if at.hex() == commit:
            return True
        found = store.shadow.commit(at)
        if found.trailers.get("Kind") == "turn":
            return False
        at = found.parents[0] if found.parents else None
    return False


def _left_off(
    state: ConversationState, graph: Graph, last: GraphNode | None, branch: str, asked: str
) -> AgentSession | None:
    """Return the agent session to continue with, None for the one that is current already."""
    conversations = Conversations(graph.store)
    if asked:
        return conversations.agent_session(asked)
    if last is None or state.at == last.oid.hex():
        return None
    ends: dict[str, list[str]] = {}
    for id, at in reversed(state.left.items()):
        ends.setdefault(at, []).append(id)

    def usable(oid: bytes) -> AgentSession | None:
        for id in ends.get(oid.hex(), ()):
            known = conversations.agent_session(id)
            # A transcript that is gone cannot be resumed; its turns can be forked from what was recorded.
            if known is not None and known.agent == state.agent and _is_kept(known):
                return known
        return None

    found = usable(last.oid)
    if found is not None or branch == graph.branch:
        return found
    for node in graph.upwards(graph.tip_of(branch) or last.oid):
        if node.oid == last.oid or node.oid.hex() == state.at:
            break
        found = usable(node.oid)
        if found is not None:
            return found
    return None


def _is_kept(known: AgentSession) -> bool:
    return not known.transcript or os.path.isfile(known.transcript)
