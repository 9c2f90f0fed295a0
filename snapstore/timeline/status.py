"""Where a store stands, in one look."""

from __future__ import annotations

import os
from dataclasses import dataclass

from snapstore.errors import Corrupt
from snapstore.timeline import logbook
from snapstore.timeline.conversation import Conversations
from snapstore.timeline.documents import OpenTurn, timestamp
from snapstore.timeline.history import History
from snapstore.timeline.nodes import FileChange, Node, path_json
from snapstore.timeline.plan import paths_b64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.timeline.session import Session


@dataclass(slots=True)
class Status:
    root: bytes
    store: str
    git_dir: str
    session: str
    branch: str
    cursor: Node
    tip: Node
    turn: int  # the number of the last turn at or before the cursor
    prompt: str  # and what was asked for in it
    undone_turns: int
    open_turns: list[OpenTurn]
    edits: list[FileChange]
    left_out: list[dict[str, str]]
    branches: list[str]
    sessions: list[str]
    size_bytes: int
    max_store_size: int
    recovery: str | None
    pending_fork: bool
    conversation: dict[str, Any] | None
    hook_errors: list[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "root": os.fsdecode(self.root),
            "store": self.store,
            "git_dir": self.git_dir,
            "session": self.session,
            "branch": self.branch,
            "cursor": self.cursor.as_json(),
            "tip": self.tip.as_json(),
            "turn": self.turn,
            "undone_turns": self.undone_turns,
            "open_turns": [
                {
                    "session": turn.session,
                    "prompt": turn.prompt,
                    "agent": turn.agent,
                    "started_at": timestamp(turn.started_at),
                    "status": "open",
                }
                for turn in self.open_turns
            ],
            "edits": [path_json(change.path)["path"] for change in self.edits],
            "paths_b64": paths_b64(change.path for change in self.edits),
            "left_out": self.left_out,
            "branches": self.branches,
            "sessions": self.sessions,
            "size_bytes": self.size_bytes,
            "max_store_size": self.max_store_size,
            "recovery": self.recovery,
            "pending_fork": self.pending_fork,
            "conversation": self.conversation,
            "hook_errors": self.hook_errors,
        }


def read_status(session: Session, recovery: str | None = None, *, edits: bool = True) -> Status:
    """Without `edits` nobody looks at the disk: what changed since, and what was left out, is not told."""
    store = session.store
    history = History(session)
    graph = history.graph
    last = next((node for node in graph.upwards(history.cursor) if node.turn is not None), None)
    cursor, tip = history.node(history.cursor), history.node(history.tip)
    changed = history.edits() if edits else []
    heads = store.shadow.refs.list(f"refs/heads/{session.name}/")
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
        left_out=[{**path_json(path), "why": why} for path, why in store.left_out().items()],
        branches=sorted(name.rpartition("/")[2] for name in heads),
        sessions=store.sessions(),
        size_bytes=folder_size(store.folder),
        max_store_size=store.header.max_store_size,
        recovery=recovery,
        pending_fork=bool(talk and talk["pending_fork"]),
        conversation=talk,
        hook_errors=logbook.last(f"{store.folder}/log"),
    )


def _conversation(history: History) -> dict[str, Any] | None:
    """Where the agent's conversation stands, and from where on it is taken back (S4-14): the first turn undone."""
    store, graph = history.store, history.graph
    conversations = Conversations(store)
    try:
        state = conversations.state(graph.session)
        known = conversations.agent_session(state.id) if state is not None else None
    except Corrupt:  # turns and files are whole without it, and hooks have noted it
        return None
    if state is None:
        return None
    undone = [oid for oid in graph.undone() if graph.node(oid).kind == "turn"]
    revert = None
    if undone and store.open_turn(graph.session) is None:  # a new prompt leaves them behind (S4-17)
        first = history.node(undone[0])
        about = first.record.get("conversation")
        about = about if isinstance(about, dict) else {}
        revert = {
            "turn": first.turn,
            "commit": first.commit,
            "message_id": about.get("message_id"),
            "prompt": first.prompt,
            "turns": len(undone),
        }
    return {
        "agent": state.agent,
        "id": state.id,
        "materialized": state.materialized,
        "pending_fork": state.pending_fork,
        "awaiting": state.awaiting is not None,
        "parent": known.parent if known else None,
        "fork_turn": known.fork_turn if known else None,
        "title": known.title if known else None,
        "transcript": (known.transcript or None) if known else None,
        "running": conversations.is_running(known) if known else False,
        "revert": revert,
    }


def folder_size(folder: str) -> int:
    """Bytes on disk that are this store's own: what is hard-linked from elsewhere costs nothing."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                st = os.lstat(os.path.join(path, name))
            except FileNotFoundError:
                continue
            if st.st_nlink == 1:
                total += st.st_blocks * 512
    return total
