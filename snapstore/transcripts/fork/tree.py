"""Select the lines of a Claude Code conversation that a fork keeps (S4-02).

The lines are the chain from the last line of a turn up to its root, through compactions, plus the lines that belong on
the chain.
"""

from __future__ import annotations

from itertools import pairwise

from snapstore.errors import Unknown
from snapstore.transcripts.fork.chain import ChainOrder, Piece, TranscriptLine
from snapstore.transcripts.outline import string
from snapstore.transcripts.readers.claude import ClaudeOutline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.outline import Span


class Cut:
    """The lines of a fork, its turns, and whether the fork ends before a compaction."""

    __slots__ = ("compacted", "pieces", "turns")

    def __init__(self, pieces: list[Piece], turns: list[Span], compacted: bool) -> None:
        self.pieces = pieces
        self.turns = turns
        self.compacted = compacted

    def places(self) -> list[tuple[Ref, str, str | None]]:
        """Return the identity of the lines, equal for readings that make the same fork."""
        return [(piece.node.ref, piece.uuid, piece.parent) for piece in self.pieces]


class ForkTree(ClaudeOutline):
    """The outline of a conversation, with the details of each line that a fork needs."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[str, TranscriptLine] = {}
        self.lines: list[TranscriptLine] = []
        self.summaries: list[tuple[Ref, str]] = []
        self.replacements: list[Any] = []
        self.unknown_kinds: set[str] = set()  # unknown types of lines that have no place in the tree
        self._last: TranscriptLine | None = None  # the last line of the conversation itself

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        id = string(record, "uuid")
        unknown = self.unknown
        super().feed(ref, record)
        if id is None or id in self.nodes:
            self._feed_outside(ref, record, self.unknown > unknown)
            return
        node = TranscriptLine(id, ref, len(self.lines), record)
        above = string(record, "parentUuid") or (string(record, "logicalParentUuid") if node.boundary else None)
        if node.dropped and node.kind != "progress":
            node.parent = self.lines[-1] if self.lines else None  # a subagent's own tree leads nowhere
        elif above is not None:
            # If the named parent is missing, the line follows the line before it, as in the outline.
            node.parent = self.nodes.get(above, self._last)
        if node.parent is not None:
            node.depth = node.parent.depth
        if not node.dropped:
            node.depth = (node.depth[0] + (node.kind in ("user", "assistant")), node.depth[1] + 1)
            self._last = node
        self.nodes[id] = node
        self.lines.append(node)

    def _feed_outside(self, ref: Ref, record: dict[str, Any], unknown: bool) -> None:
        kind = record.get("type")
        leaf = string(record, "leafUuid")
        replaced = record.get("replacements")
        if kind == "summary" and leaf is not None:
            self.summaries.append((ref, leaf))
        elif kind == "content-replacement" and isinstance(replaced, list) and not record.get("agentId"):
            self.replacements.extend(replaced)
        elif unknown:
            self.unknown_kinds.add(str(kind)[:40])

    def fork(self, up_to: str | None, new_id: str) -> Cut:
        """Return the fork after the turn that a line's uuid or a prompt id names.

        With None, the fork ends at the end of the conversation's current line.
        """
        line = self.line()
        turns = [*(span for _, spans in self.branches() for span in spans), *line]
        places = {ref: span for span in turns for ref in span.refs}
        turn = self._turn(up_to, places) if up_to is not None else (line[-1] if line else None)
        own = [node for node in self.lines if not node.dropped and places.get(node.ref) is turn]
        if turn is None or not own:
            raise Unknown("there is nothing in the conversation to fork", "Start a new session instead.")
        pieces = self._linked(_upwards(max(own, key=lambda node: (node.depth, node.order))), new_id)
        kept = {piece.uuid for piece in pieces}
        compactions = [node for node in self.lines if node.segment is not None and node.uuid not in kept]
        compacted = any(turn in _lineage(places.get(node.ref))[:-1] for node in compactions)
        return Cut(pieces, [span for span in _lineage(turn) if span.prompted], compacted)

    def _turn(self, up_to: str, places: dict[Ref, Span]) -> Span:
        node = self.nodes.get(up_to)
        named = [node] if node is not None else [node for node in self.lines if node.prompt_id == up_to]
        for node in named:
            if node.ref in places:
                return places[node.ref]
        raise Unknown(
            f"the conversation has no turn {up_to[:80]!r}", "It may have been rewritten; fork the whole conversation."
        )

    # The order of the lines.

    def _linked(self, chain: list[TranscriptLine], new_id: str) -> list[Piece]:
        """Return the pieces with their parents.

        A compaction starts a chain of its own, as the agent wrote it.
        """
        arranging = ChainOrder(self.lines, chain, new_id)
        pieces: list[Piece] = []
        start = 0
        for end in range(1, len(chain) + 1):
            if end == len(chain) or chain[end].boundary:
                above: str | None = None
                for piece in arranging.arranged(chain[start:end]):
                    piece.parent, above = above, piece.uuid
                    pieces.append(piece)
                start = end
        for node in self.lines:
            if node.segment is not None and node.segment[1] is not None:
                self._add_preserved(node, pieces)
        return pieces

    def _add_preserved(self, boundary: TranscriptLine, pieces: list[Piece]) -> None:
        """Add the boundary and the summary of a compaction that preserves lines.

        Such a compaction leaves the last lines where they are and continues from them. Its boundary and its summary lie
        off the chain, and the agent finds both by their ids.
        """
        anchor, tail = boundary.segment or (None, None)
        places = {piece.uuid: at for at, piece in enumerate(pieces, 1)}
        if tail not in places or boundary.uuid in places:
            return
        at = places[tail]
        if not any(piece.node.order > boundary.order for piece in pieces[at:]):
            return  # the fork ends before the compaction
        summary = [node for node in _upwards(self.nodes.get(anchor or "")) if node.order >= boundary.order]
        aside = [Piece(node) for node in summary if node.uuid not in places]
        for above, piece in pairwise(aside):
            piece.parent = above.uuid
        pieces[at:at] = aside


def _upwards(node: TranscriptLine | None) -> list[TranscriptLine]:
    """Return the chain from the root to a node.

    A parent is always an earlier line, so there are no cycles.
    """
    found = []
    while node is not None:
        if not node.dropped:
            found.append(node)
        node = node.parent
    return found[::-1]


def _lineage(span: Span | None) -> list[Span]:
    """Return the turns from the first to this one."""
    found = []
    while span is not None:
        found.append(span)
        span = span.parent
    return found[::-1]
