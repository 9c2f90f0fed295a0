"""Who asks for a change has seen the session somewhere. Where it has moved since, nothing is done: they look again."""

from __future__ import annotations

from snapstore.errors import Conflict
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import state_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from snapstore.timeline.moves.plan import Plan
    from snapstore.timeline.record.session import RecordingSession

    T = TypeVar("T")


def stale(cursor: str) -> Conflict:
    return Conflict(
        "the session has moved since you looked", "Nothing was written. Look again.", stale=True, expected=cursor
    )


def unlike(plan: Plan, seen: Mapping[bytes, str]) -> list[bytes]:
    """The files that a plan found in another state than somebody saw: a yes to what was there is no yes to what is
    there now. States are as `state_text` spells them; a file that nobody looked at is not asked about."""
    return [move.path for move in plan.paths if seen.get(move.path, found := state_text(move.found)) != found]


def expect(session: RecordingSession, expected: str | None) -> None:
    """Refuses what was asked for in view of a state that is gone (C15). For a change, call it under the lock."""
    if expected is None:
        return
    cursor = Graph(session.store, session.name).cursor.hex()
    if cursor != expected:
        raise stale(cursor)


def changing(session: RecordingSession, expected: str, change: Callable[[], T]) -> T:
    """A change, made only where the session still stands as expected; the lock is held for both."""
    with session.store.changing():
        expect(session, expected)
        return change()
