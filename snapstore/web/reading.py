"""What a page reads: sessions, where each stands, its tree and its nodes. Nothing here looks at the disk unasked."""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from snapstore.agents.capabilities import capability
from snapstore.agents.closing import is_interrupted
from snapstore.errors import Unknown, Usage
from snapstore.records.nodes import StatusRecord
from snapstore.records.web import (
    CompactionRecord,
    PageNodeRecord,
    PageNodesRecord,
    PageSessionsRecord,
    PageTreeRecord,
    StatsRecord,
)
from snapstore.timeline.history import History
from snapstore.timeline.lineage import read_sessions
from snapstore.timeline.nodes import Node
from snapstore.timeline.stats import read_stats
from snapstore.timeline.status import read_status
from snapstore.timeline.treedocument import tree_document
from snapstore.web.answers import Document
from snapstore.web.project import Project, document

MOST_NODES = 50
_TALK = ("replies", "thinking", "tool_calls", "unknown")


def routes(project: Project) -> APIRouter:
    api = APIRouter()

    @api.get("/api/sessions", response_model=PageSessionsRecord)
    def sessions() -> Response:
        with project.store() as store:
            active, found = store.active_session(), read_sessions(store, project.spoken)
            agents = {line.agent for line in found} | {one["agent"] for line in found for one in line.conversations}
            return document(
                PageSessionsRecord,
                {
                    "root": os.fsdecode(store.root),
                    "active": active,
                    "sessions": [line.as_json(active) for line in found],
                    "agents": {agent: capability(agent).as_json() for agent in sorted(agents) if agent},
                },
            )

    @api.get("/api/sessions/{name}/status", response_model=StatusRecord)
    def status(name: str, edits: bool = False) -> Response:
        with project.session(name) as session:
            found = read_status(session, session.store.recovered, edits=edits).as_json()
            for turn in found["open_turns"]:
                if is_interrupted(session.store.session(turn["session"])):  # a move closes it: no reason to wait
                    turn["status"] = "interrupted"
            return document(StatusRecord, found)

    @api.get("/api/sessions/{name}/tree", response_model=PageTreeRecord)
    def tree(name: str) -> Response:
        with project.session(name) as session:
            graph = project.graphs.of(session)
            more = {
                "expected": graph.cursor.hex(),
                "turn": graph.turn_of(graph.cursor),
                "max_branches": session.store.header.max_branches,
                "warn_branches": session.store.header.warn_branches,
            }
            return Document(tree_document(graph, session.store.clock(), None, **more))

    @api.get("/api/sessions/{name}/nodes/{commit}", response_model=PageNodeRecord)
    def node(name: str, commit: str) -> Response:
        with project.session(name) as session:
            history = History(session, project.graphs.of(session))
            return document(PageNodeRecord, _node(history, commit))

    @api.get("/api/sessions/{name}/nodes/{commit}/compaction", response_model=CompactionRecord)
    def compaction(name: str, commit: str) -> Response:
        """Whether the conversation up to this node is gone from what the agent has (S1-47)."""
        with project.session(name) as session:
            graph = project.graphs.of(session)
            project.spoken.read(session.store)
            found = project.spoken.compaction(graph, own(History(session, graph), commit))
            said = {"commit": found.oid.hex(), "turn": found.turn} if found else {"commit": None, "turn": None}
            return document(CompactionRecord, said)

    @api.get("/api/sessions/{name}/nodes", response_model=PageNodesRecord)
    def nodes(name: str, commits: Annotated[str, Query(description=f"up to {MOST_NODES}, with commas")]) -> Response:
        wanted = commits.split(",")
        if len(wanted) > MOST_NODES:
            raise Usage(f"more than {MOST_NODES} nodes at once", "Ask for some of them.")
        with project.session(name) as session:
            history = History(session, project.graphs.of(session))
            return document(PageNodesRecord, {"nodes": [_node(history, commit) for commit in wanted]})

    @api.get("/api/stats", response_model=StatsRecord)
    def stats(check: bool = False) -> Response:
        with project.store() as store:
            return document(StatsRecord, {**read_stats(store, check=check), "refused_moves": project.refused})

    return api


def _node(history: History, commit: str) -> dict[str, Any]:
    node: Node = history.node(own(history, commit), counts=True)
    about = node.record.get("conversation")
    talk: dict[str, Any] = {name: found if isinstance(found := node.record.get(name), list) else [] for name in _TALK}
    return {**node.as_json(), **talk, "conversation": about if isinstance(about, dict) else None}


def own(history: History, commit: str) -> bytes:
    """A node of the session by its whole hash."""
    oid = bytes.fromhex(commit) if len(commit) == 40 and not set(commit) - set("0123456789abcdef") else b""
    if oid not in history.graph.nodes:
        raise Unknown(f"there is no node {commit[:60]!r} in session {history.graph.session}", "Look at the tree again.")
    return oid
