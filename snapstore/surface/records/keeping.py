"""The documents that `gc`, `prune`, `du` and `stats` print with `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from snapstore.base.text import timestamp
from snapstore.store.settings import DAY
from snapstore.surface.records.base import PathRecord, Record, Text
from snapstore.timeline.history.nodes import path_json

if TYPE_CHECKING:
    from snapstore.store.disk_usage import DiskUse, Holder
    from snapstore.surface.stats import Health, Stats
    from snapstore.timeline.maintenance.auto import Pruned
    from snapstore.timeline.maintenance.gc import Collected
    from snapstore.timeline.maintenance.prune import Prunable


class GcRecord(Record):
    packed_by: str = Field(description="git, or snapstore if git is not installed")
    dry_run: bool
    packs_before: int
    packs_after: int
    loose: int = Field(description="loose objects before")
    objects: int = Field(description="objects in packs afterwards")
    dropped: int
    waiting: int = Field(description="unreferenced objects that are too young to be dropped")
    bytes_before: int
    bytes_after: int
    leftovers: int = Field(description="removed files of killed processes")
    expired: int = Field(description="pruned branches that can no longer be restored")

    @classmethod
    def of(cls, done: Collected) -> Self:
        packed = done.packed
        return cls(
            packed_by=done.by,
            dry_run=done.dry_run,
            packs_before=packed.packs_before,
            packs_after=packed.packs_after,
            loose=packed.loose,
            objects=packed.objects,
            dropped=packed.dropped,
            waiting=packed.waiting,
            bytes_before=packed.bytes_before,
            bytes_after=packed.bytes_after,
            leftovers=done.leftovers,
            expired=done.expired,
        )


class PrunableRecord(Record):
    session: Text
    branch: Text
    state: str
    commit: str
    commits: int = Field(description="commits that no other branch has")
    used_at: str
    age_days: int
    size_bytes: int
    kept: str | None = Field(description="why the branch stays")

    @classmethod
    def of(cls, one: Prunable, now: float) -> Self:
        return cls(
            session=one.session,
            branch=one.name,
            state=one.state,
            commit=one.tip.hex(),
            commits=len(one.own),
            used_at=timestamp(one.used),
            age_days=int(max(now - one.used, 0) // DAY),
            size_bytes=one.size,
            kept=one.kept,
        )


class PruneRecord(Record):
    dry_run: bool
    older_seconds: int
    pruned: list[PrunableRecord]
    kept: list[PrunableRecord]
    size_bytes: int = Field(description="bytes that are freed after the grace time")
    operations: list[int]
    undo: Text | None

    @classmethod
    def of(cls, done: Pruned, *, dry_run: bool, older_seconds: int, undo: str | None, now: float) -> Self:
        """Describe what was pruned. `undo` is the command that restores it."""
        return cls(
            dry_run=dry_run,
            older_seconds=older_seconds,
            pruned=[PrunableRecord.of(one, now) for one in done.going],
            kept=[PrunableRecord.of(one, now) for one in done.staying],
            size_bytes=done.size,
            operations=[one.number for one in done.operations],
            undo=undo,
        )


class HolderRecord(Record):
    session: Text
    branch: Text
    state: str
    exclusive_bytes: int
    shared_bytes: int

    @classmethod
    def of(cls, holder: Holder) -> Self:
        return cls(
            session=holder.session,
            branch=holder.name,
            state=holder.state,
            exclusive_bytes=holder.exclusive,
            shared_bytes=holder.shared,
        )


class SessionUseRecord(Record):
    session: Text
    exclusive_bytes: int
    shared_bytes: int


class PathUseRecord(PathRecord):
    size_bytes: int


class FileUseRecord(PathUseRecord):
    versions: int


class DiskUseRecord(Record):
    store: Text
    size_bytes: int
    max_store_size: int
    files_bytes: int
    records_bytes: int = Field(description="conversations")
    safety_bytes: int = Field(description="part of files_bytes that only states saved before forced moves hold")
    unreferenced_bytes: int = Field(description="unreferenced objects, which gc will drop")
    index_bytes: int
    borrowed_bytes: int = Field(description="packs shared with your own repository")
    sessions: list[SessionUseRecord]
    branches: list[HolderRecord]
    paths: list[PathUseRecord]
    largest: list[FileUseRecord]

    @classmethod
    def of(cls, found: DiskUse) -> Self:
        return cls(
            store=found.store.folder,
            size_bytes=found.total,
            max_store_size=found.store.header.max_store_size,
            files_bytes=found.files_size(),
            records_bytes=found.records,
            safety_bytes=found.saved()[1],
            unreferenced_bytes=found.unreferenced,
            index_bytes=found.index,
            borrowed_bytes=found.borrowed,
            sessions=[
                SessionUseRecord(session=name, exclusive_bytes=exclusive, shared_bytes=shared)
                for name, (exclusive, shared) in sorted(found.sessions.items())
            ],
            branches=[HolderRecord.of(holder) for holder in found.holders],
            paths=[PathUseRecord(**path_json(path), size_bytes=size) for path, size in found.folders()],
            largest=[
                FileUseRecord(**path_json(path), size_bytes=size, versions=versions)
                for path, size, versions in found.largest()
            ],
        )


class FaultRecord(Record):
    """A problem of a store, in short. `check` says more."""

    where: Text
    message: Text


class HealthRecord(Record):
    ok: bool
    checked: bool = Field(description="whether every object was verified")
    problems: list[FaultRecord]
    hook_errors: list[Text]

    @classmethod
    def of(cls, health: Health) -> Self:
        return cls(
            ok=not health.problems,
            checked=health.checked,
            problems=[FaultRecord(where=problem.where, message=problem.message) for problem in health.problems],
            hook_errors=health.hook_errors,
        )


class UseRecord(Record):
    sessions: int
    sessions_rewound: int
    rewound_percent: float
    branches: int
    branches_per_session: float
    moves: int
    moves_taken_back: int
    taken_back_percent: float
    size_bytes: int
    max_store_size: int = Field(description="0 for no limit")
    health: HealthRecord

    @classmethod
    def of(cls, stats: Stats) -> UseRecord:
        return UseRecord(
            sessions=stats.sessions,
            sessions_rewound=stats.sessions_rewound,
            rewound_percent=stats.rewound_percent,
            branches=stats.branches,
            branches_per_session=stats.branches_per_session,
            moves=stats.moves,
            moves_taken_back=stats.moves_taken_back,
            taken_back_percent=stats.taken_back_percent,
            size_bytes=stats.size_bytes,
            max_store_size=stats.max_store_size,
            health=HealthRecord.of(stats.health),
        )
