"""Order a fork's lines so that each tool call is followed by its result.

The results of parallel tools, and further calls of the same answer, are often not on the chain of lines. Both are moved
onto the chain. A call whose result was never written gets a result that says so. Results without a call are dropped.
"""

from __future__ import annotations

import uuid

from snapstore.transcripts.outline import get, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from snapstore.transcripts.lines import Ref


class TranscriptLine:
    """One line of the conversation's tree, without its text."""

    __slots__ = (
        "answers",
        "bare",
        "boundary",
        "calls",
        "depth",
        "dropped",
        "kind",
        "message",
        "order",
        "parent",
        "prompt_id",
        "ref",
        "said",
        "segment",
        "uuid",
    )

    def __init__(self, uuid: str, ref: Ref, order: int, record: dict[str, Any]) -> None:
        self.uuid = uuid
        self.ref = ref
        self.order = order
        self.kind = string(record, "type") or ""
        self.prompt_id = string(record, "promptId")
        self.dropped = bool(record.get("isSidechain") is True or record.get("teamName") or self.kind == "progress")
        self.boundary = record.get("subtype") == "compact_boundary" and not string(record, "parentUuid")
        self.message = string(record, "message", "id") if self.kind == "assistant" else None
        self.calls = _ids(record, "tool_use", "id") if self.kind == "assistant" else ()
        self.answers = _ids(record, "tool_result", "tool_use_id") if self.kind == "user" else ()
        self.bare = bool(self.answers) and len(self.answers) == len(record["message"]["content"])
        # The same for lines of one answer that were written twice.
        self.said = hash(str(get(record, "message", "content"))) if self.message and not self.calls else 0
        self.segment: tuple[str | None, str | None] | None = None
        if record.get("subtype") == "compact_boundary":
            kept = get(record, "compactMetadata", "preservedSegment")
            self.segment = string(kept, "anchorUuid"), string(kept, "tailUuid")
        self.parent: TranscriptLine | None = None
        self.depth = (0, 0)  # number of messages, and of all lines, down to here


class Piece:
    """One line of the fork.

    The line is that of `node`; if `answers` is set, only those results are kept in it. With `call`, the line is a
    made-up result of that call of `node`, with the block taken from the line `source` if there is one.
    """

    __slots__ = ("answers", "call", "node", "parent", "source", "uuid")

    def __init__(self, node: TranscriptLine, answers: set[str] | None = None) -> None:
        self.node = node
        self.answers = answers
        self.uuid = node.uuid
        self.parent: str | None = None
        self.call: str | None = None
        self.source: TranscriptLine | None = None


class ChainOrder:
    """Puts each result after its call, one stretch of the chain at a time."""

    def __init__(self, lines: list[TranscriptLine], chain: list[TranscriptLine], new_id: str) -> None:
        self.new_id = new_id
        on_chain = {node.uuid for node in chain}
        self.written: set[str] = set()
        self.answering: dict[str, list[TranscriptLine]] = {}
        self.off_chain: dict[str, list[TranscriptLine]] = {}  # lines of an answer that lie off the chain
        self.last_of: dict[str, TranscriptLine] = {node.message: node for node in chain if node.message is not None}
        for node in lines:
            if node.dropped:
                continue
            for id in node.answers:
                self.answering.setdefault(id, []).append(node)
            if node.message in self.last_of and node.uuid not in on_chain:
                self.off_chain.setdefault(node.message or "", []).append(node)

    def arranged(self, stretch: list[TranscriptLine]) -> Iterator[Piece]:
        called: set[str] = set()  # the calls so far
        waiting: set[str] = set()  # the calls of the last answer that still need results
        at = 0
        while at < len(stretch):
            node = stretch[at]
            at += 1
            if node.kind == "assistant":
                run = _run(stretch, at - 1)
                at += len(run) - 1
                members = self._whole(run, called)
                waiting = {id for each in members for id in each.calls}
                yield from (Piece(each) for each in members)
                yield from self._fetched(members, waiting, self._behind(stretch, at))
            elif not node.answers:
                yield Piece(node)
            elif node.uuid not in self.written:
                yield from self._answer(node, waiting)

    def _answer(self, node: TranscriptLine, waiting: set[str]) -> Iterator[Piece]:
        """Yield a line with the results that are needed and its other content."""
        self.written.add(node.uuid)
        piece = Piece(node, waiting.intersection(node.answers))
        if piece.answers or not node.bare:
            waiting.difference_update(node.answers)
            yield piece

    def _behind(self, stretch: list[TranscriptLine], at: int) -> set[str]:
        """Return the calls whose results already follow, before the next message."""
        found: set[str] = set()
        for place in range(at, len(stretch)):
            node = stretch[place]
            if node.kind == "assistant" or (node.kind == "user" and not node.answers):
                break
            if node.uuid not in self.written:
                found.update(node.answers)
        return found

    def _whole(self, run: list[TranscriptLine], calls: set[str]) -> list[TranscriptLine]:
        """Return an answer with its lines from off the chain and without duplicates.

        `calls` are the calls so far; those of this answer are added.
        """
        said = {node.said for node in run if node.message and not node.calls}
        found = []
        for node in run:
            if not node.calls or not calls.issuperset(node.calls):
                found.append(node)
                calls.update(node.calls)
        message = run[0].message
        if message is not None and self.last_of[message] in run:
            for node in self.off_chain.pop(message, ()):
                if calls.isdisjoint(node.calls) if node.calls else node.said not in said:
                    found.append(node)
                    calls.update(node.calls)
                    said.add(node.said)
        return found

    def _fetched(self, members: list[TranscriptLine], waiting: set[str], behind: set[str]) -> Iterator[Piece]:
        """Yield the results that do not already follow their calls.

        A result comes from further down the chain or from off the chain; otherwise it is made up.
        """
        missing = {id: node for node in members for id in node.calls if id not in behind}
        found: dict[int, TranscriptLine] = {}
        for id in missing:
            node = next((node for node in self.answering.get(id, ()) if node.uuid not in self.written), None)
            if node is not None:
                found[node.order] = node
        for _, node in sorted(found.items()):
            yield from self._answer(node, waiting)
        for id, call in missing.items():
            if id in waiting:
                waiting.discard(id)
                piece = Piece(call)
                piece.call = id
                piece.source = next(iter(self.answering.get(id, ())), None)
                piece.uuid = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.new_id}/{call.uuid}/{id}"))
                yield piece


def _run(stretch: list[TranscriptLine], at: int) -> list[TranscriptLine]:
    """Return the lines of one answer from a position on.

    Lines that the agent wrote in between, other than messages, are included.
    """
    message = stretch[at].message
    end = at + 1
    for place in range(at + 1, len(stretch)):
        node = stretch[place]
        if node.kind == "assistant" and node.message is not None and node.message == message:
            end = place + 1
        elif node.kind in ("assistant", "user"):
            break
    return stretch[at:end]


def _ids(record: dict[str, Any], type: str, name: str) -> tuple[str, ...]:
    content = get(record, "message", "content")
    if not isinstance(content, list):
        return ()
    return tuple(id for block in content if get(block, "type") == type and (id := string(block, name)))
