"""Sessions' trees, kept between requests: a page asks for nodes with every screen that it scrolls, and ten thousand
commits take a tenth of a second to go through again.

A tree at one moment never changes; whether it is still that moment, the refs tell. One that is kept has read all that
it is asked for here, and never reads again: the store that it was read from is closed.
"""

from __future__ import annotations

from threading import Lock

from snapstore.api import Session
from snapstore.timeline.history.graph import Graph

_MOST = 4


class Graphs:
    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Graph]] = {}
        self._one = Lock()

    def of(self, session: Session) -> Graph:
        """The session's tree now, with every node read. For nodes, lines and names; not for addresses."""
        found = Graph(session.store, session.name)
        moment = (found.cursor_value, found.cursor, found.branch, found.branches, found.archived, found.checkpoints)
        with self._one:
            known = self._known.get(session.name)
        if known is not None and known[0] == moment:
            return known[1]
        found.by_seq()
        found.branch_of(found.cursor)
        found.undone()
        with self._one:
            self._known.pop(session.name, None)
            self._known[session.name] = (moment, found)
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return found
