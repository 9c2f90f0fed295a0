"""Builds commits on one session's line and makes them count: objects, journal, refs, cache, in that order."""

from __future__ import annotations

import json
import os
import time

from snapstore.git import commits, notes
from snapstore.git.objects import COMMIT
from snapstore.git.shadow import SNAPSTORE
from snapstore.timeline.documents import SessionState, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from snapstore.git.trees import Change
    from snapstore.timeline.capture import Capture
    from snapstore.timeline.store import Store
    from snapstore.worktree.journal import RefMove

DISK_REF = "refs/snapstore/disk"
MAIN = "main"


class Recorder:
    """One transaction on one session. Create it under the lock; nothing counts before `commit`."""

    def __init__(self, store: Store, session: str, capture: Capture) -> None:
        self._store = store
        self._refs = store.shadow.refs
        self._capture = capture
        self._writer = capture.writer
        self.session = session
        self.cursor_ref = f"refs/snapstore/cursor/{session}"
        self._start = self._refs.read(self.cursor_ref)
        self.cursor = self._start
        self.tree = store.shadow.commit(self.cursor).tree if self.cursor else None
        state = store.documents.session(session) or self._state_from_refs()
        self._state = state
        self._records: dict[bytes, dict[str, Any]] = {}
        self._turn: int | None = None
        self._now = store.clock()

    def add(
        self,
        kind: str,
        tree: bytes,
        subject: str,
        *,
        author: commits.Identity,
        changes: Iterable[Change],
        agent: str = "",
        turn: int | None = None,
        record: dict[str, Any] | None = None,
    ) -> bytes:
        """A commit on top of the line."""
        self._state.seq += 1
        trailers: dict[str, object] = {"Kind": kind, "Session": self.session}
        if turn is not None:
            trailers["Turn"] = turn
        trailers["Seq"] = self._state.seq
        if agent:
            trailers["Agent"] = agent
        listed = [(letter(change), change[0]) for change in changes]
        text = commits.message(subject, listed, trailers)
        parents = [self.cursor] if self.cursor else []
        seconds = max(0, int(self._now))
        data = commits.encode(tree, parents, author, SNAPSTORE, seconds, text)
        self.cursor = self._writer.add(COMMIT, data)
        self.tree = tree
        if record is not None:
            self._records[self.cursor] = {
                "format": 1,
                "kind": kind,
                "session": self.session,
                "turn": turn,
                "seq": self._state.seq,
                **record,
            }
        if turn is not None:
            self._turn = turn
        return self.cursor

    def next_turn(self) -> int:
        """The number of the next turn on this line."""
        if self._turn is None:
            self._turn = 0
            oid = self._start
            while oid is not None:  # past a few edits at most
                commit = self._store.shadow.commit(oid)
                number = commit.number("Turn")
                if number is not None:
                    self._turn = number
                    break
                oid = commit.parents[0] if commit.parents else None
        return self._turn + 1

    def commit(self, what: str, files: dict[str, bytes | None]) -> None:
        """Makes it all durable and visible, or nothing of it."""
        store, writer = self._store, self._writer
        moves: list[RefMove] = []
        disk = self._capture.disk
        if self.cursor != self._start:
            branch = self._branch()
            moves.append((branch, self._refs.read(branch), self.cursor))
            moves.append((self.cursor_ref, self._start, self.cursor))
            if self._records:
                encoded = {oid: json.dumps(record).encode() for oid, record in self._records.items()}
                old, new = store.shadow.add_notes(writer, encoded, max(0, int(self._now)))
                moves.append((notes.REF, old, new))
            files[f"sessions/{self.session}.json"] = encode(self._state)
        if disk is not None and disk != self.tree:
            # Part of the disk belongs to no commit yet (another session's open turn): a ref keeps it from any gc.
            held = self._refs.read(DISK_REF)
            if held != disk:
                moves.append((DISK_REF, held, disk))
        pack = writer.finish(keep=True)
        store.shadow.objects.added(pack)
        try:
            head = f"refs/heads/{self.session}/{self._state.branch}"
            if moves or files or self._refs.head() != head:
                store.journal.carry_out(moves, files, head=head, what=what)
        finally:
            if pack is not None:
                os.unlink(f"{pack}.keep")
        self._capture.remember()

    def _branch(self) -> str:
        """The branch this line ends in. A line that goes on from before its tip gets a branch of its own."""
        ref = f"refs/heads/{self.session}/{self._state.branch}"
        if self._refs.read(ref) == self._start:
            return ref
        taken = self._refs.list(f"refs/heads/{self.session}/")
        number = 2
        while f"refs/heads/{self.session}/{MAIN}-{number}" in taken:
            number += 1
        self._state.branch = f"{MAIN}-{number}"
        return f"refs/heads/{self.session}/{self._state.branch}"

    def _state_from_refs(self) -> SessionState:
        """The session's document was lost or never written: its refs know as much."""
        tips = self._refs.list(f"refs/heads/{self.session}/")
        seq = max((self._store.shadow.commit(tip).number("Seq") or 0 for tip in tips.values()), default=-1)
        branch = next((name.split("/")[3] for name, tip in tips.items() if tip == self._start), MAIN)
        return SessionState(self.session, branch, seq)


def letter(change: Change) -> str:
    _, old, new = change
    if old is None:
        return "A"
    if new is None:
        return "D"
    return "T" if old[0][:2] != new[0][:2] else "M"


def timestamp(seconds: float) -> str:
    """UTC, to the millisecond."""
    whole = int(seconds // 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((seconds - whole) * 1000):03d}Z"
