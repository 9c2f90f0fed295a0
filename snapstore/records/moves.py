"""What is said of moves, operations and recovery."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from snapstore.records.base import PathRecord, Record, Text
from snapstore.records.nodes import NodeRecord


class ConflictRecord(PathRecord):
    """A file that held something else than the turns had left in it. States read `missing`, or `file 5f3a…`."""

    expected: str
    found: str
    wanted: str
    changed_by: Text
    settled_by: Literal["merge", "markers", "force", "skip"] | None
    why: Text | None


class ForkRecord(Record):
    """A conversation that goes on from an earlier turn, and the command that takes it up."""

    event: str | None
    agent: Text
    id: Text | None
    alias: Text | None
    title: Text | None
    parentSessionId: Text
    rewindFromTurn: int
    rewindedAt: Text | None
    created: Text | None
    fresh: bool
    path: Text | None
    command: list[Text]
    notices: list[Text]


class MoveRecord(Record):
    """What a move did; with `preview` what it would do."""

    move: str
    from_: NodeRecord = Field(alias="from")
    to: NodeRecord
    turn: int
    branch: Text
    turns_undone: int
    turns_redone: int
    messages_removed: int
    files_reverted: list[Text]
    snapshot_restored: str | None
    written: list[Text]
    removed: list[Text]
    kept: list[Text]
    skipped: list[Text]
    conflicts: list[ConflictRecord]
    safety_ref: Text | None
    prompt: Text | None
    paths_b64: dict[Text, str]
    notes: list[Text]
    preview: bool
    operation: int | None = Field(default=None, description="its number in `ops`")
    safety: str | None = Field(default=None, description="the commit of what was on disk")
    pending_fork: bool = Field(default=False, description="the agent's conversation now holds undone turns")
    fork: ForkRecord | None = None


class OperationRecord(Record):
    """One move or branch change. Refs and files as [name, old, new]."""

    op: int
    session: Text
    kind: str
    at: Text
    what: Text
    from_: dict[str, Any] | None = Field(alias="from")
    to: dict[str, Any] | None
    arguments: list[Text]
    refs: list[list[Text | None]]
    files: list[list[Text | None]]
    safety_ref: Text | None
    undoes: list[int]
    undone_by: int | None


class OperationsRecord(Record):
    """Newest first."""

    operations: list[OperationRecord]


class RecoveryFileRecord(PathRecord):
    old: str | None
    new: str | None


class RecoveryRefRecord(Record):
    ref: Text
    old: Text | None
    new: Text | None


class RecoveryRecord(Record):
    """A change that was cut short, and how it ended if it was asked to end."""

    pending: bool
    what: Text | None
    files: list[RecoveryFileRecord]
    refs: list[RecoveryRefRecord]
    obstacles: list[Text]
    ended: Literal["finished", "taken back"] | None
    kept: list[Text]
