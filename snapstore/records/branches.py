"""What is said of branches and checkpoints: trees, lists, comparisons."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from snapstore.records.base import Change, PathRecord, Record, Text


class LeafRecord(Record):
    """The end of a line: how many turns it has, and what was last asked for on it."""

    seq: int
    commit: str
    turns: int
    ended_at: Text
    age_seconds: int
    prompt: Text
    checkpoints: list[Text]


class BranchRecord(LeafRecord):
    """A branch with its tip. `parted_at` is the last turn that it shares with another branch, null when it is alone."""

    name: Text
    label: Text
    state: Literal["current", "listed", "archived"]
    own_turns: int
    parted_at: int | None
    parted_commit: str | None
    created_at: Text
    pinned_by: list[Text] = Field(description="checkpoints on its own part: it is not archived by itself")
    machine: Text | None = Field(default=None, description="the machine that it is of, null for our own")
    person: Text | None = None


class TreeNodeRecord(Record):
    """A node as its commit alone tells it, so that ten thousand cost little; `show` gives the rest. The prompt is its
    first line."""

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


class TreeRecord(Record):
    """Nodes in the order they were made: each after its parent. `cursor` is a commit, `branch` the one stood on."""

    session: Text
    cursor: str
    branch: Text
    machine: Text | None = None
    person: Text | None = None
    nodes: list[TreeNodeRecord]
    branches: list[BranchRecord]


class UndolistLeafRecord(LeafRecord):
    """`branch` is null, and the state `pinned`, where only a checkpoint holds the leaf."""

    branch: Text | None
    label: Text
    state: Literal["current", "listed", "archived", "pinned"]


class UndolistRecord(Record):
    """Every leaf of the session's tree, oldest first."""

    session: Text
    cursor: str
    leaves: list[UndolistLeafRecord]


class BranchesRecord(Record):
    """The current one first, then by last use, then the archive."""

    session: Text
    branches: list[BranchRecord]
    listed: int
    archived: int
    max_branches: int


class DeletePreviewRecord(Record):
    session: Text
    deleting: list[BranchRecord]
    kept: list[BranchRecord]
    preview: Literal[True]


class ChangeRecord(Record):
    """A change of branches or checkpoints. Without an operation nothing had to be done."""

    session: Text
    what: Text
    operation: int | None
    refs: list[list[Text | None]]
    branch: Text
    commit: str
    notes: list[Text]


class CheckpointRecord(Record):
    name: Text
    seq: int
    turn: int
    commit: str
    branch: Text | None
    ended_at: Text
    prompt: Text


class CheckpointsRecord(Record):
    """Oldest turn first."""

    session: Text
    checkpoints: list[CheckpointRecord]


class PartedRecord(Record):
    """The last node that two lines share."""

    turn: int
    seq: int
    commit: str
    kind: Text
    ended_at: Text
    prompt: Text


class ComparedTurnRecord(Record):
    turn: int
    seq: int
    commit: str
    kind: Text
    prompt: Text


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


class ComparedChangeRecord(Record):
    change: Change
    added: int | None
    removed: int | None
    binary: bool
    large: bool
    blob: str | None


class ComparedFileRecord(PathRecord):
    """What each side did to a file, null for nothing."""

    a: ComparedChangeRecord | None
    b: ComparedChangeRecord | None
    outcome: Literal["only a", "only b", "same", "different"]


class CompareRecord(Record):
    session: Text
    parted_at: PartedRecord
    a: ComparedSideRecord
    b: ComparedSideRecord
    files: list[ComparedFileRecord]
    patch: Text | None = Field(default=None, description="from A's files to B's; with --patch")
    patch_b64: str | None = None
