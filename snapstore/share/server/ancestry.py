"""Answer questions about the ancestry of commits, at the cost of what is new.

A line may have thousands of turns, and naming refs needs its first commit each time. So a long walk stores its result
in a file. The file is never stale, because commits and their parents never change.
"""

from __future__ import annotations

from snapstore.base import cache_file
from snapstore.errors import SnapstoreError
from snapstore.git.repository import Shadow
from snapstore.share.server.names_there import History
from snapstore.store.handle import StoreHandle

Step = tuple[bytes | None, int | None]  # the first parent, and the sequence number in its session

FILE = "ancestry"
_FORMAT = "ancestry 1"
_SHORT = 8  # commits to read one by one before the file is worth opening
_LONG = 32  # a shorter walk is not stored; a longer one marks one commit in this many
_MOST = 20_000  # marks and answers to store, each


class Ancestry:
    """Walks along first parents, which make up a line, and stops as early as it can."""

    def __init__(self, store: StoreHandle) -> None:
        self._shadow: Shadow = store.shadow
        self._path = f"{store.state}/{FILE}"
        self._steps: dict[bytes, Step | None] = {}
        self._lines: dict[tuple[bytes, ...], set[bytes]] = {}
        self._roots: dict[bytes, bytes] = {}  # a marked commit: the first commit of its line
        self._answers: dict[bytes, bool] = {}  # two concatenated ids: whether the first descends from the second
        self._opened = False
        self._changed = False

    def history(self) -> History:
        return History(self.root, self.descends)

    def root(self, oid: bytes) -> bytes | None:
        """Return the first commit of a line."""
        self._open()
        walked: list[bytes] = []
        at: bytes | None = oid
        found: bytes | None = None
        while at is not None:
            step = self._step(at)
            if step is None:
                return None
            if at in self._roots:
                found = self._roots[at]
                break
            walked.append(at)
            found, at = at, step[0]
        if found is not None and len(walked) >= _LONG:
            self._roots.update(dict.fromkeys(walked[::_LONG], found))
            self._changed = True
        return found

    def descends(self, new: bytes, old: bytes) -> bool:
        """Return whether `old` is `new` or an ancestor of it on its line."""
        goal = self._step(old)
        if goal is None:
            return False
        least = goal[1]
        walked: list[bytes] = []
        at: bytes | None = new
        while at is not None and at != old:
            step = self._step(at)
            # Sequence numbers only grow along a line.
            if step is None or (least is not None and step[1] is not None and step[1] < least):
                at = None
                break
            walked.append(at)
            at = step[0]
            if len(walked) >= _SHORT:
                known = self._known(walked, old)
                if known is not None:
                    return known
        if len(walked) >= _LONG:
            self._store_answer(new + old, at == old)
        return at == old

    def lines(self, tips: list[bytes]) -> set[bytes]:
        """Return every commit of the lines that end at these tips."""
        key = tuple(tips)
        if key not in self._lines:
            found = self._lines[key] = set()
            for tip in tips:
                at: bytes | None = tip
                while at is not None and at not in found:
                    step = self._step(at)
                    if step is None:
                        break
                    found.add(at)
                    at = step[0]
        return self._lines[key]

    def _known(self, walked: list[bytes], old: bytes) -> bool | None:
        """Return the answer of an earlier walk that began at a commit of this walk."""
        self._open()
        for oid in walked if len(walked) == _SHORT else walked[-1:]:
            answer = self._answers.get(oid + old)
            if answer is not None:
                if len(walked) > _LONG:
                    del self._answers[oid + old]
                    self._store_answer(walked[0] + old, answer)
                return answer
        return None

    def _store_answer(self, pair: bytes, answer: bool) -> None:
        self._answers[pair] = answer
        self._changed = True

    # Commits and the file.

    def _step(self, oid: bytes) -> Step | None:
        if oid not in self._steps:
            self._steps[oid] = self._read(oid)
        return self._steps[oid]

    def _read(self, oid: bytes) -> Step | None:
        try:
            if not self._shadow.objects.contains(oid, fresh=False):
                return None
            commit = self._shadow.commit(oid)
        except SnapstoreError:  # a tag or another object, not one of our commits
            return None
        return commit.parents[0] if commit.parents else None, commit.number("Seq")

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        kept = cache_file.read(self._path, _FORMAT)
        if kept is not None:
            self._roots = {**kept[0], **self._roots}
            self._answers = {**kept[1], **self._answers}

    def save(self) -> None:
        """Write the file if a walk was long."""
        if not self._changed:
            return
        self._changed = False
        newest = [dict(list(found.items())[-_MOST:]) for found in (self._roots, self._answers)]
        cache_file.write(self._path, _FORMAT, newest)
