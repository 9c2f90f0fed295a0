"""Server-sent events, which tell pages about changes in the store as they happen.

The change may come from another page, a command or an agent's hook. The modification times of a few folders show that
something changed; only then is the store read. One watcher serves all pages, and none runs without a page.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from snapstore.api import Store
from snapstore.git.objects.notes import REF as NOTES
from snapstore.git.ref_names import ARCHIVE, HEADS, TAGS, cursor_ref
from snapstore.store.changes import Folders, stamp
from snapstore.store.conversations import Conversations
from snapstore.timeline.history.operations import Operations
from snapstore.web.project import Project

LOOK_EVERY = 0.04  # seconds
KEEP_ALIVE = 15.0  # seconds between comments, so that no proxy drops the connection
_QUEUE = 500

Event = tuple[str, dict[str, Any]]


class SessionState:
    """The state of one session at one moment."""

    __slots__ = ("conversation", "expected", "seq", "signature")

    def __init__(self, store: Store, name: str) -> None:
        refs = store.shadow.refs
        cursor = refs.read(cursor_ref(name))
        self.expected = cursor.hex() if cursor is not None else ""
        self.seq = (store.shadow.commit(cursor).number("Seq") or 0) if cursor is not None else 0
        state = Conversations(store).state(name)
        self.conversation = (state.id if state.materialized else "") if state is not None else ""
        places = (HEADS, TAGS, ARCHIVE)
        held = [(ref, oid) for place in places for ref, oid in sorted(refs.list(f"{place}{name}/").items())]
        talk = state and (state.id, state.pending_fork, state.materialized, state.awaiting is not None)
        self.signature = (
            refs.value(cursor_ref(name)),
            held,
            talk,
            stamp(f"{store.state}/open/{name}.json"),
        )


class Watch:
    """Polls one store, on a thread of its own."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._folders = Folders(project.folder)
        self._lost = False
        self._sessions: dict[str, SessionState] | None = None
        self._agents: set[str] = set()
        self._rest: tuple[object, ...] = ()

    def state(self) -> dict[str, Any]:
        """Return the cursor of each session, which a new page needs."""
        sessions = (self._sessions or {}).items()
        return {"sessions": {name: {"expected": seen.expected, "seq": seen.seq} for name, seen in sessions}}

    def look(self) -> list[Event]:
        try:
            if not self._folders.changed():
                return []
            with self._project.store(recover=False) as store:
                told = self._differences(store)
        except Exception:  # the store is gone, damaged or being changed: try again at the next poll
            self._folders.look_again()
            if self._sessions is None or os.path.isdir(self._project.folder):
                return []
            self._sessions, self._lost = None, True
            return [("store_lost", {})]
        if self._lost:
            self._lost = False
            return [("hello", self.state())]
        return told

    def forget(self) -> None:
        """Forget the last state. Changes while no page listens are not reported."""
        self._folders.forget()
        self._sessions = None

    def _differences(self, store: Store) -> list[Event]:
        before, known = self._sessions, self._agents
        now = {name: SessionState(store, name) for name in store.sessions()}
        agents = _agents(store)
        rest = (store.shadow.refs.read(NOTES), Operations(store).next_number(), store.active_session())
        told: list[Event] = []
        if before is not None:
            told = [("session_created", {"session": name, "id": None}) for name in now if name not in before]
            told += [("session_created", _created(store, id)) for id in sorted(agents - known)]
            changed = [name for name in now if name not in before or now[name].signature != before[name].signature]
            if not changed and rest != self._rest:  # a record was completed, but the notes ref does not tell whose
                changed = list(now)
            for name in changed:
                old = before[name].conversation if name in before else ""
                if now[name].conversation and now[name].conversation != old:
                    told.append(("session.materialized", {"session": name, "id": now[name].conversation}))
                seen = now[name]
                told.append(("session.updated", {"session": name, "expected": seen.expected, "seq": seen.seq}))
        self._sessions, self._agents, self._rest = now, agents, rest
        return told


class Channel:
    """The listening pages, and the watcher while there is at least one page."""

    def __init__(self, project: Project) -> None:
        self._watch = Watch(project)
        self._pages: set[asyncio.Queue[Event | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None

    async def listen(self) -> AsyncIterator[str]:
        """Yield the events for one page, until the page leaves or the server stops."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_QUEUE)
        self._pages.add(queue)
        try:
            if self._task is None:
                self._first = asyncio.get_running_loop().create_future()
                self._task = asyncio.create_task(self._run(self._first))
            assert self._first is not None
            await asyncio.shield(self._first)
            yield _spelled(("hello", self._watch.state()))
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), KEEP_ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if event is None:
                    return
                yield _spelled(event)
        finally:
            self._pages.discard(queue)
            if not self._pages and self._task is not None:
                self._task.cancel()
                self._task = None
                self._watch.forget()

    def close(self) -> None:
        for queue in self._pages:
            _end(queue)

    async def _run(self, first: asyncio.Future[None]) -> None:
        try:
            while True:
                for event in await asyncio.to_thread(self._watch.look):
                    for queue in self._pages:
                        if queue.full():  # the page does not read: it will reload everything when it reconnects
                            _end(queue)
                        else:
                            queue.put_nowait(event)
                if not first.done():
                    first.set_result(None)
                await asyncio.sleep(LOOK_EVERY)
        finally:
            if not first.done():
                first.cancel()


def _end(queue: asyncio.Queue[Event | None]) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


def _spelled(event: Event) -> str:
    """Encode an event. ASCII JSON has no line breaks, so no value can end the field."""
    return f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n"


def _agents(store: Store) -> set[str]:
    try:
        return {name[:-5] for name in os.listdir(f"{store.state}/agents") if name.endswith(".json")}
    except FileNotFoundError:
        return set()


def _created(store: Store, id: str) -> dict[str, Any]:
    """Describe an agent session for the event `session_created` (S1-29)."""
    known = Conversations(store).agent_session(id)
    if known is None:
        return {"session": None, "id": id}
    return {
        "session": known.session,
        "id": known.id,
        "agent": known.agent,
        "title": known.title,
        "parentSessionId": known.parent,
        "rewindFromTurn": known.fork_turn,
    }
