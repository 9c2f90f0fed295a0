"""The public API for embedding programs: stores, sessions, and moves through them.

`Store.open` is the entry point. The packages below know a store as `StoreHandle` and a session as `RecordingSession`.
The subclasses here add what is built on top of recording: creating a store, planning and executing moves, and the work
that follows a commit. Import these names from `snapstore`, which loads each on first use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

from snapstore.store import locations
from snapstore.store.handle import DEFAULT_SESSION, Progress, Say, StoreHandle, failed
from snapstore.store.state import check_name
from snapstore.timeline.history.agent_sessions import addressed
from snapstore.timeline.history.snapshots import TurnSnapshot, read_snapshots
from snapstore.timeline.maintenance import auto
from snapstore.timeline.moves.execute import Mover
from snapstore.timeline.moves.hunks import Hunk, hunks_of, keep_only
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import MoveOptions, Plan, Policy
from snapstore.timeline.moves.planner import Planner
from snapstore.timeline.record.conversation import resume_options
from snapstore.timeline.record.create_store import create_store
from snapstore.timeline.record.session import RecordingSession, Turn

__all__ = ["Moved", "Plan", "Policy", "Session", "Store", "Turn", "TurnSnapshot"]


class Store(StoreHandle):
    """The shadow repository and state of one root. Open a store with `Store.open`."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        recover: bool = True,
        home: str | None = None,
        say: Say | None = None,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.time,
        create: bool = False,
        session: str = DEFAULT_SESSION,
    ) -> Self:
        """Open the store of a folder, searching upwards from `path`.

        With `create`, a missing store is created at the top of the git checkout, or for the folder itself outside a
        checkout. The baseline of a new store goes into `session`. An interrupted change is finished first, unless
        `recover` is false because the caller wants to inspect the change.
        """
        try:
            home = home or locations.home_folder()
            if create and locations.find(home, os.fspath(path)) is None:
                top = locations.natural_root(os.fspath(path))
                create_store(home, top, session=session, say=say, warn=say, progress=progress, clock=clock)
        except OSError as error:
            raise failed(error) from error
        return super().open(path, recover=recover, home=home, say=say, progress=progress, clock=clock)

    def session(self, name: str | None = None) -> Session:
        """Return the named session, or the session that was last active here.

        The id of an agent session, or its first 8 characters or more, opens the session that it belongs to, seen from
        its own line: its turns, its undo and its state, whichever line is current.
        """
        if name is None:
            return Session(self, self.active_session())
        known = addressed(self, check_name(name))
        return Session(self, known.session, known.id) if known is not None else Session(self, name)

    def follow_up(self, what: str) -> None:
        from snapstore.timeline.forget.forget import follow_up  # large, and only an interrupted forget needs it

        follow_up(self, what)

    def after_commit(self, *, folded: bool) -> None:
        auto.check_size(self, folded=folded)


class Session(RecordingSession):
    """One conversation, or one person at a shell, with its tree of turns."""

    store: Store

    def __init__(self, store: Store, name: str, speaks_for: str = "") -> None:
        super().__init__(store, name, speaks_for)

    # Snapshots: states that the session can go back to.

    def snapshots(self) -> list[TurnSnapshot]:
        """Return the state before the first turn and after each turn, up to the cursor."""
        return read_snapshots(self)

    def snapshot_back(self, turns: int = 1) -> TurnSnapshot | None:
        """Return the snapshot `turns` turns back, or None if there are fewer turns."""
        found = self.snapshots()
        return found[-(turns + 1)] if 0 <= turns < len(found) else None

    def resume_options(self) -> dict[str, str | bool | None]:
        """Return how an agent's SDK has to resume the conversation, without what is undone (S4-03, S4-04).

        `resume` is the agent session, or None for a new conversation. `forkSession` says that the conversation holds
        undone turns, and `resumeSessionAt` is the last message to keep.
        """
        return resume_options(self)

    # Moves: make a plan, then execute the plan. Every surface uses these two steps.

    def plan_undo(self, count: int = 1, **options: Any) -> Plan:
        """Plan to undo the last `count` turns.

        Every plan takes three options: `policy` (how to handle conflicts, as a `Policy` or the name of one), `scope`
        (both, files, conversation) and `exact` (restore the whole tree, including edits between turns).
        """
        return self._plan("undo", options, count)

    def plan_redo(self, count: int | None = 1, **options: Any) -> Plan:
        """Plan to redo `count` undone turns, or all of them with None."""
        return self._plan("redo", options, count)

    def plan_goto(self, address: str, **options: Any) -> Plan:
        """Plan to go to a node."""
        return self._plan("goto", options, address)

    def plan_switch(self, address: str, **options: Any) -> Plan:
        """Plan to switch to the tip of a branch, or with `name:5` to one of its turns."""
        return self._plan("switch", options, address)

    def plan_earlier(self, count: int | None = None, seconds: float | None = None, **options: Any) -> Plan:
        """Plan to go back in time, across all branches."""
        return self._plan("earlier", options, count, seconds)

    def plan_later(self, count: int | None = None, seconds: float | None = None, **options: Any) -> Plan:
        """Plan to go forward in time, across all branches."""
        return self._plan("later", options, count, seconds)

    def plan_revert(self, address: str | None = None, **options: Any) -> Plan:
        """Plan to revert one turn, by default the last, and keep the turns after it; adds a new node."""
        return self._plan("revert", options, address)

    def plan_apply(self, address: str, **options: Any) -> Plan:
        """Plan to apply one turn of any branch or session again; adds a new node."""
        return self._plan("apply", options, address)

    def plan_restore(
        self, address: str | None, paths: Iterable[str | bytes | os.PathLike[str]], **options: Any
    ) -> Plan:
        """Plan to restore files or folders to a node's state, by default the last turn's; adds a new node.

        Relative paths start at the root.
        """
        return self._plan("restore", options, address, self._inside_all(paths))

    def plan_discard(self, paths: Iterable[str | bytes | os.PathLike[str]] = (), **options: Any) -> Plan:
        """Plan to throw away what changed on disk since the last turn, in some files or folders or everywhere."""
        return self._plan("discard", options, self._inside_all(paths))

    def plan_ops_undo(self, number: int | None = None, **options: Any) -> Plan:
        """Plan to undo the last operation, or operation `number` and all later ones.

        The plan covers branches and files.
        """
        return self._plan("ops_undo", options, number)

    def hunks(self, plan: Plan) -> list[Hunk]:
        """Return the hunks of all files that a plan changes."""
        return hunks_of(self, plan)

    def keep_only(self, plan: Plan, hunks: Collection[str | Hunk]) -> Plan:
        """Narrow a plan to some of its hunks, given by id or as edited. The plan must add a node."""
        return keep_only(self, plan, hunks)

    def preview(self, plan: Plan) -> Moved:
        """Return what the plan would do, without writing anything.

        Raises what the move would raise, except for conflicts, which the result lists.
        """
        return Mover(self, plan).preview()

    def move(self, plan: Plan) -> Moved:
        """Execute a plan, all or nothing; refuse a stale plan."""
        return Mover(self, plan).run()

    def _inside_all(self, paths: Iterable[str | bytes | os.PathLike[str]]) -> list[bytes]:
        """Return paths below the root; relative ones start there."""
        if isinstance(paths, str | bytes | os.PathLike):
            paths = [paths]
        found = [os.fsencode(path) for path in paths]
        return [self.inside(path) if os.path.isabs(path) else path for path in found]

    def _plan(self, verb: str, options: dict[str, Any], *arguments: Any) -> Plan:
        try:
            plan: Plan = getattr(Planner(self, MoveOptions(**options)), verb)(*arguments)
        except OSError as error:
            raise failed(error) from error
        return plan
