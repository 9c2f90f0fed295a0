"""What `gc`, `prune`, `du` and `stats` print with `--json`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from snapstore.records.base import PathRecord, Record, Text


class GcRecord(Record):
    packed_by: str = Field(description="git, or snapstore where there is none")
    dry_run: bool
    packs_before: int
    packs_after: int
    loose: int = Field(description="loose objects that were there")
    objects: int = Field(description="in the packs afterwards")
    dropped: int
    waiting: int = Field(description="objects that nothing refers to, too young to go")
    bytes_before: int
    bytes_after: int
    leftovers: int = Field(description="files of killed processes that were removed")
    expired: int = Field(description="pruned branches that cannot be brought back any more")


class PrunableRecord(Record):
    session: Text
    branch: Text
    state: str
    commit: str
    commits: int = Field(description="those that no other branch has")
    used_at: str
    age_days: int
    size_bytes: int
    kept: str | None = Field(description="why it stays")


class PruneRecord(Record):
    dry_run: bool
    older_seconds: int
    pruned: list[PrunableRecord]
    kept: list[PrunableRecord]
    size_bytes: int = Field(description="what is freed once the grace time is over")
    operations: list[int]
    undo: Text | None


class HolderRecord(Record):
    session: Text
    branch: Text
    state: str
    exclusive_bytes: int
    shared_bytes: int


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
    safety_bytes: int = Field(description="of the files, what only states saved before forced moves hold")
    unreferenced_bytes: int = Field(description="what gc will drop")
    index_bytes: int
    borrowed_bytes: int = Field(description="in packs that are your own repository's too")
    sessions: list[SessionUseRecord]
    branches: list[HolderRecord]
    paths: list[PathUseRecord]
    largest: list[FileUseRecord]


class HealthRecord(Record):
    ok: bool
    checked: bool = Field(description="whether every object was looked for")
    problems: list[dict[str, Any]]
    hook_errors: list[Text]


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
