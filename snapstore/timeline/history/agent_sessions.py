"""List the sessions of a store with their agent sessions, forks and fork points."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from threading import Lock

from snapstore.base.text import first_line, safe, timestamp
from snapstore.errors import SnapstoreError
from snapstore.git.objects.ids import EMPTY_TREE
from snapstore.git.objects.notes import REF as NOTES
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.store.handle import StoreHandle
from snapstore.timeline.history.graph import Graph, GraphNode

# An agent session's first turn, its last turn of its own (not inherited by a fork), and its number of messages.
ConversationSpan = tuple[GraphNode, GraphNode | None, int]


class Conversation:
    """One agent session, with its first prompt and its number of messages."""

    __slots__ = ("current", "first_prompt", "known", "messages", "modified")

    def __init__(self, known: AgentSession, span: ConversationSpan | None, *, current: bool) -> None:
        self.known = known
        self.current = current  # whether the agent continues this one
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


def fork_tree(line: SessionLine) -> Iterator[tuple[str, Conversation]]:
    """Yield agent sessions as a tree of forks (S1-35), each with its line prefix."""
    every = line.conversations
    ids = {one.known.id for one in every}
    level = [one for one in every if one.known.parent not in ids]
    pending = [(one, "", one is level[-1]) for one in reversed(level)]
    while pending:  # no recursion: forks may be nested deeply
        one, lead, is_last = pending.pop()
        yield f"{lead}{'└─' if is_last else '├─'} ", one
        below = [other for other in every if other.known.parent == one.known.id and other is not one]
        inner = lead + ("   " if is_last else "│  ")
        pending += [(other, inner, other is below[-1]) for other in reversed(below)]


def describe(one: Conversation) -> str:
    """Describe a conversation: `current · forked after turn 2 · Another way`."""
    parts = ["current"] if one.current else []
    if one.known.parent:
        parts.append(f"forked after turn {one.known.fork_turn or 0}")
    if one.known.title:
        parts.append(safe(first_line(one.known.title)))
    return " · ".join(parts)


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
