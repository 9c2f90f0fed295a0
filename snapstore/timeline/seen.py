"""Who asks for a change has seen the session somewhere. Where it has moved since, nothing is done: they look again."""

from __future__ import annotations

from snapstore.errors import Conflict
from snapstore.timeline.graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from snapstore.timeline.session import Session

    T = TypeVar("T")


def stale(cursor: str) -> Conflict:
    return Conflict(
        "the session has moved since you looked", "Nothing was written. Look again.", stale=True, expected=cursor
    )


def expect(session: Session, expected: str | None) -> None:
    """Refuses what was asked for in view of a state that is gone (C15). For a change, call it under the lock."""
    if expected is None:
        return
    cursor = Graph(session.store, session.name).cursor.hex()
    if cursor != expected:
        raise stale(cursor)


def changing(session: Session, expected: str, change: Callable[[], T]) -> T:
    """A change, made only where the session still stands as expected; the lock is held for both."""
    with session.store.changing():
        expect(session, expected)
        return change()
