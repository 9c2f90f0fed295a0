"""Find the turn records to transfer: those that a server lacks, and those that we lack.

A record changes only on the machine that made its turn. So the records that changed since the last exchange are those
to transfer. A record of our own turn is never replaced by the server's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from snapstore.errors import SnapstoreError
from snapstore.git.objects import notes
from snapstore.git.objects.ids import BLOB, FILE
from snapstore.git.repository import Shadow
from snapstore.share.server.ancestry import Ancestry

Blobs = dict[bytes, bytes]  # commit: the blob with its record

LARGEST = 64 << 20  # bytes of a record from another machine
_MANY = 20  # commits to look up one by one; for more of them, whole lines are walked once


def to_send(
    shadow: Shadow, ours: bytes, theirs: bytes, base: bytes | None, is_sent: Callable[[bytes], bool], own: OwnCommits
) -> Blobs:
    """Return records that are new or changed here and that a server lacks.

    Only records of commits that the server has or gets count, according to `is_sent`.
    """
    found: Blobs = {}
    for commit, blob in _differing(shadow, base or theirs, ours):
        there = notes.find(shadow.trees, theirs, commit)
        if there != blob and is_sent(commit) and (there is None or base is not None or own(commit)):
            found[commit] = blob
    return found


def to_receive(shadow: Shadow, ours: bytes, theirs: bytes, base: bytes | None, own: OwnCommits) -> tuple[Blobs, int]:
    """Return the records that we lack or that changed, and the number of invalid ones."""
    found: Blobs = {}
    refused = 0
    for commit, blob in _differing(shadow, base or ours, theirs):
        here = notes.find(shadow.trees, ours, commit)
        if here == blob or (here is not None and own(commit)):
            continue
        if _is_record(shadow, blob):
            found[commit] = blob
        else:
            refused += 1
    return found, refused


def transcripts_of(shadow: Shadow, tip: bytes | None, commits: Iterable[bytes]) -> Blobs:
    """Return the raw lines for the records of `commits`, from notes commit `tip`."""
    if tip is None:
        return {}
    tree = shadow.commit(tip).tree
    found = {commit: notes.find(shadow.trees, tree, commit) for commit in commits}
    return {commit: blob for commit, blob in found.items() if blob is not None and _is_text(shadow, blob)}


def _is_text(shadow: Shadow, blob: bytes) -> bool:
    try:
        kind, size = shadow.objects.header(blob)
    except SnapstoreError:
        return False
    return kind == BLOB and size <= LARGEST


def _differing(shadow: Shadow, old: bytes, new: bytes) -> Iterator[tuple[bytes, bytes]]:
    for path, _, entry in shadow.trees.diff(old, new):
        commit = notes.commit_of(path)
        if entry is not None and entry[0] == FILE and commit is not None:
            yield commit, entry[1]


def _is_record(shadow: Shadow, blob: bytes) -> bool:
    """Return whether a blob is a valid record; anyone who can push can write a note."""
    try:
        kind, size = shadow.objects.header(blob)
        return kind == BLOB and size <= LARGEST and isinstance(json.loads(shadow.objects.read_kind(blob, BLOB)), dict)
    except (SnapstoreError, ValueError, RecursionError):
        return False


class OwnCommits:
    """Tells whether a commit is our own: our refs lead to it and no other machine's do.

    Lines are walked only on request, which happens if two records of one turn differ.
    """

    def __init__(self, ancestry: Ancestry, own: Iterable[bytes], others: Iterable[bytes]) -> None:
        self._ancestry = ancestry
        self._own = list(dict.fromkeys(own))
        self._others = list(dict.fromkeys(others))
        self._asked = 0

    def __call__(self, commit: bytes) -> bool:
        return self._leads(self._own, commit) and not self._leads(self._others, commit)

    def leads_to(self, commit: bytes) -> bool:
        return self._leads(self._own, commit)

    def _leads(self, tips: list[bytes], commit: bytes) -> bool:
        self._asked += 1
        if self._asked > _MANY:
            return commit in self._ancestry.lines(tips)
        return any(self._ancestry.descends(tip, commit) for tip in tips)
