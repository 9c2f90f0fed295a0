"""A session and the life of its turns: begin, touch, end, cancel."""

from __future__ import annotations

import os

from snapstore.base import platform
from snapstore.base.paths import unsafe_parts
from snapstore.errors import Busy, Unknown, Unsafe
from snapstore.store.background import start_push
from snapstore.store.handle import SessionHandle
from snapstore.store.state import OpenTurn, encode, readable
from snapstore.timeline.record.transaction import DONE, INTERRUPTED, NAMED, SCANNED, Step
from snapstore.worktree.scan.case_folding import as_spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from snapstore.store.conversations import AgentSession
    from snapstore.store.journal import RefMove


LONGEST_PATH = 4095  # bytes that the system takes for a path


class RecordingSession(SessionHandle):
    """A session as it records turns; `api.Session` adds the moves through them."""

    def begin(
        self,
        prompt: str = "",
        *,
        agent: str = "agent",
        hold: bool = False,
        known: AgentSession | None = None,
        origin: dict[str, str] | None = None,
    ) -> Turn:
        """Opens a turn: what other hands changed since the last one becomes a commit of its own.

        A turn left open is closed first, as interrupted. With `hold` the turn belongs to this process, and nobody can
        begin another in the session while the process lives. `known` and `origin` are what an agent's hooks know of
        its session and of the prompt.
        """
        store = self.store
        with store.changing():
            left = store.open_turn(self.name)
            if left is not None and is_held(left):
                raise self._busy(left)
            with Step(store, self.name) as step:
                disk = step.scan(left)
                if left is not None:
                    step.record_turn(left, SCANNED, INTERRUPTED, {})
                step.record_edits(disk)
                turn = OpenTurn(
                    session=self.name,
                    prompt=readable(prompt),
                    agent=readable(agent),
                    started_at=store.clock(),
                    before=step.cursor.hex(),
                    owner=[os.getpid(), platform.process_started(os.getpid())] if hold else None,
                    left_out=step.left_out(),
                    scan=step.scans(),
                    user_git=step.observe(),
                    origin=origin,
                )
                if known is not None:
                    step.take_up(known)
                step.commit(f"begin of a turn in session {self.name}", turn)
            if left is not None:
                store.say(f"closed the turn left open in session {self.name} as {INTERRUPTED}")
        return Turn(self)

    def take_baseline(self) -> None:
        """The session's root node: the tree when its tracking began."""
        with self.store.changing(), Step(self.store, self.name) as step:
            step.record_edits(step.scan())
            step.commit(f"baseline of session {self.name}", None)

    def turn(self, prompt: str = "", *, agent: str = "agent") -> Turn:
        """`with session.turn("…") as turn:` — begun here, ended at the end of the block."""
        return self.begin(prompt, agent=agent, hold=True)

    def open_turn(self) -> Turn:
        """The turn that is open in this session, whoever began it."""
        if self.store.open_turn(self.name) is None:
            raise self._nothing_open()
        return Turn(self)

    def touch(
        self,
        paths: Iterable[str | bytes | os.PathLike[str]],
        *,
        after: bool = False,
        shell: bool = False,
        left_out: dict[str, str] | None = None,
    ) -> None:
        """Names files the open turn writes: before the write, so that their state before is known, or (`after`) once
        it has happened. `shell` says that a program ran which may have changed anything: the turn will scan.
        `left_out` are files that it writes and nobody can take back, and why."""
        wanted = [self.inside(path) for path in paths]
        with self.store.changing():
            turn = self._opened()
            with Step(self.store, self.name) as step:
                step.name(turn, wanted, after=after)
                if shell and not turn.shell and turn.origin.get("tells") == "before":
                    step.record_others(turn)
                turn.shell = turn.shell or shell
                turn.left_out |= left_out or {}
                turn.before = step.cursor.hex()
                step.commit(f"touch in session {self.name}", turn)
            if self.store.header.save_every:
                from snapstore.timeline.record.autosave import save_if_due

                save_if_due(self.store, turn)

    def end(self, *, scan: bool | None = None, status: str = DONE, **record: Any) -> bytes:
        """Closes the open turn and gives its commit. It scans unless every change was named (`scan` overrules);
        `record` is what is to be remembered of the conversation: replies, thinking, tool_calls, lines."""
        with self.store.changing():
            turn = self._mine()
            with Step(self.store, self.name) as step:
                found_by = NAMED
                if scan if scan is not None else _is_to_scan(turn, status):
                    step.scan(turn)
                    found_by = SCANNED
                oid = step.record_turn(turn, found_by, status, record)
                step.commit(f"end of a turn in session {self.name}", None)
        start_push(self.store)
        return oid

    def end_if_changed(self, **record: Any) -> bytes | None:
        """Closes the open turn after a scan; one that changed nothing is forgotten instead."""
        with self.store.changing():
            turn = self._mine()
            with Step(self.store, self.name) as step:
                changed = step.scan(turn) != self.store.shadow.commit(step.cursor).tree
                oid = step.record_turn(turn, SCANNED, DONE, record) if changed else None
                if oid is None:
                    step.over(turn)
                step.commit(f"end of a turn in session {self.name}", None)
        if oid is not None:
            start_push(self.store)
        return oid

    def note(self, prompt: str | None = None, **origin: str) -> None:
        """Notes something about where the open turn comes from, or that more was asked for."""
        with self.store.changing():
            turn = self._opened()
            turn.prompt = turn.prompt if prompt is None else readable(prompt)
            turn.origin |= origin
            files: dict[str, bytes | None] = {f"open/{self.name}.json": encode(turn)}
            self.store.journal.carry_out([], files, what=f"note on a turn in session {self.name}")

    def amend(self, commit: bytes, **record: Any) -> None:
        """Adds to what is remembered of a turn that is over: an agent may write its conversation down later."""
        with self.store.changing(), Step(self.store, self.name) as step:
            step.amend(commit, record)
            step.commit(f"record of a turn in session {self.name}", self.store.open_turn(self.name))
        start_push(self.store)

    def cancel(self) -> None:
        """Forgets the open turn. What it changed stays on disk, and is recorded as edits by the next."""
        with self.store.changing():
            turn = self._mine()
            refs: list[RefMove] = []
            if turn.saved_at:
                from snapstore.timeline.record.autosave import forgotten

                refs = forgotten(self.store, turn)
            self.store.journal.carry_out(
                refs, {f"open/{self.name}.json": None}, what=f"cancel of a turn in session {self.name}"
            )

    def close_open_turn(self, **record: Any) -> bytes | None:
        """Closes a turn left open as interrupted, with what it changed; gives its commit."""
        turn = self.store.open_turn(self.name)
        if turn is None:
            return None
        return self.end(scan=None if turn.origin else True, status=INTERRUPTED, **record)

    def _opened(self) -> OpenTurn:
        turn = self.store.open_turn(self.name)
        if turn is None:
            raise self._nothing_open()
        return turn

    def _mine(self) -> OpenTurn:
        """The open turn, for the one who may close it: a process that holds it closes it itself."""
        turn = self._opened()
        if is_held(turn) and turn.owner and turn.owner[0] != os.getpid():
            raise self._busy(turn)
        return turn

    def _busy(self, turn: OpenTurn) -> Busy:
        pid = turn.owner and turn.owner[0]
        if pid == os.getpid():
            message, hint = f"a turn of session {self.name} is open already", "End it first, or use another session."
        else:
            message = f"a turn of session {self.name} is open in process {pid}"
            hint = "Wait for it to end, or use another --session."
        return Busy(message, hint, session=self.name)

    def _nothing_open(self) -> Unknown:
        return Unknown(f"no turn is open in session {self.name}", "Begin one with `snapstore turn begin`.")

    def inside(self, path: str | bytes | os.PathLike[str]) -> bytes:
        """A path below the root, from one as a caller has it. Links in its folders are followed, the last part not;
        where case tells no names apart, it is spelled as on disk."""
        full = os.path.abspath(os.fsencode(path))
        folder, name = os.path.split(full)
        real = os.path.join(os.path.realpath(folder), name)
        top = self.store.root.rstrip(b"/") + b"/"
        own = self.store.own_place
        ours = own is not None and (real[len(top) :] + b"/").startswith(own + b"/")
        if not real.startswith(top) or ours or unsafe_parts(real[len(top) :]) or len(real) > LONGEST_PATH:
            raise Unsafe(
                f"{os.fsdecode(full)!r} is not a file of {os.fsdecode(self.store.root)}",
                "Only files below the root, outside .git folders and stores, can be named.",
            )
        return as_spelled(top, real[len(top) :])


class Turn:
    """An open turn. As a context manager it ends itself; on an exception it is closed as interrupted."""

    def __init__(self, session: RecordingSession) -> None:
        self.session = session
        self.commit: bytes | None = None
        self._open = True
        self._record: dict[str, Any] = {}

    def touch(self, *paths: str | bytes | os.PathLike[str], after: bool = False, shell: bool = False) -> None:
        """Names files that the turn writes, before the write or (`after`) after it; a relative one is below the current
        folder. A turn that names files records those alone, unless `shell` says that a program ran."""
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


def _is_to_scan(turn: OpenTurn, status: str) -> bool:
    """Whether more may have changed than was named. An agent that tells of every tool before it runs has told of all:
    what users edit while it only talks, or after they interrupted it, is not the turn's."""
    if turn.shell:
        return True
    if turn.origin:
        return turn.origin.get("tells") != "before" and (status != DONE or not turn.named)
    return not turn.named


def is_held(turn: OpenTurn) -> bool:
    """Whether the process that began the turn for itself still lives: nobody else can close it."""
    if not turn.owner:
        return False
    pid, started = turn.owner
    return started is not None and platform.process_started(int(pid)) == started
