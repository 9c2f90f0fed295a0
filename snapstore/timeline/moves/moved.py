"""The result of a move, for every surface that reports it."""

from __future__ import annotations

from snapstore.timeline.history.nodes import Node, read_node
from snapstore.timeline.moves.plan import Plan
from snapstore.timeline.record.session import RecordingSession


class Moved:
    """The result of a move."""

    __slots__ = ("_session", "operation", "pending_fork", "plan", "safety", "safety_ref", "taken_up", "target")

    def __init__(self, session: RecordingSession, plan: Plan) -> None:
        self._session = session
        self.plan = plan
        self.target = plan.target
        self.operation: int | None = None
        self.pending_fork = False  # whether the agent's conversation now holds turns that are undone
        self.taken_up = ""  # the agent session that left off there, if another one was current before
        self.safety_ref: str | None = None
        self.safety: bytes | None = None  # the commit of what was on disk before the move

    @property
    def turns_undone(self) -> int:
        return len(self.plan.turns_undone)

    @property
    def turns_redone(self) -> int:
        return len(self.plan.turns_redone)

    @property
    def messages_removed(self) -> int:
        return self.plan.messages_removed

    @property
    def files_reverted(self) -> list[bytes]:
        """Return the paths whose bytes, mode or existence the move changed."""
        return [move.path for move in self.plan.changing]

    @property
    def snapshot_restored(self) -> str | None:
        return self.target.hex() if self.plan.changing else None

    def start_node(self) -> Node:
        """Read the node that the session left."""
        return self._node(self.plan.start, self.plan.start_branch)

    def target_node(self) -> Node:
        """Read the node that the session is on now, or would be on after a preview."""
        return self._node(self.target, self.plan.branch)

    def _node(self, oid: bytes, branch: str) -> Node:
        return read_node(self._session.store.shadow, oid, branch=branch)
