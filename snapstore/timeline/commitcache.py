"""What a session's commits say, in one file: ten thousand of them take ten milliseconds this way, and a quarter of a
second from the packs.

Commits never change, so it is never out of date. One that does not match its checksum is as good as none, and losing it
costs time only, so it is not synced.
"""

from __future__ import annotations

import marshal
import os
import sys
from _thread import get_ident

from xxhash import xxh3_64_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The fields of a GraphNode, in its order; no parent is b"", and a number that the commit does not have is -1.
Row = tuple[bytes, bytes, bytes, int, int, str, int, str, str]

_MAGIC = b"snapstore graph 1 " + f"{sys.implementation.cache_tag}\n".encode()
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
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except OSError:
            return
        body = data[len(_MAGIC) + 8 :]
        if data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : len(_MAGIC) + 8] == xxh3_64_digest(body):
            self.rows = {row[0]: row for row in marshal.loads(body)}

    def save(self, oids: Iterable[bytes]) -> None:
        """Written again, with these commits, when enough was read that it did not hold."""
        if len(self._fresh) < MANY:
            return
        rows = [self._fresh.get(oid) or self.rows[oid] for oid in oids]
        body = marshal.dumps(rows)
        temporary = f"{self._path}.{os.getpid()}.{get_ident()}"  # a server reads on several threads
        try:
            with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(_MAGIC + xxh3_64_digest(body) + body)
            os.rename(temporary, self._path)
        except OSError:  # a full or read-only disk: read the commits again next time
            try:
                os.unlink(temporary)
            except OSError:
                pass
