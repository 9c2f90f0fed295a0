"""Records of branches and checkpoints: trees, lists, comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import Field

from snapstore.api import Session
from snapstore.base.text import timestamp
from snapstore.store.owners import owner_fields
from snapstore.surface.records.base import Change, PathRecord, Record, Text, patch_fields
from snapstore.surface.records.moves import ref_rows
from snapstore.timeline.history.branch import Branch, Leaf
from snapstore.timeline.history.graph import Graph, GraphNode
from snapstore.timeline.history.nodes import FileChange, path_json
from snapstore.timeline.history.operations import Operation

if TYPE_CHECKING:
    from snapstore.surface.undo_list import End
    from snapstore.timeline.history.compare import Comparison, Side
State = Literal["current", "listed", "archived"]
Outcome = Literal["only a", "only b", "same", "different"]


class LeafRecord(Record):
    """The end of a line, with the number of turns and the last prompt."""

    seq: int
    commit: str
    turns: int
    ended_at: Text
    age_seconds: int
    prompt: Text
    checkpoints: list[Text]

    @classmethod
    def of_leaf(cls, leaf: Leaf, now: float) -> LeafRecord:
        return LeafRecord(
            seq=leaf.seq,
            commit=leaf.tip.hex(),
            turns=leaf.turns,
            ended_at=timestamp(leaf.seconds),
            age_seconds=max(0, int(now - leaf.seconds)),
            prompt=leaf.prompt,
            checkpoints=leaf.checkpoints,
        )


class BranchRecord(LeafRecord):
    """A branch. `parted_at` is the last turn that it shares with another branch, null if there is no other."""

    name: Text
    label: Text
    state: State
    own_turns: int
    parted_at: int | None
    parted_commit: str | None
    created_at: Text
    pinned_by: list[Text] = Field(
        description="checkpoints on its own part: a branch with one is not archived automatically"
    )
    machine: Text | None = Field(default=None, description="the machine that owns the branch, null for this one")
    person: Text | None = None

    @classmethod
    def of(cls, branch: Branch, now: float) -> Self:
        return cls(
            **dict(cls.of_leaf(branch, now)),
            name=branch.name,
            label=branch.label,
            state=cast("State", branch.state),
            own_turns=branch.own,
            parted_at=branch.fork_turn,
            parted_commit=branch.fork.hex() if branch.fork is not None else None,
            created_at=timestamp(branch.created),
            pinned_by=branch.pinned,
            **owner_fields(branch.owner),
        )


class TreeNodeRecord(Record):
    """A node, described from its commit alone, because a tree may have ten thousand nodes.

    `prompt` is the first line of the prompt. `show` prints the rest.
    """

    seq: int
    turn: int | None
    commit: str
    tree: str
    parent: str | None
    kind: Text
    session: Text
    branch: Text
    label: Text
    prompt: Text
    agent: Text
    ended_at: Text
    undone: bool
    checkpoints: list[Text]

    @classmethod
    def of(cls, graph: Graph, node: GraphNode, ended_at: str, *, undone: bool) -> Self:
        turn = node.turn
        return cls(
            seq=node.seq,
            turn=turn,
            commit=node.oid.hex(),
            tree=node.tree.hex(),
            parent=node.parent.hex() if node.parent else None,
            kind=node.kind,
            session=graph.session,
            branch=graph.branch_of(node.oid) or "",
            label=f"Turn {turn}" if turn is not None else node.kind.capitalize(),
            prompt=node.subject if turn is not None else "",
            agent=node.agent,
            ended_at=ended_at,
            undone=undone,
            checkpoints=graph.pinned.get(node.oid, []),
        )


class TreeRecord(Record):
    """A tree with its nodes, oldest first. `cursor` is a commit, `branch` the current branch."""

    session: Text
    cursor: str
    branch: Text
    machine: Text | None = None
    person: Text | None = None
    nodes: list[TreeNodeRecord]
    branches: list[BranchRecord]

    @classmethod
    def of(cls, graph: Graph, branches: Iterable[Branch], now: float) -> TreeRecord:
        """Describe a tree without its nodes.

        `surface/tree_document` adds the nodes one by one, because there may be very many.
        """
        return TreeRecord(
            session=graph.session,
            cursor=graph.cursor.hex(),
            branch=graph.branch,
            nodes=[],
            branches=[BranchRecord.of(branch, now) for branch in branches],
            **owner_fields(graph.owner),
        )


class UndolistLeafRecord(LeafRecord):
    """One leaf. If only a checkpoint holds it, `branch` is null and the state is `pinned`."""

    branch: Text | None
    label: Text
    state: Literal["current", "listed", "archived", "pinned"]

    @classmethod
    def of(cls, end: End, now: float) -> Self:
        state = cast("Literal['current', 'listed', 'archived', 'pinned']", end.state)
        return cls(**dict(cls.of_leaf(end.leaf, now)), branch=end.branch, label=end.label, state=state)


class UndolistRecord(Record):
    """Every leaf of a session's tree, oldest first."""

    session: Text
    cursor: str
    leaves: list[UndolistLeafRecord]

    @classmethod
    def of(cls, graph: Graph, ends: Iterable[End], now: float) -> Self:
        leaves = [UndolistLeafRecord.of(end, now) for end in ends]
        return cls(session=graph.session, cursor=graph.cursor.hex(), leaves=leaves)


class BranchesRecord(Record):
    """The branches of a session: the current one, the others by last use, then the archive."""

    session: Text
    branches: list[BranchRecord]
    listed: int
    archived: int
    max_branches: int

    @classmethod
    def of(cls, session: Session, shown: Iterable[Branch], *, listed: int, archived: int, now: float) -> Self:
        return cls(
            session=session.name,
            branches=[BranchRecord.of(branch, now) for branch in shown],
            listed=listed,
            archived=archived,
            max_branches=session.store.header.max_branches,
        )


class DeletePreviewRecord(Record):
    session: Text
    deleting: list[BranchRecord]
    kept: list[BranchRecord]
    preview: Literal[True]

    @classmethod
    def of(cls, session: Session, going: Iterable[Branch], staying: Iterable[Branch], now: float) -> Self:
        return cls(
            session=session.name,
            deleting=[BranchRecord.of(branch, now) for branch in going],
            kept=[BranchRecord.of(branch, now) for branch in staying],
            preview=True,
        )


class ChangeRecord(Record):
    """A change of branches or checkpoints. Without an operation there was nothing to do."""

    session: Text
    what: Text
    operation: int | None
    refs: list[list[Text | None]]
    branch: Text
    commit: str
    notes: list[Text]

    @classmethod
    def of(cls, session: Session, operation: Operation | None, what: str, notes: Iterable[str] = ()) -> Self:
        """Describe a change by its operation, with the session's current position."""
        graph = Graph(session.store, session.name)
        return cls(
            session=session.name,
            what=what,
            operation=operation.number if operation is not None else None,
            refs=ref_rows(operation) if operation is not None else [],
            branch=graph.branch,
            commit=graph.cursor.hex(),
            notes=list(notes),
        )


class CheckpointRecord(Record):
    name: Text
    seq: int
    turn: int
    commit: str
    branch: Text | None
    ended_at: Text
    prompt: Text

    @classmethod
    def of(cls, graph: Graph, name: str, leaf: Leaf) -> Self:
        return cls(
            name=name,
            seq=leaf.seq,
            turn=leaf.turns,
            commit=leaf.tip.hex(),
            branch=graph.branch_of(leaf.tip),
            ended_at=timestamp(leaf.seconds),
            prompt=leaf.prompt,
        )


class CheckpointsRecord(Record):
    """The checkpoints of a session, oldest turn first."""

    session: Text
    checkpoints: list[CheckpointRecord]

    @classmethod
    def of(cls, graph: Graph, checkpoints: Iterable[tuple[str, Leaf]]) -> Self:
        records = [CheckpointRecord.of(graph, name, leaf) for name, leaf in checkpoints]
        return cls(session=graph.session, checkpoints=records)


class ForkPointRecord(Record):
    """The last node that two lines share."""

    turn: int
    seq: int
    commit: str
    kind: Text
    ended_at: Text
    prompt: Text

    @classmethod
    def of(cls, found: Comparison) -> Self:
        fork = found.fork
        return cls(
            turn=found.fork_turn,
            seq=fork.seq,
            commit=fork.oid.hex(),
            kind=fork.kind,
            ended_at=timestamp(fork.seconds),
            prompt=found.fork_prompt,
        )


class ComparedTurnRecord(Record):
    turn: int
    seq: int
    commit: str
    kind: Text
    prompt: Text

    @classmethod
    def of(cls, node: GraphNode) -> Self:
        return cls(turn=node.turn or 0, seq=node.seq, commit=node.oid.hex(), kind=node.kind, prompt=node.subject)


class ComparedSideRecord(Record):
    address: Text
    branch: Text
    commit: str
    turn: int
    ended_at: Text
    turns_since: list[ComparedTurnRecord]
    files_changed: int
    added: int
    removed: int
    prompt: Text
    last_message: Text

    @classmethod
    def of(cls, side: Side) -> Self:
        added, removed = side.counted()
        return cls(
            address=side.address,
            branch=side.branch,
            commit=side.oid.hex(),
            turn=side.turn,
            ended_at=timestamp(side.seconds),
            turns_since=[ComparedTurnRecord.of(node) for node in side.turns],
            files_changed=len(side.changes),
            added=added,
            removed=removed,
            prompt=side.prompt,
            last_message=side.message,
        )


class ComparedChangeRecord(Record):
    change: Change
    added: int | None
    removed: int | None
    binary: bool
    large: bool
    blob: str | None

    @classmethod
    def of(cls, change: FileChange) -> Self:
        return cls(
            change=cast("Change", change.change),
            added=change.added,
            removed=change.removed,
            binary=change.binary,
            large=change.large,
            blob=change.new[1].hex() if change.new is not None else None,
        )


class ComparedFileRecord(PathRecord):
    """The change of a file on each side, null if a side did not change the file."""

    a: ComparedChangeRecord | None
    b: ComparedChangeRecord | None
    outcome: Outcome

    @classmethod
    def of(cls, path: bytes, a: FileChange | None, b: FileChange | None, outcome: str) -> Self:
        return cls(
            **path_json(path),
            a=ComparedChangeRecord.of(a) if a is not None else None,
            b=ComparedChangeRecord.of(b) if b is not None else None,
            outcome=cast("Outcome", outcome),
        )


class CompareRecord(Record):
    session: Text
    parted_at: ForkPointRecord
    a: ComparedSideRecord
    b: ComparedSideRecord
    files: list[ComparedFileRecord]
    patch: Text | None = Field(default=None, description="from A's files to B's; with --patch")
    patch_b64: str | None = None

    @classmethod
    def of(cls, found: Comparison, patch: Iterable[bytes] | None = None) -> Self:
        """Describe a comparison, with a patch if one was requested."""
        more: dict[str, Any] = dict(patch_fields(patch)) if patch is not None else {}
        return cls(
            session=found.session,
            parted_at=ForkPointRecord.of(found),
            a=ComparedSideRecord.of(found.a),
            b=ComparedSideRecord.of(found.b),
            files=[ComparedFileRecord.of(*row) for row in found.rows()],
            **more,
        )
