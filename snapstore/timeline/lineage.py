"""Every session of a store with the agents' sessions that it went through: who was forked from whom, and where."""

from __future__ import annotations

import json

from snapstore.errors import SnapstoreError
from snapstore.timeline.conversation import Conversations
from snapstore.timeline.documents import timestamp
from snapstore.timeline.graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.timeline.conversation import AgentSession
    from snapstore.timeline.graph import GraphNode
    from snapstore.timeline.store import Store

Spoken = dict[str, "tuple[GraphNode, GraphNode, int]"]  # by the agent's id: its first and last turn, and its messages


class SessionLine:
    """One session: where it stands, and its conversations, the oldest first."""

    __slots__ = ("agent", "branch", "conversations", "last_active", "name", "prompt", "turns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.agent = ""
        self.branch = ""
        self.turns = 0
        self.prompt = ""
        self.last_active = ""
        self.conversations: list[dict[str, Any]] = []

    def as_json(self, active: str) -> dict[str, Any]:
        return {
            "session": self.name,
            "active": self.name == active,
            "agent": self.agent or None,
            "branch": self.branch,
            "turns": self.turns,
            "firstPrompt": self.prompt,
            "modified": self.last_active,
            "conversations": self.conversations,
        }


def read_sessions(store: Store) -> list[SessionLine]:
    """All sessions, the one last active first. One that cannot be read is still named."""
    conversations = Conversations(store)
    known: dict[str, list[AgentSession]] = {}
    for found in conversations.agent_sessions():
        known.setdefault(found.session, []).append(found)
    lines = []
    for name in store.sessions():
        line = SessionLine(name)
        try:
            graph = Graph(store, name)
            _describe(line, graph)
            spoken = _spoken(store, graph) if name in known else {}
        except SnapstoreError:
            lines.append(line)
            continue
        state = conversations.state(name)
        line.agent = state.agent if state is not None else line.agent
        for one in sorted(known.get(name, []), key=lambda one: (one.created, one.id)):
            line.conversations.append(_entry(one, spoken, current=state is not None and state.id == one.id))
        lines.append(line)
    return sorted(lines, key=lambda line: line.last_active, reverse=True)


def _describe(line: SessionLine, graph: Graph) -> None:
    line.branch = graph.branch
    turns = [node for node in graph.upwards(graph.cursor) if node.turn is not None]
    line.turns = turns[0].turn or 0 if turns else 0
    line.prompt = turns[-1].subject if turns else ""
    line.last_active = timestamp(graph.node(graph.tip).seconds)
    line.agent = next((node.agent for node in turns if node.agent), "")


def _spoken(store: Store, graph: Graph) -> Spoken:
    """Which of the agent's sessions said what: the records of the turns know."""
    found: Spoken = {}
    for node in sorted(graph.nodes.values(), key=lambda node: node.seq):
        if node.kind != "turn":
            continue
        try:
            record = json.loads(store.shadow.note(node.oid) or b"{}")
            id, replies = record["conversation"]["agent_session"], len(record["replies"])
        except (ValueError, KeyError, TypeError):
            continue
        first, _, messages = found.get(id, (node, node, 0))
        found[id] = (first, node, messages + 1 + replies)
    return found


def _entry(one: AgentSession, spoken: Spoken, *, current: bool) -> dict[str, Any]:
    """In the words that agents' own indexes use (S1-15, S1-19)."""
    turns = spoken.get(one.id)
    return {
        "sessionId": one.id,
        "agent": one.agent,
        "current": current,
        "parentSessionId": one.parent,
        "rewindFromTurn": one.fork_turn,
        "rewindedAt": one.forked_at,
        "created": one.created,
        "modified": timestamp(turns[1].seconds) if turns else one.created,
        "messageCount": turns[2] if turns else 0,
        "firstPrompt": turns[0].subject if turns else "",
        "title": one.title,
        "alias": one.alias,
        "fullPath": one.transcript or None,
    }
