"""What a session's turns touched and what their records hold, in one file that every turn adds a line to.

A move across twenty thousand turns asks each of them for the files it touched, and its record for what cannot be moved
back. From the packs that takes seconds, from here a tenth of one. It is only a shortcut: whatever it does not hold is
read from the store. Everything is filed under the id of the commit or of the record, which never change, so nothing in
it is ever out of date.

The file is a mark and frames: for each its length, a checksum and the data. It is not synced. A frame that a crash tore
hides those after it until so much is missing that the file is written again.
"""

from __future__ import annotations

import json
import marshal
import os
import sys

from xxhash import xxh3_64_digest

from snapstore.base import cache_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapstore.git.objects.trees import Change
    from snapstore.timeline.history.commit_cache import Row

    Parts = tuple[dict[bytes, Row], dict[bytes, Sequence[Change]], dict[bytes, int]]

MOST_TOUCHED = 64  # a turn of more files is compared again: that takes no longer than dealing with its files
LONGEST_RECORD = 1 << 16  # a longer one is not parsed a second time at the end of a turn
ODD = -1  # a record that must be read: it tells of more than replies

# Fields of a record that a move has something to do with, or to say about.
_TELLING = ("modes", "user_git", "left_out", "first_seen", "beside", "unknown", "empty_folders", "left_folders")
_MARK = f"snapstore turns 1 {sys.implementation.cache_tag}\n".encode()


def turns_file(state: str, session: str) -> str:
    """Beside `graph-SESSION`: no session's name begins with a dash, and whoever forgets turns removes all of them."""
    return f"{state}/graph--{session}"


class TurnCache:
    """One session's file, and what was read beside it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.opened = False
        self._whole = True  # every frame could be read
        self.rows: dict[bytes, Row] = {}
        self.touched: dict[bytes, Sequence[Change]] = {}  # by commit
        self.replies: dict[bytes, int] = {}  # by record: how many, or ODD
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
        """What was read from the store, for `keep`."""
        for into in ((self.rows, self.touched, self.replies), self._fresh):
            into[0].update(rows or {})
            into[1].update(touched or {})
            into[2].update(replies or {})

    def keep(self, least: int = 1) -> None:
        """Adds what was read to the file, if that is enough to be worth it. A damaged file is written again."""
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
        except OSError:  # a store that can only be read
            return
        try:
            ours = os.pread(fd, len(_MARK), 0) == _MARK
            if ours:
                os.write(fd, _frame(found))  # in one piece: another process may add to it too
        except OSError:  # a full disk
            return
        finally:
            os.close(fd)
        if not ours:
            self._write(found)

    def _write(self, found: Parts) -> None:
        self._whole = cache_file.replace(self._path, _MARK + _frame(found))


def replies_in(note: bytes | None) -> int:
    """How many replies a record holds; ODD where a move must look at it."""
    if note is None:
        return 0
    try:
        record = json.loads(note)
    except ValueError:
        return 0
    if not isinstance(record, dict):
        return 0
    if any(record.get(field) for field in _TELLING):
        return ODD
    replies = record.get("replies")
    return len(replies) if isinstance(replies, list) else 0


def _frame(found: Parts) -> bytes:
    body = marshal.dumps(found)
    return len(body).to_bytes(4, "big") + xxh3_64_digest(body) + body
