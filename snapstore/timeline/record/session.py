"""Record the turns of a session: begin, touch, end, cancel."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from snapstore.base import locks
from snapstore.errors import Busy, Unknown, Unsafe
from snapstore.store.background import start_push
from snapstore.store.conversations import AgentSession
from snapstore.store.handle import SessionHandle
from snapstore.store.journal import RefMove
from snapstore.store.state import OpenTurn, encode, readable
from snapstore.timeline.history.agent_sessions import refuse_elsewhere
from snapstore.timeline.record.transaction import DONE, INTERRUPTED, NAMED, SCANNED, Transaction
from snapstore.worktree.scan.case_folding import spelling_on_disk


class RecordingSession(SessionHandle):
    """A session that records turns; `api.Session` adds undo, redo and the other moves."""

    def begin(
        self,
        prompt: str = "",
        *,
        agent: str = "agent",
        hold: bool = False,
        known: AgentSession | None = None,
        origin: dict[str, str] | None = None,
    ) -> Turn:
        """Open a turn; changes since the last turn are recorded first, as edits.

        A turn that was left open is closed as interrupted. With `hold` the turn belongs to this process: no other turn
        can begin in the session while the process lives. Agents' hooks pass the agent session as `known` and facts
        about the prompt as `origin`.
        """
        store = self.store
        with store.changing():
            refuse_elsewhere(self, "a turn")
            left = store.open_turn(self.name)
            if left is not None and is_held(left):
                raise self._busy(left)
            with Transaction(store, self.name) as step:
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
                    owner=[os.getpid(), locks.process_started(os.getpid())] if hold else None,
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
        """Record the session's root node: the tree at the moment tracking began."""
        with self.store.changing(), Transaction(self.store, self.name) as step:
            step.record_edits(step.scan())
            step.commit(f"baseline of session {self.name}", None)

    def turn(self, prompt: str = "", *, agent: str = "agent") -> Turn:
        """Open a turn for a `with` block: `with session.turn("…") as turn:` ends it."""
        return self.begin(prompt, agent=agent, hold=True)

    def open_turn(self) -> Turn:
        """Return the open turn of this session, whichever process began it."""
        if self.store.open_turn(self.name) is None:
            raise self._no_open_turn()
        return Turn(self)

    def touch(
        self,
        paths: Iterable[str | bytes | os.PathLike[str]],
        *,
        after: bool = False,
        shell: bool = False,
        left_out: dict[str, str] | None = None,
    ) -> None:
        """Name files that the open turn writes.

        Files are named before the write, so that their earlier state gets recorded, or after the write (`after`).
        `shell` says that a program ran that may have changed any file, so the end of the turn scans. `left_out` maps
        files that the turn writes but snapstore cannot undo to the reason.
        """
        wanted = [self.inside(path) for path in paths]
        with self.store.changing():
            turn = self._current_turn()
            with Transaction(self.store, self.name) as step:
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
        """Close the open turn and return its commit.

        The end scans unless the turn named every change; `scan` overrides that. `record` has the conversation to store:
        replies, thinking, tool_calls, lines.
        """
        with self.store.changing():
            turn = self._own_turn()
            with Transaction(self.store, self.name) as step:
                found_by = NAMED
                if scan if scan is not None else _needs_scan(turn, status):
                    step.scan(turn)
                    found_by = SCANNED
                oid = step.record_turn(turn, found_by, status, record)
                step.commit(f"end of a turn in session {self.name}", None)
        start_push(self.store)
        return oid

    def end_if_changed(self, **record: Any) -> bytes | None:
        """Close the open turn after a scan, or drop it if no file changed."""
        with self.store.changing():
            turn = self._own_turn()
            with Transaction(self.store, self.name) as step:
                changed = step.scan(turn) != self.store.shadow.commit(step.cursor).tree
                oid = step.record_turn(turn, SCANNED, DONE, record) if changed else None
                if oid is None:
                    step.drop_autosave(turn)
                step.commit(f"end of a turn in session {self.name}", None)
        if oid is not None:
            start_push(self.store)
        return oid

    def note(self, prompt: str | None = None, **origin: str) -> None:
        """Add facts about the origin of the open turn, or replace its prompt."""
        with self.store.changing():
            turn = self._current_turn()
            turn.prompt = turn.prompt if prompt is None else readable(prompt)
            turn.origin |= origin
            files: dict[str, bytes | None] = {f"open/{self.name}.json": encode(turn)}
            self.store.journal.carry_out([], files, what=f"note on a turn in session {self.name}")

    def amend(self, commit: bytes, **record: Any) -> None:
        """Add to the record of a closed turn, for agents that write their files late."""
        with self.store.changing(), Transaction(self.store, self.name) as step:
            step.amend(commit, record)
            step.commit(f"record of a turn in session {self.name}", self.store.open_turn(self.name))
        start_push(self.store)

    def cancel(self) -> None:
        """Drop the open turn; its changes stay on disk and become edits."""
        with self.store.changing():
            turn = self._own_turn()
            refs: list[RefMove] = []
            if turn.saved_at:
                from snapstore.timeline.record.autosave import drop_move

                refs = drop_move(self.store, turn)
            self.store.journal.carry_out(
                refs, {f"open/{self.name}.json": None}, what=f"cancel of a turn in session {self.name}"
            )

    def close_open_turn(self, **record: Any) -> bytes | None:
        """Close a turn that was left open, as interrupted, and return its commit."""
        turn = self.store.open_turn(self.name)
        if turn is None:
            return None
        return self.end(scan=None if turn.origin else True, status=INTERRUPTED, **record)

    def _current_turn(self) -> OpenTurn:
        turn = self.store.open_turn(self.name)
        if turn is None or (self.speaks_for != turn.origin.get("session", self.speaks_for) and self.speaks_for):
            raise self._no_open_turn()
        return turn

    def _own_turn(self) -> OpenTurn:
        """Return the open turn; raise Busy if another live process holds the turn."""
        turn = self._current_turn()
        if is_held(turn) and turn.owner and turn.owner[0] != os.getpid():
            raise self._busy(turn)
        return turn

    def _busy(self, turn: OpenTurn) -> Busy:
        pid = turn.owner and turn.owner[0]
        if pid == os.getpid():
            message, hint = f"a turn of session {self.name} is already open", "End it first, or use another session."
        else:
            message = f"a turn of session {self.name} is open in process {pid}"
            hint = "Wait for it to end, or use another --session."
        return Busy(message, hint, session=self.name)

    def _no_open_turn(self) -> Unknown:
        return Unknown(f"no turn is open in session {self.name}", "Begin one with `snapstore turn begin`.")

    def inside(self, path: str | bytes | os.PathLike[str]) -> bytes:
        """Convert a caller's path into a path relative to the root.

        Links in the folders of the path are followed; a link in the last part is not. On a case-insensitive file system
        the result is spelled as on disk.
        """
        full = os.path.abspath(os.fsencode(path))
        folder, name = os.path.split(full)
        real = os.path.join(os.path.realpath(folder), name)
        top = self.store.root.rstrip(b"/") + b"/"
        if not real.startswith(top) or self.store.policy.is_unsafe(real[len(top) :]):
            raise Unsafe(
                f"{os.fsdecode(full)!r} is not a file of {os.fsdecode(self.store.root)}",
                "Only files below the root, outside .git folders and stores, can be named.",
            )
        return spelling_on_disk(top, real[len(top) :])


class Turn:
    """An open turn; a `with` block ends it, as interrupted on an exception."""

    def __init__(self, session: RecordingSession) -> None:
        self.session = session
        self.commit: bytes | None = None
        self._open = True
        self._record: dict[str, Any] = {}

    def touch(self, *paths: str | bytes | os.PathLike[str], after: bool = False, shell: bool = False) -> None:
        """Name files that the turn writes, before the write or (`after`) after it.

        A relative path is relative to the current folder. A turn that names files records only these files, unless
        `shell` says that a program ran.
        """
        self.session.touch(paths, after=after, shell=shell)

    def reply(self, text: str) -> None:
        """Add a part of the agent's answer to the record of the turn."""
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


def _needs_scan(turn: OpenTurn, status: str) -> bool:
    """Return whether the turn may have changed more files than it named.

    An agent that announces every tool before it runs has named everything. What users edit while such an agent only
    talks, or after they interrupted the agent, does not belong to the turn.
    """
    if turn.shell:
        return True
    if turn.origin:
        return turn.origin.get("tells") != "before" and (status != DONE or not turn.named)
    return not turn.named


def is_held(turn: OpenTurn) -> bool:
    """Return whether a live process holds the turn; only this process may close it."""
    if not turn.owner:
        return False
    pid, started = turn.owner
    return started is not None and locks.process_started(int(pid)) == started
