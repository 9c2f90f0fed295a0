"""One line of turns, as lists show it."""

from __future__ import annotations

from snapstore.timeline.documents import timestamp
from snapstore.timeline.limit import pins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.timeline.graph import Graph

CURRENT, LISTED, ARCHIVED = "current", "listed", "archived"


class Branch:
    """One line of turns, as a list shows it."""

    __slots__ = (
        "checkpoints",
        "created",
        "label",
        "name",
        "own",
        "parted",
        "parted_turn",
        "pinned",
        "prompt",
        "seconds",
        "seq",
        "state",
        "tip",
        "turns",
    )

    def __init__(self, graph: Graph, name: str, tip: bytes, state: str) -> None:
        end = graph.node(tip)
        self.name = name
        self.label = graph.label(name)
        self.state = state
        self.tip = tip
        self.seq = end.seq
        self.parted = graph.parted(name)  # the deepest node that it shares with another branch
        self.parted_turn = graph.turn_of(self.parted) if self.parted else None
        self.turns = graph.turn_of(tip)
        self.own = 0  # turns since it parted
        self.seconds = self.created = end.seconds  # of the last node, and of the first of its own
        for node in graph.upwards(tip):
            if node.oid == self.parted:
                break
            self.own += node.turn is not None
            self.created = node.seconds
        self.prompt = next((node.subject for node in graph.upwards(tip) if node.turn is not None), "")
        self.checkpoints = list(graph.pinned.get(tip, ()))  # at its tip
        self.pinned = pins(graph, name)  # on its own part: these keep it in the list

    def as_json(self, now: float) -> dict[str, Any]:
        return {
            "name": self.name,
            "label": self.label,
            "state": self.state,
            "seq": self.seq,
            "commit": self.tip.hex(),
            "turns": self.turns,
            "own_turns": self.own,
            "parted_at": self.parted_turn,
            "parted_commit": self.parted and self.parted.hex(),
            "created_at": timestamp(self.created),
            "ended_at": timestamp(self.seconds),
            "age_seconds": max(0, int(now - self.seconds)),
            "prompt": self.prompt,
            "checkpoints": self.checkpoints,
            "pinned_by": self.pinned,
        }
