"""What naming asks of commits, answered from a store."""

from __future__ import annotations

from snapstore.errors import SnapstoreError
from snapstore.share.naming import History

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.commits import Commit
    from snapstore.git.shadow import Shadow


class Ancestry:
    """First parents only: that is what a line is. Each walk ends as soon as it can tell."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow
        self._roots: dict[bytes, bytes | None] = {}

    def asked(self) -> History:
        return History(self.root, self.descends)

    def root(self, oid: bytes) -> bytes | None:
        walked: list[bytes] = []
        at: bytes | None = oid
        found: bytes | None = None
        while at is not None:
            if at in self._roots:
                found = self._roots[at]
                break
            walked.append(at)
            commit = self._commit(at)
            if commit is None:
                found = None
                break
            found, at = at, commit.parents[0] if commit.parents else None
        self._roots.update(dict.fromkeys(walked, found))
        return found

    def descends(self, new: bytes, old: bytes) -> bool:
        if new == old:
            return self._commit(new) is not None
        goal = self._commit(old)
        if goal is None:
            return False
        least = goal.number("Seq")
        at: bytes | None = new
        while at is not None:
            if at == old:
                return True
            commit = self._commit(at)
            if commit is None:
                return False
            seq = commit.number("Seq")
            if least is not None and seq is not None and seq < least:
                return False  # numbers only grow along a line
            at = commit.parents[0] if commit.parents else None
        return False

    def _commit(self, oid: bytes) -> Commit | None:
        try:
            return self._shadow.commit(oid) if self._shadow.objects.contains(oid, fresh=False) else None
        except SnapstoreError:  # a tag that someone made, or no commit at all: not one of ours
            return None
