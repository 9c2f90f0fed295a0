"""Requests of the page, and the responses that only the page receives.

Requests are strict: with a misspelt field ignored, an undo would become a different undo.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from snapstore.agents.capabilities import capability
from snapstore.api import Store
from snapstore.git.diff.patch_lines import Kind as DiffKind
from snapstore.git.diff.patch_lines import walk
from snapstore.surface.describe import listed
from snapstore.surface.records.agents import CapabilityRecord, SessionRecord
from snapstore.surface.records.base import PathRecord, Record, Text, patch_fields
from snapstore.surface.records.branches import TreeRecord
from snapstore.surface.records.keeping import UseRecord
from snapstore.surface.records.nodes import FileRecord, NodeRecord, RenameRecord, agent_ids
from snapstore.timeline.history.branch import Branch
from snapstore.timeline.history.graph import Graph, GraphNode
from snapstore.timeline.history.nodes import FileChange, Node, path_json

if TYPE_CHECKING:
    from snapstore.surface.stats import Stats
    from snapstore.timeline.history.agent_sessions import SessionLine
    from snapstore.timeline.history.search import Hit
    from snapstore.timeline.moves.three_way import ThreeWay

Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$", description="the cursor's commit, as last seen")]
Address = Annotated[Text, Field(description="`5`, `#12`, a branch, a checkpoint, `name:5`, `@` or a commit")]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
MoveKind = Literal["undo", "redo", "goto", "switch", "revert", "apply", "restore"]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Expecting(Request):
    """A requested change, refused as stale if the session has moved meanwhile."""

    expected: Commit


class MoveRequest(Request):
    move: MoveKind
    expected: Commit | None = Field(default=None, description="optional for a preview")
    to: Commit | None = Field(
        default=None, description="the target that a preview showed; with another one the move is refused as stale"
    )
    branch: Text | None = Field(default=None, description="the branch that a preview showed, likewise")
    count: Count | None = Field(default=None, description="for undo and redo; default 1")
    all: bool = Field(default=False, description="for redo: all undone turns")
    address: Address | None = None
    paths: list[Text] = Field(default=[], max_length=10_000, description="for restore: paths below the root")
    scope: Literal["both", "files", "conversation"] = "both"
    exact: bool = False
    on_conflict: Literal["refuse", "merge", "markers", "force", "skip"] | None = Field(
        default=None, description="left out: merge where that is clean, but restore whole files only"
    )
    ours: list[Text] = Field(default=[], max_length=10_000, description="conflicting files to keep")
    theirs: list[Text] = Field(default=[], max_length=10_000, description="conflicting files to overwrite")
    merge: list[Text] = Field(default=[], max_length=10_000, description="conflicting files to merge")
    markers: list[Text] = Field(
        default=[], max_length=10_000, description="conflicting files to merge, with conflict markers if needed"
    )
    seen: dict[Text, Text] = Field(
        default={},
        max_length=10_000,
        description="the `found` state of each conflicting file when it was chosen; if changed, the move is refused",
    )


class MergeRequest(MoveRequest):
    path: Text


class PageSessionsRecord(Record):
    root: Text
    active: Text
    sessions: list[SessionRecord]
    agents: dict[Text, CapabilityRecord]

    @classmethod
    def of(cls, store: Store, lines: list[SessionLine]) -> Self:
        """List the sessions of a store, with the capabilities of the agents in them."""
        active = store.active_session()
        agents = {line.agent for line in lines} | {one.known.agent for line in lines for one in line.conversations}
        return cls(
            root=os.fsdecode(store.root),
            active=active,
            sessions=[SessionRecord.of(line, active) for line in lines],
            agents={agent: CapabilityRecord.of(capability(agent)) for agent in sorted(agents) if agent},
        )


class PageTreeRecord(TreeRecord):
    expected: str = Field(description="to be sent with requests for changes")
    tip: str = Field(description="where the shown line ends; a branch may go on with another agent session's turns")
    turn: int = Field(description="the number of the last turn at or before the cursor")
    max_branches: int = Field(
        description="the limit of listed branches, above which the oldest is archived; 0: no limit"
    )
    warn_branches: int = Field(description="warn at this many listed branches; 0: never")

    @classmethod
    def for_page(cls, graph: Graph, branches: Iterable[Branch], store: Store) -> Self:
        """Describe a tree without its nodes, plus what the page needs to request changes."""
        return cls(
            **dict(TreeRecord.of(graph, branches, store.clock())),
            expected=graph.here.hex(),
            tip=graph.tip.hex(),
            turn=graph.turn_of(graph.cursor),
            max_branches=store.header.max_branches,
            warn_branches=store.header.warn_branches,
        )


class PageNodeRecord(NodeRecord):
    """A node with its conversation, but without its patch and its raw lines."""

    replies: list[Any]
    thinking: list[Any]
    tool_calls: list[Any]
    conversation: dict[str, Any] | None
    unknown: list[Any]

    @classmethod
    def with_talk(cls, node: Node) -> Self:
        return cls(
            **dict(NodeRecord.of(node)),
            replies=listed(node, "replies"),
            thinking=listed(node, "thinking"),
            tool_calls=listed(node, "tool_calls"),
            conversation=agent_ids(node),
            unknown=listed(node, "unknown"),
        )


class CompactionRecord(Record):
    """The last turn after a node that follows a compaction, or nulls."""

    commit: str | None
    turn: int | None

    @classmethod
    def of(cls, node: GraphNode | None) -> Self:
        return cls(commit=node.oid.hex() if node is not None else None, turn=node.turn if node is not None else None)


class PageNodesRecord(Record):
    nodes: list[PageNodeRecord]


class DiffSideRecord(Record):
    oid: str
    size: int
    type: str = Field(description="text, binary, link, image/png, image/jpeg, image/gif or image/webp")
    stored: bool = Field(description="whether /api/blobs has the content; a file that is only on disk has no blob yet")


class PageDiffRecord(Record):
    """A diff: the list of files, or with a path one file, its patch and both sides."""

    session: Text
    a: Text
    b: Text
    files: list[FileRecord] = Field(default=[])
    path: Text | None = None
    path_b64: str | None = None
    change: str | None = Field(default=None, description="A, M, D, T, or R for a renamed file")
    renamed_from: RenameRecord | None = Field(default=None, description="present when the file was renamed to this")
    added: int | None = None
    removed: int | None = None
    binary: bool = False
    large: bool = False
    patch: Text | None = None
    patch_b64: str | None = None
    rows: list[tuple[DiffKind, int | None, int | None, Text]] = Field(
        default=[],
        description="the lines of the patch: kind, line number before, line number after, text without its sign",
    )
    old: DiffSideRecord | None = None
    new: DiffSideRecord | None = None

    @classmethod
    def of_files(cls, session: str, a: str, b: str, files: Iterable[FileChange]) -> Self:
        return cls(session=session, a=a, b=b, files=FileRecord.all_of(files))

    @classmethod
    def of_one(
        cls,
        session: str,
        a: str,
        b: str,
        *,
        change: FileChange,
        patch: list[bytes],
        old: DiffSideRecord | None,
        new: DiffSideRecord | None,
    ) -> Self:
        before = change.renamed_from
        more: dict[str, Any] = {"renamed_from": RenameRecord.of(before, change)} if before is not None else {}
        return cls(
            session=session,
            a=a,
            b=b,
            **path_json(change.path),
            **more,
            change=change.change,
            added=change.added,
            removed=change.removed,
            binary=change.binary,
            large=change.large,
            **patch_fields(patch),
            rows=[(line.kind, line.old, line.new, os.fsdecode(line.text)) for line in walk(patch)],
            old=old,
            new=new,
        )


class HitRecord(Record):
    commit: str
    turn: int | None
    seq: int
    branch: Text | None
    where: Literal["prompt", "path", "reply"]
    text: Text

    @classmethod
    def of(cls, hit: Hit) -> Self:
        node = hit.node
        return cls(
            commit=node.oid.hex(), turn=node.turn, seq=node.seq, branch=hit.branch, where=hit.where, text=hit.text
        )


class SearchRecord(Record):
    """The hits of a search, newest first."""

    hits: list[HitRecord]

    @classmethod
    def of(cls, hits: Iterable[Hit]) -> Self:
        return cls(hits=[HitRecord.of(hit) for hit in hits])


class MergeRecord(PathRecord):
    """The three sides of a file, null if missing or not text. `merged` has markers unless `clean`."""

    base: Text | None
    mine: Text | None
    theirs: Text | None
    merged: Text | None
    clean: bool
    why: Text | None

    @classmethod
    def of(cls, path: bytes, found: ThreeWay) -> Self:
        return cls(
            **path_json(path),
            base=found.base,
            mine=found.mine,
            theirs=found.theirs,
            merged=found.merged,
            clean=found.clean,
            why=found.why,
        )


class StatsRecord(UseRecord):
    refused_moves: int = Field(description="since this server started")

    @classmethod
    def with_refusals(cls, stats: Stats, refused_moves: int) -> Self:
        return cls(**dict(UseRecord.of(stats)), refused_moves=refused_moves)


class RenameRequest(Expecting):
    to: Text


class DeleteRequest(Expecting):
    names: list[Text] = Field(min_length=1, max_length=1000)


class CheckpointRequest(Expecting):
    name: Text
    address: Address = "@"
    force: bool = Field(default=False, description="move an existing checkpoint of this name")


class ForkRequest(Expecting):
    address: Address = "@"
    title: Text | None = None
    compacted: bool = Field(default=False, description="fork even from before a compaction, from the recorded lines")
