"""Run one transaction of a session: scan, attribute each change, and commit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from stat import S_IMODE, S_ISREG
from typing import Any, Self

from snapstore.base.text import timestamp
from snapstore.git.objects.commits import Identity
from snapstore.git.objects.ids import Entry
from snapstore.git.objects.trees import Change
from snapstore.git.ref_names import HEADS
from snapstore.store.conversations import AgentSession, Conversations, ConversationState
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove, unspell_entry
from snapstore.store.state import OpenTurn, encode
from snapstore.timeline.capture.disk_snapshot import Capture
from snapstore.timeline.record.conversation import prompted
from snapstore.timeline.record.line_writer import LineWriter
from snapstore.worktree.scan.case_folding import spelling_on_disk
from snapstore.worktree.scan.compare import ORDINARY, is_file, with_parents
from snapstore.worktree.scan.stat_cache import FileStat, private_in, scans_in
from snapstore.worktree.usergit import repository

States = dict[bytes, Entry | None]

DONE, INTERRUPTED = "done", "interrupted"
NAMED, SCANNED = "named", "scanned"
_MEMO = "user-git.json"


class Transaction:
    """One transaction under the store's lock; nothing is visible before `commit`."""

    def __init__(self, store: StoreHandle, session: str) -> None:
        self._store = store
        self._shadow = store.shadow
        self._trees = store.shadow.trees
        self._session = session
        self._capture = Capture(store)
        self._recorder = LineWriter(store, session, self._capture)
        self._others = store.open_turns(besides=session)  # this transaction may have to update their documents
        self._files: dict[str, bytes | None] = {}
        self._refs: list[RefMove] = []
        self._state: ConversationState | None = None
        self._closed: bytes | None = None  # the turn that this transaction ends

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if error is not None:
            self._capture.writer.abandon()

    @property
    def cursor(self) -> bytes:
        assert self._recorder.cursor is not None
        return self._recorder.cursor

    def scan(self, since: OpenTurn | None = None) -> bytes:
        """Return the tree of the disk, as seen from the start of turn `since` if given."""
        disk = self._capture.scan(self._recorder.tree, since.scan if since is not None else 0)
        for other in self._others:
            other.first_seen += [os.fsdecode(path) for path in self._capture.found.first_seen]
        return disk

    def commit(self, what: str, turn: OpenTurn | None) -> None:
        """Make the transaction visible; `turn` becomes the session's open turn."""
        if turn is not None or self._store.open_turn(self._session) is not None:
            self._files[f"open/{self._session}.json"] = encode(turn) if turn is not None else None
        for other in self._others:
            self._files[f"open/{other.session}.json"] = encode(other)
        if self._state is not None:
            self._files[f"conversations/{self._session}.json"] = encode(self._state)
        self._recorder.commit(what, self._files, refs=self._refs)

    def drop_autosave(self, turn: OpenTurn) -> None:
        """Remove the autosaved commit of a turn that ends with this transaction."""
        if turn.saved_at:
            from snapstore.timeline.record.autosave import drop_move

            self._refs += drop_move(self._store, turn)

    def scans(self) -> int:
        return scans_in(self._capture.found.coverage)

    def left_out(self) -> dict[str, str]:
        """Return changed files that could not be captured since the last scan, and why."""
        return {os.fsdecode(path): why for path, why in self._capture.found.newly_left_out.items()}

    def record_edits(self, tree: bytes) -> None:
        """Record changes by others as an edits commit, or a new session's baseline."""
        left_out = _listed(self.left_out())
        when = timestamp(self._store.clock())
        recorder, user = self._recorder, self._store.user
        first_seen = sorted(os.fsdecode(path) for path in self._capture.found.first_seen)
        if recorder.tree is None and not self._store.shadow.refs.list(HEADS):
            first_seen = []  # in the first record of a store, no file can be older than its first scan
        record: dict[str, Any] | None = None
        if left_out or first_seen:
            record = {"started_at": when, "ended_at": when, "left_out": left_out, "first_seen": first_seen}
        if recorder.tree is None:
            recorder.add("baseline", tree, "Baseline", author=user, changes=(), record=record)
            return
        changes = list(self._trees.diff(recorder.tree, tree))
        if any(not is_file(new) for _, _, new in changes):
            self._store.cache.load()  # for the permission bits of removed files; a touch has not loaded it
        modes = self._modes(changes, {})
        if modes:
            record = {**(record or {"started_at": when, "ended_at": when}), "modes": modes}
        if changes:
            names = "1 file" if len(changes) == 1 else f"{len(changes)} files"
            recorder.add("edits", tree, f"Edits: {names}", author=user, changes=changes, record=record)

    def name(self, turn: OpenTurn, paths: Iterable[bytes], *, after: bool) -> None:
        """Name files that the turn writes; record earlier changes by others as edits."""
        before = self._merge_other_sessions(turn)
        known = set(turn.named)
        fresh = [path for path in dict.fromkeys(paths) if os.fsdecode(path) not in known]
        if not after:
            self._note_empty_folders(turn, before, fresh)
        states = self._capture.look(fresh, before)
        if not after:
            modes = {path: private_mode(self._capture.found.files.get(path)) for path in states}
            turn.modes |= {os.fsdecode(path): mode for path, mode in modes.items() if mode is not None}
        made = self._made_by_others(turn, before, states, after)
        if made:
            result = self._put(before, made)
            self._capture.apply(made, before, result)
            self.record_edits(result)
        turn.named += [os.fsdecode(path) for path in fresh]
        turn.left_out = self._still_left_out(turn, states)

    def record_others(self, turn: OpenTurn) -> None:
        """Record changes by others since the turn began as edits.

        Call before the turn's first program runs. Until then the turn has named everything it wrote, so all other
        changes come from others. Afterwards a scan attributes every change to the turn.
        """
        before = self._merge_other_sessions(turn)
        disk = self.scan(turn)
        named = [os.fsencode(path) for one in (turn, *self._others) for path in one.named]
        theirs = {path: new for path, _, new in self._trees.diff(before, disk) if not _below_any(path, named)}
        self.record_edits(self._put(before, theirs))

    def record_turn(self, turn: OpenTurn, found_by: str, status: str, record: dict[str, Any]) -> bytes:
        """Record the turn and what belongs before it; return the turn's commit."""
        recorder, found = self._recorder, self._capture.found
        assert recorder.tree is not None
        self.drop_autosave(turn)
        named = [os.fsencode(path) for path in turn.named]
        states: States = self._capture.look(named, recorder.tree) if found_by == NAMED else {}
        first_seen = {path for path in found.first_seen if not self._was_known(turn, recorder.tree, path)}
        first_seen |= {os.fsencode(path) for path in turn.first_seen}
        before = self._put(recorder.tree, self._states_before(turn, recorder.tree, first_seen))
        if found_by == NAMED:
            after = self._put(before, states)
            self._capture.apply(states, before, after)
        else:
            after, states = self._scanned(turn, before, named)
        changes = list(self._trees.diff(before, after))
        self.record_edits(before)
        oid = recorder.add(
            "turn",
            after,
            turn.prompt,
            author=Identity(turn.agent, f"{turn.agent}@snapstore"),
            changes=changes,
            agent=turn.agent,
            turn=recorder.next_turn(),
            record={
                "prompt": turn.prompt,
                "replies": [],
                "thinking": [],
                "tool_calls": [],
                "lines": [],
                **record,
                "agent": turn.agent,
                "started_at": timestamp(turn.started_at),
                "ended_at": timestamp(self._store.clock()),
                "status": status,
                "found_by": found_by,
                "left_out": _listed({**self._still_left_out(turn, states), **self._lost()}),
                "first_seen": sorted(os.fsdecode(path) for path in first_seen),
                "beside": self._overlapping_sessions() if changes and found_by == SCANNED else [],
                "empty_folders": self._empty_folders(turn, before, changes),
                "left_folders": self._left_folders(after, changes),
                "modes": self._modes(changes, turn.modes),
                "user_git": repository.compare(turn.user_git or {}, self.observe() or {}),
            },
        )
        self._closed = oid
        for other in self._others:
            other.captured_by_others.append(oid.hex())
        if turn.origin:
            state = self._conversation()
            if state is not None:
                state.answered(oid, turn.origin.get("prompt_id", ""))
        return oid

    def amend(self, commit: bytes, record: dict[str, Any]) -> None:
        """Add fields to the record of a turn."""
        self._recorder.amend(commit, record)

    def take_up(self, known: AgentSession) -> None:
        """Continue the conversation with a prompt in this agent session."""
        state = self._conversation() or ConversationState(session=known.session, agent=known.agent, id=known.id)
        state.switch_to(known)
        prompted(state, self._store, self._closed)
        self._state = state
        self._files[f"agents/{known.id}.json"] = encode(known)

    def _conversation(self) -> ConversationState | None:
        """Return the state of the session's conversation; `commit` writes it."""
        if self._state is None:
            self._state = Conversations(self._store).state(self._session)
        return self._state

    def observe(self) -> dict[str, Any] | None:
        """Return the state of the user's repository; a memo saves reading its index."""
        repo = self._store.user_repo()
        if repo is None:
            return None
        memo = self._store.documents.optional(_MEMO)
        observed, fresh = repository.observe(repo, memo)
        if fresh != memo:
            self._files[_MEMO] = json.dumps(fresh).encode()
        return observed

    # Attribution: who made which change.

    def _merge_other_sessions(self, turn: OpenTurn) -> bytes:
        """Return the tree this turn continues from, with what other sessions recorded since.

        They are merged now, because at the end of the turn their older states would replace edits made since.
        """
        tree = self._recorder.tree
        assert tree is not None
        if turn.captured_by_others:
            tree = self._put(tree, self._states_before(turn, tree, set()))
            self.record_edits(tree)
            turn.captured_by_others = []
        return tree

    def _states_before(self, turn: OpenTurn, before: bytes, first_seen: set[bytes]) -> States:
        """Return the states to record before the turn, because they are not its own changes.

        These are the results of other sessions' turns that ended meanwhile, and files whose earlier state is unknown.
        """
        states: States = {}
        for done in turn.captured_by_others:
            if isinstance(done, list):
                states.update((os.fsencode(path), unspell_entry(entry)) for path, entry in done)
                continue
            commit = self._shadow.commit(bytes.fromhex(done))
            parent = self._shadow.commit(commit.parents[0])
            states.update((path, new) for path, _, new in self._trees.diff(parent.tree, commit.tree))
        disk = self._capture.disk
        if disk is not None:
            for path in first_seen:
                if os.fsdecode(path) not in turn.first_seen or self._trees.file(before, path) is None:
                    states[path] = self._trees.file(disk, path)
        return states

    def _was_known(self, turn: OpenTurn, before: bytes, path: bytes) -> bool:
        """Return whether the state of a first-seen `path` before the turn is known.

        The state is known if the file was named before the write, or if a file was where its folder is now.
        """
        named = [os.fsencode(name) for name in turn.named if name not in turn.first_seen]
        above = self._trees.missing(before, path)
        return _below_any(path, named) or any(self._trees.file(before, folder) for folder in above)

    def _note_empty_folders(self, turn: OpenTurn, before: bytes, paths: Iterable[bytes]) -> None:
        """Note existing folders without captured files: an undo must not remove them."""
        for path in paths:
            there = [folder for folder in self._trees.missing(before, path) if self._is_folder(folder)]
            turn.empty_folders += [os.fsdecode(folder) for folder in there]

    def _empty_folders(self, turn: OpenTurn, before: bytes, changes: Iterable[Change]) -> list[str]:
        """Return the folders that existed, without files, before the turn wrote into them."""
        listed = self._store.cache.folders
        found = set(turn.empty_folders)
        for path, old, _ in changes:
            if old is None:
                found.update(os.fsdecode(folder) for folder in self._trees.missing(before, path) if folder in listed)
        return sorted(found)

    def _left_folders(self, after: bytes, changes: Iterable[Change]) -> list[str]:
        """Return the folders that lost their last file in the turn and still exist."""
        gone = {folder for path, _, new in changes if new is None for folder in self._trees.missing(after, path)}
        return sorted(os.fsdecode(folder) for folder in gone if self._is_folder(folder))

    def _modes(self, changes: Iterable[Change], noted: dict[str, int]) -> dict[str, int]:
        """Return unusual permission bits of files and folders created or removed.

        A tree cannot hold these bits, and a key that only its owner may read must not be restored readable for
        everybody. The bits of a removed file come from the rows of the previous scan or were noted at a touch.
        """
        found: dict[str, int] = {}
        before, now = private_in(self._store.cache.coverage), private_in(self._capture.found.coverage)
        for path, old, new in changes:
            name = os.fsdecode(path)
            mode = None
            if not is_file(old):
                mode = private_mode(self._capture.found.files.get(path))
            elif not is_file(new):
                mode = noted.get(name, private_mode(self._store.cache.files.get(path)))
            folders = now if old is None else before if new is None else {}
            if folders:
                found |= {os.fsdecode(top): folders[top] for top in with_parents(path)[1:] if top in folders}
            if mode is not None:
                found[name] = mode
        return found

    def _is_folder(self, path: bytes) -> bool:
        full = os.path.join(self._store.root, path)
        return os.path.isdir(full) and not os.path.islink(full) and spelling_on_disk(self._store.root, path) == path

    def _still_left_out(self, turn: OpenTurn, taken: States) -> dict[str, str]:
        """Return the files left out so far, except those captured because they were named."""
        left_out = {**turn.left_out, **self.left_out()}
        return {path: why for path, why in left_out.items() if taken.get(os.fsencode(path)) is None}

    def _overlapping_sessions(self) -> list[str]:
        """Return sessions with open turns whose changes this scan may include."""
        return sorted(one.session for one in self._others if one.shell or (one.origin or {}).get("tells") != "before")

    def _lost(self) -> dict[str, str]:
        """Return files that were never recorded and no longer exist, and why."""
        return {os.fsdecode(path): why for path, why in self._capture.found.lost.items()}

    def _scanned(self, turn: OpenTurn, before: bytes, named: list[bytes]) -> tuple[bytes, States]:
        """Return the turn's tree after a scan, and the states of unseen named files.

        The tree is the disk without the files that other open turns have named.
        """
        capture, trees = self._capture, self._trees
        assert capture.disk is not None
        after = capture.disk
        theirs = [os.fsencode(path) for path in {path for other in self._others for path in other.named}]
        theirs = [path for path in theirs if path not in named]
        if any(trees.lookup(before, path) != trees.lookup(after, path) for path in theirs):
            mine = {path: new for path, _, new in trees.diff(before, after) if not _below_any(path, theirs)}
            after = self._put(before, mine)
        # The scan does not see a named file that is ignored or too large.
        unseen = [path for path in named if trees.lookup(after, path) is None or path in capture.found.left_out]
        states = capture.look(unseen, before)
        capture.disk = self._put(capture.disk, states)
        return self._put(after, states), states

    def _made_by_others(self, turn: OpenTurn, before: bytes, states: States, after: bool) -> States:
        """Return the states found at a touch that others made.

        Before the write, and before any program ran, every difference comes from others. After the write, only a file
        that no scan could have seen counts as older than the turn, and is recorded as first seen.
        """
        made: States = {}
        for path, state in states.items():
            known = self._trees.file(before, path)
            if state == known:
                continue
            if after:
                if known is None and not self._capture.covered(path):
                    made[path] = state
                    turn.first_seen.append(os.fsdecode(path))
            elif not turn.shell:
                made[path] = state
                if known is None and not self._capture.covered(path):
                    self._capture.found.first_seen.add(path)  # the earlier state is unknown
        return made

    def _put(self, tree: bytes, states: States) -> bytes:
        return self._trees.rewrite(self._capture.writer, tree, states) if states else tree


def _below_any(path: bytes, tops: Iterable[bytes]) -> bool:
    return any(path == top or path.startswith(top + b"/") for top in tops)


def private_mode(row: FileStat | None) -> int | None:
    """Return the permission bits of a file, or None if they are what a umask leaves."""
    if row is None or not S_ISREG(row[4]):
        return None
    mode = S_IMODE(row[4]) & 0o777
    return mode if mode not in ORDINARY else None


def _listed(left_out: dict[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in sorted(left_out.items())]
