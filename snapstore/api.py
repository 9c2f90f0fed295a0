"""What an embedding program imports: a store, its sessions, and the moves through them.

`Store.open` is the entry point. The packages below know a store as `StoreHandle` and a session as `RecordingSession`;
here both get what stands on top of recording: making a store, planning and carrying out moves, and what follows a
commit. Import these names from `snapstore`, which loads them when they are used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from snapstore.store import locations
from snapstore.store.handle import DEFAULT_SESSION, Progress, Say, StoreHandle, failed
from snapstore.store.state import check_name
from snapstore.timeline.forget import forget
from snapstore.timeline.history.snapshots import TurnSnapshot, read_snapshots
from snapstore.timeline.maintenance import auto
from snapstore.timeline.moves.execute import Moved, Mover
from snapstore.timeline.moves.plan import How, Plan, Policy
from snapstore.timeline.moves.planner import Planner
from snapstore.timeline.record.create_store import create_store
from snapstore.timeline.record.session import RecordingSession, Turn

__all__ = ["Moved", "Plan", "Policy", "Session", "Store", "Turn", "TurnSnapshot"]


class Store(StoreHandle):
    """One root's shadow repository and state. Get one with `Store.open`."""

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
        """Open the store that watches over a folder, found by walking up from it. With `create`, one is made when there
        is none: at the top of the git checkout, or for the folder itself, with its baseline in `session`. An
        interrupted change is finished first, unless the caller wants to see it (`recover`)."""
        try:
            home = home or locations.home_folder()
            if create and locations.find(home, os.fspath(path)) is None:
                top = locations.natural_root(os.fspath(path))
                create_store(home, top, session=session, say=say, warn=say, progress=progress, clock=clock)
        except OSError as error:
            raise failed(error) from error
        return super().open(path, recover=recover, home=home, say=say, progress=progress, clock=clock)

    def session(self, name: str | None = None) -> Session:
        """Return a session by name; without one, the session last active here."""
        return Session(self, check_name(name) if name is not None else self.active_session())

    def follow_up(self, what: str) -> None:
        forget.follow_up(self, what)

    def after_commit(self, *, folded: bool) -> None:
        auto.look(self, folded=folded)


class Session(RecordingSession):
    """One conversation, or one person at a shell. It owns one tree of turns."""

    store: Store

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(store, name)

    # States to go back to.

    def snapshots(self) -> list[TurnSnapshot]:
        """The state before the first turn, then the one after each, up to where the session stands."""
        return read_snapshots(self)

    def snapshot_back(self, turns: int = 1) -> TurnSnapshot | None:
        """The one so many turns back; None where there are not that many."""
        found = self.snapshots()
        return found[-(turns + 1)] if 0 <= turns < len(found) else None

    # Moves: a plan first, then its carrying out. Every surface uses these two.

    def plan_undo(self, count: int = 1, **how: Any) -> Plan:
        """The plan that undoes the last turns. All plans take `policy` (what to do about conflicts, as a `Policy` or in
        one of its words), `scope` (both, files, conversation) and `exact` (the whole tree, edits too)."""
        return self._planned("undo", how, count)

    def plan_redo(self, count: int | None = 1, **how: Any) -> Plan:
        """Redoes turns, or with None all of them."""
        return self._planned("redo", how, count)

    def plan_goto(self, address: str, **how: Any) -> Plan:
        return self._planned("goto", how, address)

    def plan_switch(self, address: str, **how: Any) -> Plan:
        """To the tip of a branch, or with `name:5` to a turn of it."""
        return self._planned("switch", how, address)

    def plan_earlier(self, count: int | None = None, seconds: float | None = None, **how: Any) -> Plan:
        """Back in time, across all branches."""
        return self._planned("earlier", how, count, seconds)

    def plan_later(self, count: int | None = None, seconds: float | None = None, **how: Any) -> Plan:
        return self._planned("later", how, count, seconds)

    def plan_revert(self, address: str, **how: Any) -> Plan:
        """Takes one turn out, whatever came after it; a new node."""
        return self._planned("revert", how, address)

    def plan_apply(self, address: str, **how: Any) -> Plan:
        """Does again what one turn did, of any branch or session; a new node."""
        return self._planned("apply", how, address)

    def plan_restore(self, address: str, paths: Iterable[str | bytes | os.PathLike[str]], **how: Any) -> Plan:
        """Brings single files (or folders of them) back to a node's state; a new node. Paths are from the root."""
        if isinstance(paths, str | bytes | os.PathLike):
            paths = [paths]
        found = [os.fsencode(path) for path in paths]
        return self._planned(
            "restore", how, address, [self.inside(path) if os.path.isabs(path) else path for path in found]
        )

    def plan_ops_undo(self, number: int | None = None, **how: Any) -> Plan:
        """Puts store and files back to before an operation: the last one, or one given by its number."""
        return self._planned("ops_undo", how, number)

    def preview(self, plan: Plan) -> Moved:
        """What the plan would do. Whatever would refuse it refuses here too, but for conflicts: those are in it."""
        return Mover(self, plan).preview()

    def move(self, plan: Plan) -> Moved:
        """Carries a plan out, all or nothing. One gone stale is refused."""
        return Mover(self, plan).run()

    def _planned(self, verb: str, how: dict[str, Any], *arguments: Any) -> Plan:
        try:
            plan: Plan = getattr(Planner(self, How(**how)), verb)(*arguments)
        except OSError as error:
            raise failed(error) from error
        return plan
