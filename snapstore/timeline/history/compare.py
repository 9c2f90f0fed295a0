"""Compare two branches: fork point, turns of each since, differing files."""

from __future__ import annotations

from snapstore.errors import Usage
from snapstore.timeline.history.addresses import locate
from snapstore.timeline.history.graph import GraphNode
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange, file_changes, read_node

ONLY_A, ONLY_B, SAME, DIFFERENT = "only a", "only b", "same", "different"


class Side:
    """One of the two branches: its line after the fork point."""

    __slots__ = ("address", "branch", "changes", "message", "oid", "prompt", "seconds", "turn", "turns")

    def __init__(self, history: History, address: str) -> None:
        graph = history.graph
        self.address = address
        self.oid, branch = locate(graph, address)
        if self.oid not in graph.nodes:
            raise Usage(
                f"{address!r} is not in session {graph.session}, so the two share no turn",
                "`snapstore diff A B` compares any two states.",
            )
        self.branch = branch or graph.branch_of(self.oid) or ""
        self.turn = graph.turn_of(self.oid)
        self.seconds = graph.node(self.oid).seconds
        self.turns: list[GraphNode] = []  # since the fork point, oldest first
        self.changes: dict[bytes, FileChange] = {}
        last = next((node for node in graph.upwards(self.oid) if node.turn is not None), None)
        node = last and read_node(history.store.shadow, last.oid, files=False)
        replies = node.record.get("replies") if node else None
        self.prompt = node.prompt if node else ""
        self.message = str(replies[-1]) if replies else ""  # the agent's last reply

    def load(self, history: History, fork: bytes) -> None:
        """Read the turns and changes since the fork point."""
        graph, shadow = history.graph, history.store.shadow
        ours = graph.path(fork, self.oid)[1]
        self.turns = [graph.node(oid) for oid in ours if graph.node(oid).turn is not None]
        changes = file_changes(shadow, graph.node(fork).tree, graph.node(self.oid).tree, counts=True)
        self.changes = {change.path: change for change in changes}

    def counted(self) -> tuple[int, int]:
        """Return the numbers of lines added and removed."""
        changes = self.changes.values()
        return sum(change.added or 0 for change in changes), sum(change.removed or 0 for change in changes)


class Comparison:
    """Two branches with their fork point and what each changed since."""

    def __init__(self, history: History, a: str, b: str) -> None:
        graph = history.graph
        self.session = graph.session
        self.a, self.b = Side(history, a), Side(history, b)
        self.fork = graph.node(graph.fork_point(self.a.oid, self.b.oid))
        self.fork_turn = graph.turn_of(self.fork.oid)
        turns = (node for node in graph.upwards(self.fork.oid) if node.turn is not None)
        self.fork_prompt = next((node.subject for node in turns), "")
        for side in (self.a, self.b):
            side.load(history, self.fork.oid)
        self._trees = [graph.node(side.oid).tree for side in (self.a, self.b)]
        self._history = history

    def rows(self) -> list[tuple[bytes, FileChange | None, FileChange | None, str]]:
        """Return each file that either side changed, both changes, and the outcome."""
        found = []
        for path in sorted({*self.a.changes, *self.b.changes}):
            a, b = self.a.changes.get(path), self.b.changes.get(path)
            outcome = SAME if a and b and a.new == b.new else DIFFERENT
            found.append((path, a, b, ONLY_B if a is None else ONLY_A if b is None else outcome))
        return found

    def differing(self) -> list[FileChange]:
        """Return the changes that lead from A's files to B's."""
        return file_changes(self._history.store.shadow, *self._trees, renames=True)
