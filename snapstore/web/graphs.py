"""A cache of sessions' trees between requests.

A page requests nodes with every screen that it scrolls, and reading ten thousand commits again takes a tenth of a
second.

A cached tree is valid as long as the refs are unchanged. Everything that requests need has been read before a tree is
cached, because the store that it was read from is closed afterwards.
"""

from __future__ import annotations

from threading import Lock

from snapstore.api import Session
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.graph import Graph

_MOST = 4


class Graphs:
    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Graph]] = {}
        self._one = Lock()

    def of(self, session: Session) -> Graph:
        """Return the session's current tree, with every node read, seen from the line it was opened for.

        The tree serves nodes, lines and names, but no addresses.
        """
        found = Graph(session.store, session.name)
        moment = (found.cursor_value, found.cursor, found.branch, found.branches, found.archived, found.checkpoints)
        with self._one:
            known = self._known.get(session.name)
        if known is not None and known[0] == moment:
            return view(session, known[1])
        found.by_seq()
        found.branch_of(found.cursor)
        found.undone()
        with self._one:
            self._known.pop(session.name, None)
            self._known[session.name] = (moment, found)
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return view(session, found)
