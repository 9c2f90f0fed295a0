"""Write commits on one session's line: objects, journal, refs, then cache."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from snapstore.errors import SnapstoreError
from snapstore.git.maintenance import fold
from snapstore.git.objects import commits, notes
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, TREE, object_id
from snapstore.git.objects.trees import Change, letter
from snapstore.git.ref_names import DISK_REF, MAIN, branch_ref, cursor_ref
from snapstore.git.repository import SNAPSTORE
from snapstore.store import branch_titles
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.store.state import SessionState, encode
from snapstore.timeline.capture.disk_snapshot import Capture
from snapstore.timeline.history import raw_lines
from snapstore.timeline.history.commit_cache import row_of
from snapstore.timeline.history.nodes import held_refs, highest_seq
from snapstore.timeline.history.operations import cursor_value
from snapstore.timeline.history.turn_cache import LONGEST_RECORD, MOST_TOUCHED, TurnCache, replies_in, turns_file
from snapstore.timeline.record.redact import Redactor
from snapstore.worktree.write.file_moves import FileMove
from snapstore.worktree.write.writer import Writer

Record = dict[str, Any] | Callable[[], dict[str, Any]]


class LineWriter:
    """One transaction on one session; create it under the lock.

    Nothing is visible before `commit`.
    """

    def __init__(self, store: StoreHandle, session: str, capture: Capture) -> None:
        self._store = store
        self._refs = store.shadow.refs
        self._capture = capture
        self._writer = capture.writer
        self.session = session
        self.cursor_ref = cursor_ref(session)
        value = self._cursor_value = cursor_value(store, session)
        foreign = store.foreign()
        self._start = self._refs.read(value) if isinstance(value, str) else value
        if isinstance(value, str) and self._start is None:
            git = f"git --git-dir {store.shadow.git_dir}"
            store.log(f"{value} was deleted: `{git} fsck --lost-found` lists its last commit until a gc removes it")
        if value is None and foreign.refs:
            newest = foreign.newest(store.shadow, session)
            self._start = newest[1] if newest is not None else None
        # The branch that the line continues. For a branch of another machine it is None: the line gets its own branch.
        self._branch_ref = value if isinstance(value, str) and value not in foreign.refs else None
        self.cursor = self._start
        self.tree = store.shadow.commit(self._start).tree if self._start else None
        capture.held.trust(self.tree)
        self._state = store.documents.session(session) or self._state_from_refs()
        self._seq: int | None = None  # the last number assigned; looked up when the first one is needed
        self._left_branch = self._state.branch  # the branch that a new branch starts from, never archived by it
        self._messages: list[str] = []  # messages for the user, shown once the transaction is done
        self._new_branch_ref: str | None = None
        self._records: dict[bytes, tuple[dict[str, Any], Record]] = {}  # by commit: our own fields, and the rest
        self._turn: int | None = None
        self._title = ""  # of the branch, if this is its first turn
        self._now = store.clock()
        self._turns = TurnCache(turns_file(store.state, session))

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
        record: Record | None = None,
        answer: str = "",
    ) -> bytes:
        """Add a commit on top of the line and return its id.

        `record` may be a function that makes the record when it is written, so that the records of a long conversation
        need not be in memory together.
        """
        if tree == EMPTY_TREE:
            self._writer.add(TREE, b"")  # git knows the empty tree without storing it, but `git fsck` wants to find it
        self._seq = self._last_seq() + 1
        trailers: dict[str, object] = {"Kind": kind, "Session": self.session}
        if turn is not None:
            trailers["Turn"] = turn
        trailers["Seq"] = self._seq
        if agent:
            trailers["Agent"] = agent
        found = list(changes)
        # An object from the tree of another session or branch may lose the only ref that reaches it.
        self._capture.held.keep(self._writer, ((path, new) for path, _, new in found))
        listed = [(letter(change), change[0]) for change in found]
        text = commits.message(subject, listed, trailers, answer=answer or _answer(record))
        parents = [self.cursor] if self.cursor else []
        seconds = max(0, int(self._now))
        data = commits.encode(tree, parents, author, SNAPSTORE, seconds, text)
        parent, self.cursor = self.cursor, self._writer.add(COMMIT, data)
        row = {self.cursor: row_of(self.cursor, commits.parse(data, self.cursor))}
        known = parent is not None and len(found) <= MOST_TOUCHED
        self._turns.add(row, {self.cursor: tuple(found)} if known else None)
        self.tree = tree
        if record is not None:
            head = {"format": 1, "kind": kind, "session": self.session, "turn": turn, "seq": self._seq}
            self._records[self.cursor] = (head, record)
        if turn is not None:
            if kind == "turn" and not self._title and self._may_be_first(turn):
                self._title = subject
            self._turn = turn
        return self.cursor

    def _may_be_first(self, turn: int) -> bool:
        """Return whether a turn may be the first of its branch.

        Edits before the turn may have begun the branch.
        """
        if turn == 1 or self._branch_ref is None:
            return True
        return self._start is not None and self._store.shadow.commit(self._start).trailers.get("Kind") != "turn"

    def amend(self, commit: bytes, record: dict[str, Any]) -> None:
        """Add fields to the record of an existing commit."""
        note = self._store.shadow.note(commit)
        if note is not None:
            known = raw_lines.with_lines(self._store.shadow, commit, json.loads(note))
            self._records[commit] = (known, record)

    def next_turn(self) -> int:
        """Return the number of the next turn on this line."""
        if self._turn is None:
            self._turn = 0
            oid = self._start
            while oid is not None:  # skips a few edits at most
                commit = self._store.shadow.commit(oid)
                number = commit.number("Turn")
                if number is not None:
                    self._turn = number
                    break
                oid = commit.parents[0] if commit.parents else None
        return self._turn + 1

    def commit(
        self,
        what: str,
        files: dict[str, bytes | None],
        *,
        refs: Iterable[RefMove] = (),
        moves: Sequence[FileMove] = (),
        restore: Writer | None = None,
    ) -> dict[bytes, os.stat_result | None]:
        """Make the transaction durable and visible as a whole, or not at all.

        `refs` and `moves` (changes of the user's files) are part of the transaction.
        """
        store, writer = self._store, self._writer
        ref_moves: list[RefMove] = list(refs)
        disk = self._capture.disk
        branch = self._branch_ref
        if self.cursor != self._start:
            if branch is not None:
                ref_moves.append((branch, self._start, self.cursor))
            else:
                branch = self.branch()
                ref_moves += [(branch, None, self.cursor), (self.cursor_ref, self._cursor_value, branch)]
                files[f"sessions/{self.session}.json"] = encode(self._state)
                ref_moves += self._archive_oldest(files)
        elif self._cursor_value is None and self._start is not None:
            ref_moves.append((self.cursor_ref, None, self._start))  # a later pull must not move the session
        if self._records:
            for ref, blobs in self._notes().items():
                ref_moves.append((ref, *store.shadow.add_notes(writer, ref, blobs, max(0, int(self._now)))))
        head = self._refs.value("HEAD")
        if branch is not None and head != branch:
            ref_moves.append(("HEAD", head, branch))
        if disk is not None and disk != self.tree:
            # Part of the disk is in no commit yet (another session's open turn): a ref protects these objects from gc.
            held = self._refs.read(DISK_REF)
            if held != disk:
                ref_moves.append((DISK_REF, held, disk))
        pack = store.shadow.objects.finish(writer)
        stats: dict[bytes, os.stat_result | None] = {}
        try:
            if ref_moves or files:
                stats = store.journal.carry_out(ref_moves, files, what=what, moves=moves, writer=restore)
        except BaseException:
            self._discard(pack, ref_moves)
            raise
        for text in self._messages:
            store.say(text)
        self._afterwards(lambda: store.shadow.objects.release(pack))
        self._afterwards(self._capture.remember)
        self._afterwards(self._turns.keep)
        if self._title and branch is not None:
            branch_titles.describe(store.shadow, store.log, branch, self._title)
        self._afterwards(self._tidy)
        return stats

    def _tidy(self) -> None:
        folded = fold.tidy(self._store.shadow.objects)
        if folded or (self._turn is not None and self._store.header.max_store_size):
            self._store.after_commit(folded=folded)

    def _notes(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """Store the records and raw lines; return (commit, blob) pairs per notes ref."""
        scrub, add = self._redactor(), self._writer.add
        found: dict[str, list[tuple[bytes, bytes]]] = {notes.REF: []}
        for oid, (head, record) in self._records.items():
            whole = {**head, **(record() if callable(record) else record)}
            note_fields, lines = raw_lines.take_out(scrub.record(whole) if scrub is not None else whole)
            note = json.dumps(note_fields).encode()
            if len(note) <= LONGEST_RECORD:
                self._turns.add(replies={object_id(BLOB, note): replies_in(note)})
            found[notes.REF].append((oid, add(BLOB, note)))
            if lines is not None:
                found.setdefault(notes.TRANSCRIPTS, []).append((oid, add(BLOB, lines)))
        return found

    def _redactor(self) -> Redactor | None:
        """Return a redactor for never-captured files, None without such patterns.

        The content of a file that is never captured must not be stored as part of the conversation either.
        """
        policy = self._store.policy
        if not policy.never_capture:
            return None
        return Redactor(self._store.root, policy.is_never_captured, policy.never_capture)

    def _discard(self, pack: str | None, moves: list[RefMove]) -> None:
        """Give up the pack of a failed transaction unless a ref or journal needs it."""
        try:
            needed = self._store.journal.pending() or any(self._refs.value(name) == new for name, _, new in moves)
        except (OSError, SnapstoreError):
            needed = True
        if not needed:
            self._store.shadow.objects.give_up(pack, retried=True)

    def _afterwards(self, work: Callable[[], object]) -> None:
        """Run optional work after the commit and log its failure.

        The work only saves time later and must not make a recorded turn look failed. A full disk often fails here.
        """
        try:
            work()
        except Exception as error:  # the turn is recorded, whatever fails here
            self._store.log(f"after recording: {type(error).__name__}: {error}")

    def branch(self) -> str:
        """Return the ref of the branch that the line continues, or of a new branch."""
        if self._branch_ref is not None:
            return self._branch_ref
        if self._new_branch_ref is None:
            self._new_branch_ref = self._new_branch()
        return self._new_branch_ref

    def _new_branch(self) -> str:
        """Choose the branch of a line that does not continue a tip; update the state.

        The name is `main` for the session's first branch. Names of archived and deleted branches are not reused,
        because these branches can be restored.
        """
        taken = {name.rpartition("/")[2] for name in held_refs(self._store.shadow, self.session)}
        name, number = MAIN, 1
        while name in taken:
            number += 1
            name = f"{MAIN}-{number}"
        self._state.branch = name
        self._state.floor = max(self._state.floor, highest_seq(self._store, self.session))
        return branch_ref(self.session, name)

    def _archive_oldest(self, files: dict[str, bytes | None]) -> list[RefMove]:
        """Archive the oldest branches beyond the limit; a failure never fails the turn."""
        from snapstore.timeline.record.branch_limit import archive_oldest

        try:
            moves, self._messages = archive_oldest(self._store, self.session, files, keep=self._left_branch)
        except SnapstoreError as error:
            self._store.log(f"the oldest branch stays in the list: {error}")
            return []
        return moves

    def _state_from_refs(self) -> SessionState:
        """Derive the session's state from its refs, if its document is missing."""
        value = self._cursor_value
        branch = value.rpartition("/")[2] if isinstance(value, str) else MAIN
        return SessionState(session=self.session, branch=branch, floor=highest_seq(self._store, self.session))

    def _last_seq(self) -> int:
        if self._seq is not None:
            return self._seq
        if self._start is None or self._branch_ref is not None:
            own = (self._store.shadow.commit(self._start).number("Seq") or 0) if self._start else -1
        else:  # the line starts before a tip, so its last commit does not have the highest number
            own = highest_seq(self._store, self.session)
        return max(self._state.floor, own)


def _answer(record: Record | None) -> str:
    """Return the last reply in `record`; "" if the record is a function."""
    replies = record.get("replies") if isinstance(record, dict) else None
    return replies[-1] if replies and isinstance(replies[-1], str) else ""
