"""Plan to write, edit or remove one file, as a move like any other."""

from __future__ import annotations

import os

from snapstore.errors import Conflict, Unsafe
from snapstore.git.objects.ids import BLOB, FILE, LINK, object_id
from snapstore.git.ref_names import cursor_ref
from snapstore.timeline.moves.plan import WRITE, MoveOptions, Plan, State
from snapstore.timeline.moves.planner import Planner
from snapstore.timeline.record.session import RecordingSession
from snapstore.worktree.ignore.policy import NEVER

LARGEST = 64 << 20


class FileEdit:
    """Makes plans for one file.

    Each plan becomes a node of its own, after a node for manual edits of the file.
    """

    def __init__(self, session: RecordingSession, path: bytes) -> None:
        self._session = session
        self._path = path
        self._name = os.fsdecode(path)

    def write(self, data: bytes) -> Plan:
        """Plan to write `data`; a conflict if the file is not as the session recorded it."""
        known = self._recorded()
        mode = known[0] if known is not None and known[0] != LINK else FILE
        return self._plan(f"Write {self._name}", known, (mode, object_id(BLOB, data)), data)

    def remove(self, content: bytes | None = None) -> Plan:
        """Plan to remove the file.

        The plan has a conflict if the file is not as the session recorded it. Raises Conflict if the file does not hold
        `content` (S0-45).
        """
        if content is not None and self.content() != content:
            raise self._differs("it does not hold the content to remove")
        return self._plan(f"Delete {self._name}", self._recorded(), None, None)

    def edit(self, old: bytes, new: bytes, *, every: bool = False) -> Plan:
        """Plan to replace text that must be there (S0-44), once unless `every` is set."""
        data = self.content()
        if data is None:
            raise self._differs("it is not there")
        number = data.count(old)
        if number == 0:
            raise self._differs("it does not hold the text to replace")
        if number > 1 and not every:
            raise self._differs(f"it holds the text to replace {number} times")
        found = self._observed()
        if not isinstance(found, tuple) or found[1] != object_id(BLOB, data):
            raise self._differs("it changed just now")
        edited = data.replace(old, new)
        return self._plan(f"Edit {self._name}", found, (found[0], object_id(BLOB, edited)), edited)

    def content(self) -> bytes | None:
        """Return the content on disk, None if there is no file."""
        found = self._observed()
        if found is None:
            return None
        if isinstance(found, str) or found[0] == LINK:
            what = found if isinstance(found, str) else "a link"
            raise Unsafe(f"{self._name!r} is not a regular file: {what} is there", "Only regular files can be edited.")
        data = self._session.store.writer("look", []).read(self._path, LARGEST + 1)
        if data is not None and len(data) > LARGEST:
            raise Unsafe(f"{self._name!r} is larger than {LARGEST >> 20} MiB", "Edit it with a program of your own.")
        return data

    def _observed(self) -> State | str:
        return self._session.store.writer("look", []).observe(self._path)

    def _recorded(self) -> State:
        shadow = self._session.store.shadow
        cursor = shadow.refs.read(cursor_ref(self._session.name))
        return shadow.trees.file(shadow.commit(cursor).tree, self._path) if cursor is not None else None

    def _plan(self, subject: str, expected: State, wanted: State, data: bytes | None) -> Plan:
        why = self._session.store.policy.why_not(self._path)
        if why is not None:
            hint = "Write it with a program of your own" + (", or change never_capture." if why == NEVER else ".")
            raise Unsafe(f"{self._name!r} is {why}", hint, path=self._name)
        if expected == wanted and self._observed() != wanted:  # a plan without steps would check no file
            raise self._differs("it is not as the session recorded it")
        return _Planner(self._session, MoveOptions()).put(subject, self._path, expected, wanted, data)

    def _differs(self, why: str) -> Conflict:
        return Conflict(f"{self._name}: {why}", "Nothing was written. Look at the file first.", path=self._name)


class _Planner(Planner):
    """A planner for the change of one file."""

    def put(self, subject: str, path: bytes, expected: State, wanted: State, data: bytes | None) -> Plan:
        plan = self._new_node("restore", subject, self._graph.cursor, "@")
        self._fill_paths(plan, {path: [(expected, wanted)]} if expected != wanted else {})
        for move in plan.paths:
            if move.action == WRITE:
                move.merged = data  # not stored yet: `safety` stores it before the move
        return plan
