"""A session and the life of its turns: begin, touch, end, cancel."""

from __future__ import annotations

import json
import os

from snapstore.errors import Busy, Unknown, Unsafe
from snapstore.git.commits import Identity
from snapstore.timeline.capture import Capture
from snapstore.timeline.documents import OpenTurn, encode, timestamp
from snapstore.timeline.recorder import Recorder
from snapstore.worktree import platform, usergit
from snapstore.worktree.names import unsafe_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from snapstore.git.objects import Entry
    from snapstore.git.trees import Change
    from snapstore.timeline.store import Store

DONE, INTERRUPTED = "done", "interrupted"
NAMED, SCANNED = "named", "scanned"
_MEMO = "user-git.json"


class Session:
    """One conversation, or one person at a shell. It owns one tree of turns."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name

    def begin(self, prompt: str = "", *, agent: str = "agent", hold: bool = False) -> Turn:
        """Opens a turn: what other hands changed since the last one becomes a commit of its own.

        A turn left open is closed as interrupted first. With `hold` the turn belongs to this process, and nobody can
        begin another in the session while the process lives.
        """
        store = self.store
        with store.changing():
            left = store.open_turn(self.name)
            if left is not None and _held(left):
                raise Busy(
                    f"a turn of session {self.name} is open in process {left.owner and left.owner[0]}",
                    "Wait for it to end, or use another --session.",
                    session=self.name,
                )
            capture = Capture(store)
            try:
                recorder = Recorder(store, self.name, capture)
                disk = capture.scan(recorder.tree)
                others = self._others()
                files: dict[str, bytes | None] = {}
                if left is not None:
                    self._record_turn(recorder, capture, left, others, SCANNED, INTERRUPTED, {})
                    store.say(f"closed the turn left open in session {self.name} as interrupted")
                elif capture.found.first_seen:
                    for other in others:
                        other.first_seen += [os.fsdecode(path) for path in capture.found.first_seen]
                self._record_edits(recorder, capture, disk)
                assert recorder.cursor is not None
                observed, memo = self._observe()
                if memo is not None:
                    files[_MEMO] = memo
                turn = OpenTurn(
                    session=self.name,
                    prompt=prompt,
                    agent=agent,
                    started_at=store.clock(),
                    before=recorder.cursor.hex(),
                    owner=[os.getpid(), platform.process_started(os.getpid())] if hold else None,
                    user_git=observed,
                )
                files[f"open/{self.name}.json"] = encode(turn)
                _add_others(files, others)
                recorder.commit(f"begin of a turn in session {self.name}", files)
            except BaseException:
                capture.writer.abandon()
                raise
        return Turn(self)

    def take_baseline(self) -> None:
        """The session's root node: the tree when its tracking began."""
        with self.store.changing():
            capture = Capture(self.store)
            try:
                recorder = Recorder(self.store, self.name, capture)
                self._record_edits(recorder, capture, capture.scan(recorder.tree))
                recorder.commit(f"baseline of session {self.name}", {})
            except BaseException:
                capture.writer.abandon()
                raise

    def turn(self, prompt: str = "", *, agent: str = "agent") -> Turn:
        """`with session.turn("…") as turn:` — begun here, ended at the end of the block."""
        return self.begin(prompt, agent=agent, hold=True)

    def open_turn(self) -> Turn:
        """The turn that is open in this session, whoever began it."""
        if self.store.open_turn(self.name) is None:
            raise self._nothing_open()
        return Turn(self)

    def touch(
        self, paths: Iterable[str | bytes | os.PathLike[str]], *, after: bool = False, shell: bool = False
    ) -> None:
        """Names files the open turn writes: before the write, so that their state before is known, or (`after`) once
        it has happened. `shell` says that a program ran which may have changed anything: the turn will scan."""
        store = self.store
        wanted = [self._inside(path) for path in paths]
        with store.changing():
            turn = self._opened()
            capture = Capture(store)
            try:
                recorder = Recorder(store, self.name, capture)
                assert recorder.tree is not None
                known = set(turn.named)
                fresh = [path for path in dict.fromkeys(wanted) if os.fsdecode(path) not in known]
                states = capture.look(fresh, recorder.tree)
                others_made = self._made_by_others(turn, capture, recorder.tree, states, after)
                if others_made:
                    result = self._put(capture, recorder.tree, others_made)
                    capture.apply(others_made, recorder.tree, result)
                    self._record_edits(recorder, capture, result)
                assert recorder.cursor is not None
                turn.before = recorder.cursor.hex()
                turn.named += [os.fsdecode(path) for path in fresh]
                turn.left_out.update({os.fsdecode(path): why for path, why in capture.found.newly_left_out.items()})
                turn.shell = turn.shell or shell
                recorder.commit(f"touch in session {self.name}", {f"open/{self.name}.json": encode(turn)})
            except BaseException:
                capture.writer.abandon()
                raise

    def end(self, *, scan: bool | None = None, status: str = DONE, **record: Any) -> bytes:
        """Closes the open turn and gives its commit. It scans unless every change was named (`scan` overrules);
        `record` is what is to be remembered of the conversation: replies, thinking, tool_calls, lines."""
        store = self.store
        with store.changing():
            turn = self._opened()
            capture = Capture(store)
            try:
                recorder = Recorder(store, self.name, capture)
                if scan if scan is not None else turn.shell or not turn.named:
                    capture.scan(recorder.tree)
                    found_by = SCANNED
                else:
                    found_by = NAMED
                others = self._others()
                oid = self._record_turn(recorder, capture, turn, others, found_by, status, record)
                files: dict[str, bytes | None] = {f"open/{self.name}.json": None}
                _add_others(files, others)
                recorder.commit(f"end of a turn in session {self.name}", files)
            except BaseException:
                capture.writer.abandon()
                raise
        return oid

    def cancel(self) -> None:
        """Forgets the open turn. What it changed stays on disk, and is recorded as edits by the next."""
        with self.store.changing():
            self._opened()
            self.store.journal.carry_out(
                [], {f"open/{self.name}.json": None}, what=f"cancel of a turn in session {self.name}"
            )

    # What a turn changed, and what others did meanwhile.

    def _record_turn(
        self,
        recorder: Recorder,
        capture: Capture,
        turn: OpenTurn,
        others: list[OpenTurn],
        found_by: str,
        status: str,
        record: dict[str, Any],
    ) -> bytes:
        store, trees = self.store, self.store.shadow.trees
        before = recorder.tree
        assert before is not None
        named = [os.fsencode(path) for path in turn.named]
        first_seen = capture.found.first_seen | {os.fsencode(path) for path in turn.first_seen}
        states: dict[bytes, Entry | None] = {}
        if found_by == NAMED:
            states = capture.look(named, before)
        settled = self._captured_by_others(turn)
        for path in first_seen:
            if capture.disk is not None and (path in capture.found.first_seen or trees.file(before, path) is None):
                settled[path] = trees.file(capture.disk, path)
        before = self._put(capture, before, settled)
        if found_by == NAMED:
            after = self._put(capture, before, states)
            capture.apply(states, before, after)
            changes = list(trees.diff(before, after))
        else:
            assert capture.disk is not None
            claimed = {path for other in others for path in other.named} - set(turn.named)
            hidden = [os.fsencode(path) for path in claimed]
            after = capture.disk
            if any(trees.lookup(before, path) != trees.lookup(after, path) for path in hidden):
                mine = {path: new for path, _, new in trees.diff(before, after) if not _below_any(path, hidden)}
                after = self._put(capture, before, mine)
            # Named files may lie where the scan does not look: ignored, or too large.
            states = capture.look(
                [path for path in named if trees.lookup(after, path) is None or _stale(capture, path)], before
            )
            if states:
                capture.disk = self._put(capture, capture.disk, states)
                after = self._put(capture, after, states)
            changes = list(trees.diff(before, after))
        if before != recorder.tree:
            assert recorder.tree is not None
            self._record_edits(recorder, capture, before)
        left_out = {
            **turn.left_out,
            **{os.fsdecode(p): why for p, why in capture.found.newly_left_out.items()},
        }
        now = store.clock()
        agent = turn.agent
        oid = recorder.add(
            "turn",
            after,
            turn.prompt,
            author=Identity(agent, f"{agent}@snapstore"),
            changes=changes,
            agent=agent,
            turn=recorder.next_turn(),
            record={
                "prompt": turn.prompt,
                "replies": [],
                "thinking": [],
                "tool_calls": [],
                "lines": [],
                **record,
                "agent": agent,
                "started_at": timestamp(turn.started_at),
                "ended_at": timestamp(now),
                "status": status,
                "found_by": found_by,
                "left_out": [{"path": path, "why": why} for path, why in sorted(left_out.items())],
                "first_seen": sorted(os.fsdecode(path) for path in first_seen),
                "user_git": self._moved(turn),
            },
        )
        for other in others:
            other.captured_by_others.append(oid.hex())
            other.first_seen += [os.fsdecode(path) for path in capture.found.first_seen]
        return oid

    def _record_edits(self, recorder: Recorder, capture: Capture, tree: bytes) -> None:
        """What changed by other hands, as a commit of its own; for a new session its baseline."""
        store = self.store
        left_out = [
            {"path": os.fsdecode(path), "why": why} for path, why in sorted(capture.found.newly_left_out.items())
        ]
        when = timestamp(store.clock())
        record = {"started_at": when, "ended_at": when, "left_out": left_out} if left_out else None
        if recorder.tree is None:
            recorder.add("baseline", tree, "Baseline", author=store.user, changes=(), record=record)
            return
        changes: list[Change] = list(store.shadow.trees.diff(recorder.tree, tree))
        if changes:
            names = "1 file" if len(changes) == 1 else f"{len(changes)} files"
            recorder.add("edits", tree, f"Edits: {names}", author=store.user, changes=changes, record=record)

    def _made_by_others(
        self, turn: OpenTurn, capture: Capture, before: bytes, states: dict[bytes, Entry | None], after: bool
    ) -> dict[bytes, Entry | None]:
        """Of the states found at a touch, those that the turn did not bring about.

        Before the write and with no program run yet, any difference is another hand's. After the write, only a file
        nobody could have seen before belongs to the past, as first seen.
        """
        trees = self.store.shadow.trees
        made: dict[bytes, Entry | None] = {}
        for path, state in states.items():
            known = trees.file(before, path)
            if state == known:
                continue
            if after:
                if known is None and not self._covered(path):
                    made[path] = state
                    turn.first_seen.append(os.fsdecode(path))
            elif not turn.shell:
                made[path] = state
        return made

    def _covered(self, path: bytes) -> bool:
        """Whether the last scan would have seen a file here."""
        from snapstore.worktree.ignore import RuleBook

        cache = self.store.cache
        cache.load()
        if cache.coverage is None:
            return False
        left: dict[bytes, object] = cache.coverage["left_out"]  # type: ignore[assignment]
        rules: Any = cache.coverage["rules"]
        return not RuleBook(*rules).ignored(path, False) and not any(_below_any(path, [part]) for part in left)

    def _captured_by_others(self, turn: OpenTurn) -> dict[bytes, Entry | None]:
        """The states that turns of other sessions, ended while this one was open, left behind."""
        shadow = self.store.shadow
        states: dict[bytes, Entry | None] = {}
        for name in turn.captured_by_others:
            commit = shadow.commit(bytes.fromhex(name))
            parent = shadow.commit(commit.parents[0])
            states.update((path, new) for path, _, new in shadow.trees.diff(parent.tree, commit.tree))
        return states

    def _put(self, capture: Capture, tree: bytes, states: dict[bytes, Entry | None]) -> bytes:
        return self.store.shadow.trees.rewrite(capture.writer, tree, states) if states else tree

    def _others(self) -> list[OpenTurn]:
        return self.store.open_turns(besides=self.name)

    def _opened(self) -> OpenTurn:
        turn = self.store.open_turn(self.name)
        if turn is None:
            raise self._nothing_open()
        return turn

    def _nothing_open(self) -> Unknown:
        return Unknown(f"no turn is open in session {self.name}", "Begin one with `snapstore turn begin`.")

    def _observe(self) -> tuple[dict[str, Any] | None, bytes | None]:
        """Where the user's own repository stands; and, when it is new, what spares us reading its index again."""
        repo = self.store.user_repo()
        if repo is None:
            return None, None
        memo = self.store.documents.optional(_MEMO)
        observed, fresh = usergit.observe(repo, memo)
        return observed, json.dumps(fresh).encode() if fresh != memo else None

    def _moved(self, turn: OpenTurn) -> dict[str, Any]:
        """How the user's own repository moved during the turn."""
        now, _ = self._observe()
        return usergit.compare(turn.user_git or {}, now or {})

    def _inside(self, path: str | bytes | os.PathLike[str]) -> bytes:
        """A path below the root, from one as a caller has it. Links in its folders are followed, the last part not."""
        full = os.path.abspath(os.fsencode(path))
        folder, name = os.path.split(full)
        real = os.path.join(os.path.realpath(folder), name)
        top = self.store.root.rstrip(b"/") + b"/"
        if not real.startswith(top) or unsafe_parts(real[len(top) :]):
            raise Unsafe(
                f"{os.fsdecode(full)!r} is not a file of {os.fsdecode(self.store.root)}",
                "Only files below the root, outside .git folders, can be named.",
            )
        return real[len(top) :]


class Turn:
    """An open turn. As a context manager it ends itself; on an exception it is closed as interrupted."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.commit: bytes | None = None
        self._open = True
        self._record: dict[str, Any] = {}

    def touch(self, *paths: str | bytes | os.PathLike[str], after: bool = False, shell: bool = False) -> None:
        self.session.touch(paths, after=after, shell=shell)

    def reply(self, text: str) -> None:
        """Remembers a part of the agent's answer for the turn's record."""
        self._record.setdefault("replies", []).append(text)

    def end(self, *, scan: bool | None = None, status: str = DONE, **record: Any) -> bytes:
        self.commit = self.session.end(scan=scan, status=status, **{**self._record, **record})
        self._open = False
        return self.commit

    def cancel(self) -> None:
        self.session.cancel()
        self._open = False

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open:
            self.end(status=DONE if error is None else INTERRUPTED)


def _held(turn: OpenTurn) -> bool:
    if not turn.owner:
        return False
    pid, started = turn.owner
    return started is not None and platform.process_started(int(pid)) == started


def _add_others(files: dict[str, bytes | None], others: list[OpenTurn]) -> None:
    for other in others:
        files[f"open/{other.session}.json"] = encode(other)


def _below_any(path: bytes, tops: Iterable[bytes]) -> bool:
    return any(path == top or path.startswith(top + b"/") for top in tops)


def _stale(capture: Capture, path: bytes) -> bool:
    return path in capture.found.left_out
