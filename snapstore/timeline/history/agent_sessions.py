"""Agent sessions: which line of turns each speaks for, and the list of a store's sessions with their forks.

An agent session's id addresses its own line, whichever line of the session is current. `addressed` finds the agent
session, `line_of` its line, and `view` shows a session's tree as seen from there. Everything that takes a session by
name (commands, the page's endpoints, moves) goes through these three.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import copy
from threading import Lock

from snapstore.base.text import first_line, safe, timestamp
from snapstore.errors import SnapstoreError, Unknown, Usage
from snapstore.git.objects.ids import EMPTY_TREE
from snapstore.git.objects.notes import REF as NOTES
from snapstore.git.ref_names import MAIN, cursor_ref
from snapstore.store.conversations import AgentSession, Conversations, ConversationState
from snapstore.store.handle import SessionHandle, StoreHandle
from snapstore.timeline.history.graph import Graph, GraphNode

SHORTEST_ID = 8
_LISTED = "`snapstore sessions` lists agent sessions."

# An agent session's first turn, its last turn of its own (not inherited by a fork), and its number of messages.
ConversationSpan = tuple[GraphNode, GraphNode | None, int]


class Conversation:
    """One agent session, with its first prompt, its number of messages and its line."""

    __slots__ = (
        *("archived", "branch", "current", "first_prompt", "known", "listed_under", "messages", "modified", "turns"),
    )

    def __init__(self, known: AgentSession, span: ConversationSpan | None, *, current: bool) -> None:
        self.known = known
        self.current = current  # whether the agent continues this one
        self.branch = ""  # the branch of its line, "" if its turns are gone
        self.turns = 0  # the number of the last turn on its line
        self.archived = False  # whether its branch is in the archive
        self.listed_under: str | None = known.parent  # the agent session that lists show it under
        self.first_prompt = span[0].subject if span else ""
        self.modified = timestamp(span[1].seconds) if span and span[1] else known.created
        self.messages = span[2] if span else 0


class SessionLine:
    """One session: its current branch, and its conversations, oldest first."""

    __slots__ = ("agent", "branch", "conversations", "last_active", "name", "owner", "prompt", "turns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.agent = ""
        self.branch = ""
        self.turns = 0
        self.prompt = ""
        self.last_active = ""
        self.conversations: list[Conversation] = []
        self.owner: dict[str, str] | None = None  # the other machine that the session belongs to, if any


def read_sessions(store: StoreHandle, records: TurnRecords | None = None) -> list[SessionLine]:
    """Return all sessions, the last active first.

    A session that cannot be read is listed by its name alone. Callers that ask often pass the same `records` each time.
    """
    records = records or TurnRecords()
    conversations = Conversations(store)
    known: dict[str, list[AgentSession]] = {}
    for found in conversations.agent_sessions():
        known.setdefault(found.session, []).append(found)
    if known:
        try:
            records.read(store)
        except SnapstoreError:  # a damaged record: list sessions without prompts and messages
            pass
    lines = []
    for name in store.sessions():
        line = SessionLine(name)
        try:
            graph = Graph(store, name)
            _read_line(line, graph)
            spans = records.spans(graph, known[name]) if name in known else {}
        except SnapstoreError:
            lines.append(line)
            continue
        state = conversations.state(name)
        line.agent = state.agent if state is not None else line.agent
        for one in sorted(known.get(name, []), key=lambda one: (one.created, one.id)):
            current = state is not None and state.id == one.id
            line.conversations.append(Conversation(one, spans.get(one.id), current=current))
            _find_line(line.conversations[-1], graph, state)
        _list_promoted_first(line)
        lines.append(line)
    return sorted(lines, key=lambda line: line.last_active, reverse=True)


def _read_line(line: SessionLine, graph: Graph) -> None:
    line.branch = graph.branch
    line.owner = graph.owner
    turns = [node for node in graph.upwards(graph.cursor) if node.turn is not None]
    line.turns = turns[0].turn or 0 if turns else 0
    line.prompt = turns[-1].subject if turns else ""
    line.last_active = timestamp(graph.node(graph.tip).seconds)
    line.agent = next((node.agent for node in turns if node.agent), "")


def _find_line(one: Conversation, graph: Graph, state: ConversationState | None) -> None:
    try:
        found = _line(graph, one.known, state)
    except SnapstoreError:  # its turns are gone, or damaged
        return
    one.branch, one.turns = found.branch, graph.turn_of(found.tip)
    one.archived = found.branch in graph.archived


def _list_promoted_first(line: SessionLine) -> None:
    """List the agent session of a promoted branch above those that it was forked from (S1-39)."""
    by_id = {one.known.id: one for one in line.conversations}
    promoted = next((one for one in line.conversations if one.branch == MAIN and one.known.parent in by_id), None)
    if promoted is None or by_id[promoted.known.parent or ""].branch == MAIN:
        return
    under: str | None = None
    at: Conversation | None = promoted
    while at is not None and at.listed_under != under:
        above = by_id.get(at.known.parent or "")
        at.listed_under, under, at = under, at.known.id, above if above is not promoted else None


def fork_tree(line: SessionLine) -> Iterator[tuple[str, Conversation]]:
    """Yield agent sessions as a tree of forks (S1-35), each with its line prefix."""
    every = line.conversations
    ids = {one.known.id for one in every}
    level = [one for one in every if one.listed_under not in ids]
    pending = [(one, "", one is level[-1]) for one in reversed(level)]
    while pending:  # no recursion: forks may be nested deeply
        one, lead, is_last = pending.pop()
        yield f"{lead}{'└─' if is_last else '├─'} ", one
        below = [other for other in every if other.listed_under == one.known.id and other is not one]
        inner = lead + ("   " if is_last else "│  ")
        pending += [(other, inner, other is below[-1]) for other in reversed(below)]


def describe(one: Conversation) -> str:
    """Describe a conversation: `current · forked after turn 2 · Another way`."""
    parts = ["current"] if one.current else []
    if one.known.parent:
        parts.append(f"forked after turn {one.known.fork_turn or 0}")
    if one.archived:
        parts.append("archived")
    if one.known.title:
        parts.append(safe(first_line(one.known.title)))
    return " · ".join(parts)


# Which line an agent session speaks for.


class AgentLine:
    """The line of one agent session: its branch, where it ends, and where it stands.

    The line of the current agent session is the session's own: it may stand before its end. Any other line stands at
    its end, which is the last turn that its agent session knows of, and what was recorded after that turn without
    another prompt (edits, reverted turns).
    """

    __slots__ = ("branch", "is_current", "known", "stands_at", "tip")

    def __init__(self, known: AgentSession, graph: Graph, *, end: bytes | None = None, branch: str = "") -> None:
        self.known = known
        self.is_current = end is None
        self.branch = branch or graph.branch
        self.tip = end if end is not None else graph.tip
        self.stands_at = end if end is not None else graph.cursor


def addressed(store: StoreHandle, name: str) -> AgentSession | None:
    """Return the agent session that a name addresses: by its id, or by 8 or more first characters.

    A session's own name comes first. Raises Unknown if several agent sessions begin like that.
    """
    if store.shadow.refs.value(cursor_ref(name)) is not None:
        return None
    conversations = Conversations(store)
    known = conversations.agent_session(name)
    if known is not None or len(name) < SHORTEST_ID or name in store.foreign().sessions():
        return known
    found = [id for id in conversations.ids() if id.startswith(name)]
    if len(found) > 1:
        raise Unknown(
            f"{name} is the beginning of {len(found)} agent sessions",
            f"Give more of the id: {', '.join(sorted(found)[:4])}.",
            address=name,
        )
    return conversations.agent_session(found[0]) if found else None


def view(session: SessionHandle, graph: Graph | None = None) -> Graph:
    """Return a session's tree, seen from the line that the session was opened for.

    For any but the current line, the graph's branch, tip and cursor are those of the line; `here` is where the session
    stands. `graph` is the session's tree, if it has been read already.
    """
    graph = graph or Graph(session.store, session.name)
    if not session.speaks_for:
        return graph
    line = line_of(graph, session.speaks_for, session.store)
    if line.is_current:
        return graph
    seen = copy(graph)
    for name in ("_homes", "_place"):  # what depends on where the session stands
        seen.__dict__.pop(name, None)
    seen.branch, seen.tip, seen.cursor = line.branch, line.tip, line.stands_at
    return seen


def line_of(graph: Graph, id: str, store: StoreHandle | None = None) -> AgentLine:
    """Return the line of an agent session; raise Unknown if its turns are gone.

    Only commits are read, and for the current agent session none at all. `store` is the open store, if the graph was
    read from one that is closed by now.
    """
    conversations = Conversations(store or graph.store)
    known, state = conversations.agent_session(id), conversations.state(graph.session)
    if known is None or known.session != graph.session:
        raise Unknown(f"there is no agent session {id!r} in session {graph.session}", _LISTED, session=id)
    return _line(graph, known, state)


def _line(graph: Graph, known: AgentSession, state: ConversationState | None) -> AgentLine:
    id = known.id
    if state is None or state.id == id:
        return AgentLine(known, graph)
    at = state.left.get(id) or known.fork_commit
    if not at:  # it has no turn: it was to start afresh, or its turns were forgotten
        return AgentLine(known, graph, end=_start(graph))
    end = bytes.fromhex(at)
    branch = None
    if end in graph.nodes:
        while onward := [way for way in graph.children.get(end, ()) if graph.node(way).kind != "turn"]:
            end = onward[-1]
        branch = graph.branch_of(end)
    if branch is None:
        raise Unknown(
            f"the line of agent session {id} is gone: its branch was deleted, pruned or forgotten",
            f"`snapstore ops` lists what happened since. {_LISTED}",
            session=id,
        )
    return AgentLine(known, graph, end=end, branch=branch)


def _start(graph: Graph) -> bytes:
    """Return the node before the first turn of the current line."""
    start = graph.tip
    for node in graph.upwards(graph.tip):
        if node.turn is not None and node.parent is not None:
            start = node.parent
    return start


def refuse_elsewhere(session: SessionHandle, what: str) -> None:
    """Refuse what can only be added to the current line, for a session opened for another one."""
    if not session.speaks_for:
        return
    graph = Graph(session.store, session.name)
    line = line_of(graph, session.speaks_for)
    if not line.is_current:
        raise Usage(
            f"{what} belongs on the current line, and agent session {session.speaks_for} left off on another",
            f"Go there first: `snapstore switch {session.speaks_for}`.",
            session=session.name,
        )


class TurnRecords:
    """The agent session of each turn, read from the turns' records.

    Reading again with the same instance reads only the records that changed.
    """

    def __init__(self) -> None:
        self._tree = EMPTY_TREE  # tree of the records read so far
        # By turn: the agent session, the number of replies, and whether a compaction preceded the turn.
        self._said: dict[bytes, tuple[str, int, bool]] = {}
        self._lock = Lock()

    def read(self, store: StoreHandle) -> None:
        shadow = store.shadow
        tip = shadow.refs.read(NOTES)
        tree = shadow.commit(tip).tree if tip is not None else EMPTY_TREE
        with self._lock:
            for path, _, new in shadow.trees.diff(self._tree, tree):
                name = path.replace(b"/", b"")
                if len(name) != 40 or name.strip(b"0123456789abcdef"):
                    continue
                commit = bytes.fromhex(name.decode())
                said = _said(shadow.objects.read(new[1])[1]) if new is not None else None
                if said is not None:
                    self._said[commit] = said
                else:
                    self._said.pop(commit, None)
            self._tree = tree

    def spans(self, graph: Graph, known: Iterable[AgentSession]) -> dict[str, ConversationSpan]:
        """Return the turns and messages of each agent session, by the agent's id.

        A fork includes the messages before its fork point (S1-16).
        """
        found: dict[str, ConversationSpan] = {}
        on_the_way: dict[bytes, ConversationSpan] = {}  # by node
        for node in graph.by_seq():
            before = on_the_way.get(node.parent) if node.parent is not None else None
            said = self._said.get(node.oid) if node.kind == "turn" else None
            if said is not None:
                found[said[0]] = _extended(found.get(said[0]), node, said[1])
                before = _extended(before, node, said[1])
            if before is not None:
                on_the_way[node.oid] = before
        for one in known:
            held = on_the_way.get(bytes.fromhex(one.fork_commit)) if one.fork_commit else None
            if held is not None:
                own = found.get(one.id)
                found[one.id] = (held[0], own[1] if own else None, held[2] + (own[2] if own else 0))
        return found

    def compaction(self, graph: Graph, oid: bytes) -> GraphNode | None:
        """Return the last turn on the current line, after a node, that began with a compaction."""
        for node in graph.upwards(graph.tip):
            if node.oid == oid:
                break
            said = self._said.get(node.oid)
            if said is not None and said[2]:
                return node
        return None


def _extended(span: ConversationSpan | None, node: GraphNode, replies: int) -> ConversationSpan:
    first, _, messages = span or (node, None, 0)
    return first, node, messages + 1 + replies


def _said(note: bytes) -> tuple[str, int, bool] | None:
    """Parse a record; None for any other note, since users can write notes with git."""
    try:
        record = json.loads(note)
        conversation, replies = record["conversation"], len(record["replies"])
        id, compacted = conversation["agent_session"], conversation.get("compacted") is True
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return (id, replies, compacted) if isinstance(id, str) else None
