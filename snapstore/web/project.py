"""The project that a page shows, whose store is opened per request.

Stores are not shared between threads. Each opening sees what other processes have done, including the removal of the
store. A request that only reads never holds the lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from snapstore.api import Session, Store
from snapstore.base.paths import has_unsafe_part
from snapstore.errors import NoStore, SnapstoreError, Unknown, Unsafe, Usage
from snapstore.surface.move_request import get_ready
from snapstore.surface.records.base import Record, document
from snapstore.timeline.history.agent_sessions import TurnRecords
from snapstore.web.answers import Document
from snapstore.web.graphs import Graphs


class Project:
    def __init__(self, folder: str) -> None:
        with Store.open(folder) as store:
            self.root = store.root
            self.folder = store.folder
            self.home = store.home
        self.spoken = TurnRecords()
        self.graphs = Graphs()
        self.at_work: set[object] = set()  # moves in progress
        self.refused = 0  # moves refused since the server started, because of conflicts or anything else

    @contextmanager
    def store(self, *, recover: bool = True) -> Iterator[Store]:
        with Store.open(os.fsdecode(self.root), home=self.home, recover=False) as store:
            if store.root != self.root:  # if ours is gone, Store.open may find the store of a parent folder
                shown = os.fsdecode(self.root)
                raise NoStore(f"the store of {shown} is gone", "Check whether its folder was moved.")
            if recover:
                store.recover()
            yield store

    @contextmanager
    def session(self, name: str) -> Iterator[Session]:
        """Open a session by its name, or by the id of one of its agent sessions."""
        with self.store() as store:
            yield named(store, name)

    def warm_up(self) -> None:
        """Read what the page requests first, while the browser starts."""
        try:
            with self.store(recover=False) as store:
                self.graphs.of(store.session())
                self.spoken.read(store)
        except (SnapstoreError, OSError):  # the page will ask again and receive the error
            pass

    @contextmanager
    def moving(self, name: str | None, *, counted: bool = True) -> Iterator[Session]:
        """Open a session for a move; without a name, the active one.

        An abandoned open turn is closed first. The closed turn is then the last turn, so a request made before is
        stale. Refusals are counted: their number shows how clear the page is (S1-67).
        """
        one = object()
        self.at_work.add(one)
        try:
            with self.store() as store:
                session = named(store, name) if name is not None else store.session()
                get_ready(session)
                yield session
        except SnapstoreError:
            self.refused += counted
            raise
        finally:
            self.at_work.discard(one)


def named(store: Store, name: str) -> Session:
    """Open a session by its name, or by the id of one of its agent sessions, as seen from that one's line."""
    session = store.session(name)
    if session.name == name and name not in store.sessions():
        known = ", ".join(store.sessions()[:10]) or "none"
        raise Unknown(f"there is no session {name!r} in this store", f"Sessions here: {known}.", session=name)
    return session


def below(path: str) -> bytes:
    """Check a path given by a page and return it as bytes below the root.

    The path is never looked up on disk. Plans compare it with the entries of trees.
    """
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise Usage("not a path", "Give a path below the root.") from None
    raw = raw.strip(b"/") if raw != b"/" else raw
    if path.startswith("/") or has_unsafe_part(raw):
        shown = path if len(path) <= 60 else path[:60] + "…"
        raise Unsafe(f"{shown!r} is not a path below the root", "Only files of the project can be named.")
    return raw


def answer(record: Record) -> Document:
    """Respond with a record."""
    return Document(document(record))
