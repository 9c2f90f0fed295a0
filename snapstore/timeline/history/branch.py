"""Describe branches for lists."""

from __future__ import annotations

from snapstore.timeline.history.graph import Graph

CURRENT, LISTED, ARCHIVED = "current", "listed", "archived"


class Leaf:
    """The end of a line: its number of turns and its last prompt."""

    __slots__ = ("checkpoints", "prompt", "seconds", "seq", "tip", "turns")

    def __init__(self, graph: Graph, tip: bytes) -> None:
        end = graph.node(tip)
        self.tip = tip
        self.seq = end.seq
        self.seconds = end.seconds
        self.turns, self.prompt = next(
            ((node.turn, node.subject) for node in graph.upwards(tip) if node.turn is not None), (0, "")
        )
        self.checkpoints = list(graph.pinned.get(tip, ()))


class Branch(Leaf):
    """A line with a name, and the part of the line that is its own."""

    __slots__ = ("created", "fork", "fork_turn", "label", "name", "own", "owner", "pinned", "state")

    def __init__(self, graph: Graph, name: str, tip: bytes, state: str) -> None:
        super().__init__(graph, tip)
        self.name = name
        self.label = graph.label(name)
        self.state = state
        self.owner = graph.owner_of(name)  # the other machine that the branch belongs to, if any
        self.fork = graph.fork_of(name)  # the deepest node that the branch shares with another branch
        self.fork_turn = graph.turn_of(self.fork) if self.fork else None
        self.own = 0  # turns after `fork`
        self.created = self.seconds  # time of the first node after `fork`
        for node in graph.upwards(tip):
            if node.oid == self.fork:
                break
            self.own += node.turn is not None
            self.created = node.seconds
        self.pinned = checkpoints_on(graph, name)  # checkpoints on its own part: these keep the branch listed


def checkpoints_on(graph: Graph, branch: str) -> list[str]:
    """Return the checkpoints on the part of a branch that is its own."""
    found: list[str] = []
    if not graph.pinned:
        return found
    end = graph.fork_of(branch)
    for node in graph.upwards(graph.branches.get(branch) or graph.archived[branch]):
        if node.oid == end:
            break
        found += graph.pinned.get(node.oid, ())
    return found[::-1]
