"""Endpoints that read: sessions, their status, their trees and nodes.

The disk is scanned only if a request asks for it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from snapstore.agents.hooks.interrupted import is_interrupted
from snapstore.errors import Unknown, Usage
from snapstore.surface.records.status import StatusRecord
from snapstore.surface.records.web import (
    CompactionRecord,
    PageNodeRecord,
    PageNodesRecord,
    PageSessionsRecord,
    PageTreeRecord,
    StatsRecord,
)
from snapstore.surface.stats import read_stats
from snapstore.surface.status import read_status
from snapstore.surface.tree_document import encoded, listed_branches
from snapstore.timeline.history.agent_sessions import read_sessions
from snapstore.timeline.history.history import History
from snapstore.web.answers import Document
from snapstore.web.project import Project, answer

MOST_NODES = 50


def routes(project: Project) -> APIRouter:
    api = APIRouter()

    @api.get("/api/sessions", response_model=PageSessionsRecord)
    def sessions() -> Response:
        with project.store() as store:
            return answer(PageSessionsRecord.of(store, read_sessions(store, project.spoken)))

    @api.get("/api/sessions/{name}/status", response_model=StatusRecord)
    def status(name: str, edits: bool = False) -> Response:
        with project.session(name) as session:
            found = read_status(session, session.store.recovered, edits=edits)
            open_in = {turn.session for turn in found.open_turns}
            # A move closes an interrupted turn, so the page need not wait for its end.
            interrupted = frozenset(one for one in open_in if is_interrupted(session.store.session(one)))
            return answer(StatusRecord.of(found, interrupted))

    @api.get("/api/sessions/{name}/tree", response_model=PageTreeRecord)
    def tree(name: str) -> Response:
        with project.session(name) as session:
            graph = project.graphs.of(session)
            tree = PageTreeRecord.for_page(graph, listed_branches(graph), session.store)
            return Document(encoded(tree, graph))

    @api.get("/api/sessions/{name}/nodes/{commit}", response_model=PageNodeRecord)
    def node(name: str, commit: str) -> Response:
        with project.session(name) as session:
            history = History(session, project.graphs.of(session))
            return answer(_node(history, commit))

    @api.get("/api/sessions/{name}/nodes/{commit}/compaction", response_model=CompactionRecord)
    def compaction(name: str, commit: str) -> Response:
        """Return the compaction after a node: the agent no longer has what was before (S1-47)."""
        with project.session(name) as session:
            graph = project.graphs.of(session)
            project.spoken.read(session.store)
            return answer(CompactionRecord.of(project.spoken.compaction(graph, own(History(session, graph), commit))))

    @api.get("/api/sessions/{name}/nodes", response_model=PageNodesRecord)
    def nodes(
        name: str, commits: Annotated[str, Query(description=f"up to {MOST_NODES} commits, separated by commas")]
    ) -> Response:
        wanted = commits.split(",")
        if len(wanted) > MOST_NODES:
            raise Usage(f"more than {MOST_NODES} nodes at once", "Send several requests.")
        with project.session(name) as session:
            history = History(session, project.graphs.of(session))
            return answer(PageNodesRecord(nodes=[_node(history, commit) for commit in wanted]))

    @api.get("/api/stats", response_model=StatsRecord)
    def stats(check: bool = False) -> Response:
        with project.store() as store:
            return answer(StatsRecord.with_refusals(read_stats(store, check=check), project.refused))

    return api


def _node(history: History, commit: str) -> PageNodeRecord:
    return PageNodeRecord.with_talk(history.node(own(history, commit), counts=True))


def own(history: History, commit: str) -> bytes:
    """Return a node of the session by its full hash."""
    oid = bytes.fromhex(commit) if len(commit) == 40 and not set(commit) - set("0123456789abcdef") else b""
    if oid not in history.graph.nodes:
        raise Unknown(f"there is no node {commit[:60]!r} in session {history.graph.session}", "Read the tree again.")
    return oid
