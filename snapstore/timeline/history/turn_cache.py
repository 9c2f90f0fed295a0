"""Cache what a session's turns touched and what their records hold.

A move across twenty thousand turns asks each turn for the files it touched, and each record for what cannot be undone.
From the packs that takes seconds, from this file a tenth of a second. Whatever is missing here is read from the store.
Entries are stored under the id of a commit or record. Commits and records never change, so no entry is ever stale.

Every turn appends to the file. The file is a mark followed by frames; each frame is a length, a checksum and data. The
file is not synced. A frame torn by a crash hides the frames after it until so much is missing that the file is
rewritten.
"""

from __future__ import annotations

import json
import marshal
import os
import sys
from collections.abc import Mapping, Sequence

from xxhash import xxh3_64_digest

from snapstore.base import cache_file
from snapstore.git.objects.trees import Change
from snapstore.timeline.history.commit_cache import Row

Parts = tuple[dict[bytes, Row], dict[bytes, Sequence[Change]], dict[bytes, int]]

MOST_TOUCHED = 64  # a turn with more files is compared again, which takes no longer than handling its files
LONGEST_RECORD = 1 << 16  # bytes; a longer record is not parsed a second time at the end of a turn
ODD = -1  # marks a record that must be read: it holds more than replies

# Fields of a record that a move acts on or reports.
_MOVE_FIELDS = ("modes", "user_git", "left_out", "first_seen", "beside", "unknown", "empty_folders", "left_folders")
_MARK = f"snapstore turns 1 {sys.implementation.cache_tag}\n".encode()


def turns_file(state: str, session: str) -> str:
    """Return the path of the cache file, next to `graph-SESSION`.

    No session's name begins with a dash, so the names do not clash. `forget` removes every `graph-…` file.
    """
    return f"{state}/graph--{session}"


class TurnCache:
    """One session's cache file, and what was read from the store."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.opened = False
        self._whole = True  # whether every frame could be read
        self.rows: dict[bytes, Row] = {}
        self.touched: dict[bytes, Sequence[Change]] = {}  # by commit
        self.replies: dict[bytes, int] = {}  # by record: the number of replies, or ODD
        self._fresh: Parts = ({}, {}, {})

    def open(self) -> None:
        if self.opened:
            return
        self.opened = True
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except OSError:
            data = b""
        at = len(_MARK)
        if data[:at] != _MARK:
            self._whole = False
            return
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            body = data[at + 12 : at + 12 + size]
            if len(body) != size or xxh3_64_digest(body) != data[at + 4 : at + 12]:
                self._whole = False
                return
            rows, touched, replies = marshal.loads(body)
            self.rows.update(rows)
            self.touched.update(touched)
            self.replies.update(replies)
            at += 12 + size

    def add(
        self,
        rows: Mapping[bytes, Row] | None = None,
        touched: Mapping[bytes, Sequence[Change]] | None = None,
        replies: Mapping[bytes, int] | None = None,
    ) -> None:
        """Add what was read from the store, for `keep`."""
        for into in ((self.rows, self.touched, self.replies), self._fresh):
            into[0].update(rows or {})
            into[1].update(touched or {})
            into[2].update(replies or {})

    def keep(self, least: int = 1) -> None:
        """Append what was read to the file, if there are at least `least` entries.

        A damaged file is rewritten.
        """
        rows, touched, replies = self._fresh
        if len(rows) + len(touched) + len(replies) < least:
            return
        if self.opened and not self._whole:
            self._write((self.rows, self.touched, self.replies))
        else:
            self._append(self._fresh)
        self._fresh = ({}, {}, {})

    def _append(self, found: Parts) -> None:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._write(found)
            return
        except OSError:  # a read-only store
            return
        try:
            ours = os.pread(fd, len(_MARK), 0) == _MARK
            if ours:
                os.write(fd, _frame(found))  # one write: another process may append too
        except OSError:  # a full disk
            return
        finally:
            os.close(fd)
        if not ours:
            self._write(found)

    def _write(self, found: Parts) -> None:
        self._whole = cache_file.replace(self._path, _MARK + _frame(found))


def replies_in(note: bytes | None) -> int:
    """Return the number of replies in a record; ODD if a move must read the record."""
    if note is None:
        return 0
    try:
        record = json.loads(note)
    except ValueError:
        return 0
    if not isinstance(record, dict):
        return 0
    if any(record.get(field) for field in _MOVE_FIELDS):
        return ODD
    replies = record.get("replies")
    return len(replies) if isinstance(replies, list) else 0


def _frame(found: Parts) -> bytes:
    body = marshal.dumps(found)
    return len(body).to_bytes(4, "big") + xxh3_64_digest(body) + body
