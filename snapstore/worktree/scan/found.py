"""The result of a scan: how the disk differs from the stat cache."""

from __future__ import annotations

from snapstore.git.objects.ids import Entry
from snapstore.worktree.scan.stat_cache import FileStat, FolderStat


class Found:
    """The result of a scan: changes to the cache's tree and to the cache's rows."""

    def __init__(self) -> None:
        self.changes: dict[bytes, Entry | None] = {}
        self.files: dict[bytes, FileStat | None] = {}
        self.folders: dict[bytes, FolderStat | None] = {}
        self.hinted: dict[bytes, FileStat] = {}  # new files with known blobs; not in `changes`
        self.first_seen: set[bytes] = set()
        self.left_out: dict[bytes, tuple[str, tuple[int, ...]]] = {}  # path -> reason, and a mark of its state
        self.newly_left_out: dict[bytes, str] = {}  # left-out files that are new or changed since the last scan
        self.lost: dict[bytes, str] = {}  # left-out files that are gone since the last scan
        self.coverage: dict[str, object] = {}
