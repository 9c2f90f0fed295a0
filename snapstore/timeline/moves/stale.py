"""Optimistic locking: a request carries the cursor that its user saw.

The request is refused as stale if the session has moved since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from snapstore.errors import Conflict
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import Plan, state_text
from snapstore.timeline.record.session import RecordingSession

T = TypeVar("T")


def stale(cursor: str) -> Conflict:
    """Return the refusal of a request whose session has moved."""
    return Conflict(
        "the session has moved since you looked", "Nothing was written. Look again.", stale=True, expected=cursor
    )


def changed_since_seen(plan: Plan, seen: Mapping[bytes, str]) -> list[bytes]:
    """Return the paths that a plan found in another state than the user confirmed.

    `seen` holds states in the form of `state_text`. Paths that the user did not see are not checked.
    """
    return [move.path for move in plan.paths if seen.get(move.path, found := state_text(move.found)) != found]


def expect(session: RecordingSession, expected: str | None) -> None:
    """Refuse a request whose expected cursor is out of date (C15).

    For a change, call this under the lock.
    """
    if expected is None:
        return
    cursor = Graph(session.store, session.name).cursor.hex()
    if cursor != expected:
        raise stale(cursor)


def changing(session: RecordingSession, expected: str, change: Callable[[], T]) -> T:
    """Make a change if the cursor is as expected, under one lock for both."""
    with session.store.changing():
        expect(session, expected)
        return change()
