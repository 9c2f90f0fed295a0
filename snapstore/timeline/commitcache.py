"""What a session's commits say, in one file: ten thousand of them take ten milliseconds this way, and a quarter of a
second from the packs.

Commits never change, so it is never out of date.
"""

from __future__ import annotations

from snapstore.timeline import cachefile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The fields of a GraphNode, in its order; no parent is b"", and a number that the commit does not have is -1.
Row = tuple[bytes, bytes, bytes, int, int, str, int, str, str]

_WHAT = "graph 1"
MANY = 200  # commits to read one by one before the file is worth opening, or writing again


class CommitCache:
    """One session's file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened = False
        self._fresh: dict[bytes, Row] = {}
        self.rows: dict[bytes, Row] = {}

    def add(self, row: Row) -> None:
        self._fresh[row[0]] = row

    def open(self) -> None:
        if self._opened:
            return
        self._opened = True
        self.rows = {row[0]: row for row in cachefile.read(self._path, _WHAT) or ()}

    def save(self, oids: Iterable[bytes]) -> None:
        """Written again, with these commits, when enough was read that it did not hold."""
        if len(self._fresh) < MANY:
            return
        rows = [self._fresh.get(oid) or self.rows[oid] for oid in oids]
        cachefile.write(self._path, _WHAT, rows)
