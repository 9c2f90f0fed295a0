"""Import a session from turns that were not recorded when they happened.

The whole session becomes visible at once, and nothing on disk is changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from stat import S_ISDIR
from typing import Any

from snapstore.base.text import timestamp
from snapstore.errors import Conflict
from snapstore.git.objects.commits import Identity
from snapstore.git.objects.ids import BLOB, EXECUTABLE, FILE, LINK, Entry
from snapstore.git.objects.pack_writer import HashOnlyWriter
from snapstore.git.objects.trees import Change
from snapstore.store.conversations import AgentSession, Conversations, ConversationState
from snapstore.store.handle import StoreHandle
from snapstore.store.state import readable
from snapstore.timeline.record.line_writer import Record
from snapstore.timeline.record.transaction import Transaction, private_mode
from snapstore.worktree.scan.blob_reader import Blobs, LeftOut

REPLAYED = "replayed"
IN_THE_WAY = "there is a link or a file in its way"
A_FOLDER = "there is a folder in its place"
A_LINK = "it is a link"
TOO_LARGE = "too large to be compared"


class ImportedTurn:
    """A past turn: its file changes and its record.

    `changes` has the bytes before and after per path, None for no file. `record` is called only when the record is
    written, so that the records of a long conversation need not be in memory together.
    """

    __slots__ = ("agent", "answer", "changes", "prompt", "record")

    def __init__(
        self,
        prompt: str,
        agent: str,
        changes: dict[bytes, tuple[bytes | None, bytes | None]],
        record: Callable[[], dict[str, Any]],
        answer: str = "",
    ) -> None:
        self.prompt = prompt
        self.answer = answer
        self.agent = agent
        self.changes = changes
        self.record = record


class Imported:
    """Result of an import: commits, and which files on disk match the last turn."""

    __slots__ = ("commits", "moved_on", "verified")

    def __init__(self) -> None:
        self.commits: list[bytes] = []
        self.verified: list[bytes] = []
        self.moved_on: list[bytes] = []


def import_session(
    store: StoreHandle, name: str, turns: Sequence[ImportedTurn], known: AgentSession | None = None
) -> Imported:
    """Create a session from past turns: a baseline, and one commit per turn.

    The baseline is the disk with the turns' files as they were before. Only the session's own refs change, in one
    transaction. `known` is the agent session that the turns come from.
    """
    with store.changing(), _Import(store, name) as step:
        return step.run(turns, known)


def refuse_known(store: StoreHandle, name: str) -> None:
    """Raise Conflict if the session exists: past turns cannot be imported into it."""
    if name in store.sessions():
        raise Conflict(
            f"session {name} already exists",
            "Nothing was imported. Choose another name with `--session NAME`.",
            session=name,
        )


class _Import(Transaction):
    """The transaction that records the imported turns."""

    def __init__(self, store: StoreHandle, session: str) -> None:
        super().__init__(store, session)
        self._disk: dict[bytes, Entry | None] = {}

    def run(self, turns: Sequence[ImportedTurn], known: AgentSession | None) -> Imported:
        refuse_known(self._store, self._session)
        self._drop_never(turns)
        self._look_at_disk(self.scan(), list(dict.fromkeys(path for turn in turns for path in turn.changes)))
        self._baseline(turns)
        imported = Imported()
        for turn in turns:
            self._edits(turn)
            imported.commits.append(self._turn(turn))
        assert self._recorder.tree is not None
        for path, entry in self._disk.items():
            same = self._trees.file(self._recorder.tree, path) == entry
            (imported.verified if same else imported.moved_on).append(path)
        if known is not None:
            self._link_agent_session(known, imported.commits[-1])
        self.commit(f"import of session {self._session}", None)
        return imported

    def _drop_never(self, turns: Sequence[ImportedTurn]) -> None:
        """Drop changes to files that are never captured."""
        why_not = self._store.policy.why_not
        for turn in turns:
            turn.changes = {path: change for path, change in turn.changes.items() if why_not(path) is None}

    def _look_at_disk(self, disk: bytes, paths: list[bytes]) -> None:
        """Read the files that the turns changed, even if ignore rules hide them."""
        states = self._capture.look(paths, disk)
        for path in paths:
            entry = states.get(path)
            if path not in states or (entry is not None and entry[0] not in (FILE, EXECUTABLE)):
                raise self._changing(path)
            self._disk[path] = entry
        if states.keys() - self._disk.keys():
            raise self._changing(min(states.keys() - self._disk.keys()))
        self._capture.disk = self._put(disk, states)

    def _changing(self, path: bytes) -> Conflict:
        return Conflict(
            f"{os.fsdecode(path)} is being changed",
            "Nothing was imported. Run the command again once nothing changes it.",
        )

    def _baseline(self, turns: Sequence[ImportedTurn]) -> None:
        first: dict[bytes, bytes | None] = {}
        for turn in turns:
            for path, (before, _) in turn.changes.items():
                first.setdefault(path, before)
        assert self._capture.disk is not None
        tree = self._put(self._capture.disk, {path: self._entry(path, data) for path, data in first.items()})
        when = timestamp(self._store.clock())
        record = {
            "started_at": when,
            "ended_at": when,
            "left_out": [{"path": path, "why": why} for path, why in sorted(self.left_out().items())],
            "first_seen": sorted(os.fsdecode(path) for path in self._capture.found.first_seen),
            "imported": True,
        }
        self._add("baseline", tree, "Baseline", self._store.user, (), record)

    def _edits(self, turn: ImportedTurn) -> None:
        """Record changes by others to the turn's files since the previous turn."""
        tree = self._recorder.tree
        assert tree is not None
        found = {path: self._entry(path, before) for path, (before, _) in turn.changes.items()}
        other = {path: entry for path, entry in found.items() if self._trees.file(tree, path) != entry}
        if other:
            result = self._put(tree, other)
            changes = list(self._trees.diff(tree, result))
            names = "1 file" if len(changes) == 1 else f"{len(changes)} files"
            self._add("edits", result, f"Edits: {names}", self._store.user, changes, {"imported": True})

    def _turn(self, turn: ImportedTurn) -> bytes:
        before = self._recorder.tree
        assert before is not None
        after = self._put(before, {path: self._entry(path, data) for path, (_, data) in turn.changes.items()})
        changes = list(self._trees.diff(before, after))
        agent = readable(turn.agent)
        more = {
            # Whether a folder existed before its first file is unknown, so an undo must not remove it.
            "empty_folders": self._folders(before, (path for path, old, _ in changes if old is None)),
            "left_folders": self._folders(after, (path for path, _, new in changes if new is None)),
            "modes": self._modes_on_disk(changes),
            "user_git": {},
        }
        author = Identity(agent, f"{agent}@snapstore")
        prompt, answer = readable(turn.prompt), readable(turn.answer)
        return self._add("turn", after, prompt, author, changes, lambda: turn.record() | more, agent, answer)

    def _add(
        self,
        kind: str,
        tree: bytes,
        subject: str,
        author: Identity,
        changes: Iterable[Change],
        record: Record,
        agent: str = "",
        answer: str = "",
    ) -> bytes:
        number = self._recorder.next_turn() if kind == "turn" else None
        return self._recorder.add(
            kind,
            tree,
            subject,
            author=author,
            changes=changes,
            agent=agent,
            turn=number,
            record=record,
            answer=answer,
        )

    def _link_agent_session(self, known: AgentSession, last: bytes) -> None:
        """Link the session to its agent session so that the conversation can continue.

        An agent session that hooks already recorded keeps its own session.
        """
        conversations = Conversations(self._store)
        if conversations.agent_session(known.id) is None:
            state = ConversationState(session=known.session, agent=known.agent, id=known.id, materialized=True)
            state.answered(last, "")
            self._state = state
            self._files |= conversations.agent_session_file(known)

    def _entry(self, path: bytes, data: bytes | None) -> Entry | None:
        """Return a tree entry for `data`, with the executable bit from the disk.

        A transcript does not say whether a file is executable.
        """
        if data is None:
            return None
        now = self._disk[path]
        return (now[0] if now is not None else FILE, self._capture.writer.add(BLOB, data))

    def _modes_on_disk(self, changes: Iterable[Change]) -> dict[str, int]:
        """Return unusual permission bits of existing files, for undo and redo."""
        rows = self._capture.found.files
        modes = {path: private_mode(rows.get(path)) for path, old, new in changes if old is None or new is None}
        return {os.fsdecode(path): mode for path, mode in modes.items() if mode is not None}

    def _folders(self, tree: bytes, paths: Iterable[bytes]) -> list[str]:
        return sorted({os.fsdecode(folder) for path in paths for folder in self._trees.missing(tree, path)})


# Reading the disk before a store exists.


class _BlobReader(HashOnlyWriter):
    """A writer that keeps the one blob it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.data: bytes | None = None

    def add(self, kind: bytes, data: bytes, oid: bytes | None = None) -> bytes:
        self.data = data
        return super().add(kind, data, oid)


def read_files(root: bytes, paths: Iterable[bytes]) -> dict[bytes, bytes | str | None]:
    """Return per path its bytes, None for no file, or the reason it cannot be read.

    No link is followed.
    """
    return {path: _read(root, path) for path in paths}


def _read(root: bytes, path: bytes) -> bytes | str | None:
    prefix = root.rstrip(b"/") + b"/"
    try:
        parts = path.split(b"/")
        for depth in range(1, len(parts)):
            if not S_ISDIR(os.lstat(prefix + b"/".join(parts[:depth])).st_mode):
                return IN_THE_WAY
        if S_ISDIR(os.lstat(prefix + path).st_mode):
            return A_FOLDER
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    writer = _BlobReader()
    try:
        taken = Blobs(root, writer).take(path)
    except LeftOut as why:
        return str(why.args[0])
    if taken is None:
        return None
    if taken[0][0] == LINK:
        return A_LINK
    return writer.data if writer.data is not None else TOO_LARGE
