"""Records of moves, operations and recovery."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import Field

from snapstore.git.refs import spell
from snapstore.store.journal import Recovery, spell_entry
from snapstore.surface.records.base import PathRecord, Record, Text, path_texts, paths_b64
from snapstore.surface.records.nodes import NodeRecord
from snapstore.timeline.history.nodes import path_json
from snapstore.timeline.history.operations import Operation
from snapstore.timeline.moves.hunks import Hunk
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import (
    CONVERSATION,
    KEPT,
    MARKERS,
    MERGE,
    REMOVE,
    SKIPPED,
    WRITE,
    PathMove,
    state_text,
)

if TYPE_CHECKING:
    from snapstore.agents.fork import ForkResult
Way = Literal["merge", "markers", "force", "skip"]


class ConflictRecord(PathRecord):
    """A file that changed after the turns wrote it. A state is `missing`, or for example `file 5f3a…`."""

    expected: str
    found: str
    wanted: str
    changed_by: Text
    settled_by: Way | None
    why: Text | None

    @classmethod
    def of(cls, move: PathMove) -> Self:
        return cls(
            **path_json(move.path),
            expected=state_text(move.expected),
            found=state_text(move.found),
            wanted=state_text(move.wanted),
            changed_by=move.changed_by,
            settled_by=cast("Way", move.settled) if move.settled else None,
            why=move.why or None,
        )


class HunkRecord(PathRecord):
    """A part of a plan that can be chosen by its id. Without lines it is a change of the whole file."""

    id: str
    start: int = Field(description="the first line on disk, from 1")
    lines: list[Text] = Field(description="each with its sign, as in a patch")

    @classmethod
    def of(cls, hunk: Hunk) -> Self:
        lines = [line.decode("utf-8", "replace").removesuffix("\n") for line in hunk.patch()]
        return cls(**path_json(hunk.path), id=hunk.id, start=hunk.start + 1 if lines else 1, lines=lines)


class ForkRecord(Record):
    """A fork of a conversation at an earlier turn, with the command that resumes it."""

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

    @classmethod
    def of(cls, forked: ForkResult) -> Self:
        known = forked.known
        return cls(
            event="session_created" if known is not None else None,
            agent=forked.agent,
            id=known.id if known else None,
            alias=known.alias if known else None,
            title=known.title if known else None,
            parentSessionId=forked.parent,
            rewindFromTurn=forked.turn,
            rewindedAt=known.forked_at if known else None,
            created=known.created if known else None,
            fresh=forked.fresh,
            path=forked.path,
            command=forked.command,
            notices=forked.notices,
        )


class MoveRecord(Record):
    """What a move did, or with `preview` what it would do."""

    move: str
    from_: NodeRecord = Field(validation_alias="from", serialization_alias="from")
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
    merged: list[Text]
    conflicts: list[ConflictRecord]
    safety_ref: Text | None
    prompt: Text | None
    paths_b64: dict[Text, str]
    notes: list[Text]
    preview: bool
    operation: int | None = Field(default=None, description="the number of the operation in `ops`")
    safety: str | None = Field(default=None, description="the commit of what was on disk before")
    pending_fork: bool = Field(default=False, description="the agent's conversation now holds undone turns")
    fork: ForkRecord | None = None
    hunks: list[HunkRecord] | None = Field(default=None, description="with --patch --preview")

    @classmethod
    def of(cls, moved: Moved, *, preview: bool = False, hunks: Iterable[Hunk] | None = None) -> Self:
        plan = moved.plan
        target = moved.target_node()
        changed = plan.of(WRITE, REMOVE)
        return cls(
            move=plan.kind,
            from_=NodeRecord.of(moved.start_node()),
            to=NodeRecord.of(target),
            turn=plan.turn,
            branch=plan.branch,
            turns_undone=len(plan.turns_undone),
            turns_redone=len(plan.turns_redone),
            messages_removed=plan.messages_removed,
            files_reverted=path_texts(changed),
            snapshot_restored=target.commit if plan.scope != CONVERSATION and changed else None,
            written=path_texts(plan.of(WRITE)),
            removed=path_texts(plan.of(REMOVE)),
            kept=path_texts(plan.of(KEPT)),
            skipped=path_texts(plan.of(SKIPPED)),
            merged=path_texts(move.path for move in plan.paths if move.settled in (MERGE, MARKERS)),
            conflicts=[ConflictRecord.of(move) for move in plan.paths if move.conflicting],
            safety_ref=moved.safety_ref,
            prompt=plan.prompt,
            paths_b64=paths_b64(move.path for move in plan.paths),
            notes=plan.notes,
            preview=preview,
            operation=moved.operation,
            hunks=None if hunks is None else [HunkRecord.of(hunk) for hunk in hunks],
            safety=moved.safety.hex() if moved.safety is not None else None,
            pending_fork=moved.pending_fork,
        )

    def with_fork(self, forked: ForkResult | None) -> Self:
        """Return the record with a fork of the conversation, null if there is none."""
        return self.model_copy(update={"fork": ForkRecord.of(forked) if forked is not None else None})


class OperationRecord(Record):
    """One move or branch change. Refs and files are lists of [name, old, new]."""

    op: int
    session: Text
    kind: str
    at: Text
    what: Text
    from_: dict[str, Any] | None = Field(validation_alias="from", serialization_alias="from")
    to: dict[str, Any] | None
    arguments: list[Text]
    refs: list[list[Text | None]]
    files: list[list[Text | None]]
    safety_ref: Text | None
    undoes: list[int]
    undone_by: int | None
    standing: list[Text] = Field(description="folders that existed, empty, before the move wrote files into them")
    modes: dict[Text, int] | None = Field(
        default=None, description="permission bits of removed files that not everybody may read"
    )

    @classmethod
    def of(cls, operation: Operation, undone_by: int | None) -> Self:
        modes = operation.named_modes()
        more: dict[str, Any] = {"modes": modes} if modes else {}
        return cls(
            op=operation.number,
            session=operation.session,
            kind=operation.kind,
            at=operation.at,
            what=operation.what,
            from_=operation.from_,
            to=operation.to,
            arguments=operation.arguments,
            refs=ref_rows(operation),
            files=[[os.fsdecode(path), spell_entry(old), spell_entry(new)] for path, old, new in operation.files],
            safety_ref=operation.safety,
            undoes=operation.undoes,
            undone_by=undone_by,
            standing=operation.standing,
            **more,
        )


def ref_rows(operation: Operation) -> list[list[str | None]]:
    """Return the refs that an operation changed, as [name, old, new]."""
    return [[name, spell(old) if old else None, spell(new) if new else None] for name, old, new in operation.refs]


class OperationsRecord(Record):
    """Operations, newest first."""

    operations: list[OperationRecord]

    @classmethod
    def of(cls, operations: Iterable[Operation], undone_by: Mapping[int, int]) -> Self:
        """List operations. `undone_by` maps an operation to the later one that undid it."""
        return cls(operations=[OperationRecord.of(one, undone_by.get(one.number)) for one in operations])


class RecoveryFileRecord(PathRecord):
    old: str | None
    new: str | None


class RecoveryRefRecord(Record):
    ref: Text
    old: Text | None
    new: Text | None


class RecoveryRecord(Record):
    """An interrupted change, and how recovery ended if it ran."""

    pending: bool
    what: Text | None
    files: list[RecoveryFileRecord]
    refs: list[RecoveryRefRecord]
    obstacles: list[Text]
    ended: Literal["finished", "taken back"] | None
    kept: list[Text]

    @classmethod
    def of(cls, pending: Mapping[str, Any] | None, obstacles: list[str], ended: Recovery | None) -> Self:
        """Describe the journal's unfinished change (`pending`) and how recovery ended."""
        if pending is None:
            return cls(pending=False, what=None, files=[], refs=[], obstacles=[], ended=None, kept=[])
        return cls(
            pending=ended is None,
            what=pending["what"],
            files=[
                RecoveryFileRecord(**path_json(os.fsencode(path)), old=old, new=new)
                for path, old, new, *_ in pending.get("tree", ())
            ],
            refs=[RecoveryRefRecord(ref=name, old=old, new=new) for name, old, new in pending["refs"]],
            obstacles=obstacles,
            ended=None if ended is None else "finished" if ended.finished else "taken back",
            kept=[] if ended is None else path_texts(ended.kept),
        )
