"""Create a store from a remote: `clone`, or `init --from`.

`clone` makes a new folder; `init --from` is for a folder that already has the project's files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from copy import copy
from typing import Any

from snapstore.api import Store
from snapstore.base import files as durable
from snapstore.errors import Remote as RemoteError
from snapstore.errors import SnapstoreError, Unsafe, Usage
from snapstore.git.ref_names import cursor_ref
from snapstore.git.remote import bundles
from snapstore.git.remote.connection import Ask
from snapstore.git.remote.open import open_remote
from snapstore.share.pull import Pulled, pull
from snapstore.share.remotes import DEFAULT, Remote, Remotes, absolute, refuse_password
from snapstore.share.server.view import project_of
from snapstore.store import locations
from snapstore.store.handle import StoreHandle
from snapstore.store.state import encode
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.operations import CLONE
from snapstore.timeline.record.create_store import create_store
from snapstore.timeline.record.session import RecordingSession

Progress = Callable[[str, int, int], None]


class CloneResult:
    """The result of a clone or an attach."""

    __slots__ = ("joined", "pulled", "root", "session", "written")

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.session: str | None = None  # the active session
        self.pulled: Pulled | None = None
        self.joined = False  # whether the folder had a store of its own
        self.written = 0  # number of files


def folder_of(url: str) -> str:
    """Return the default folder of a clone: the last part of the address."""
    name = url.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git").rstrip("/")
    if not name or name.startswith((".", "-")):
        raise Usage(f"no folder name can be taken from {url}", "Give one: `snapstore clone URL DIR`.")
    return name


def clone(
    home: str,
    url: str,
    folder: str,
    *,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> CloneResult:
    """Create a folder with the files of the newest turn and all recorded history.

    A kill leaves no store, or one that the next command completes.
    """
    root = os.fsencode(os.path.realpath(folder))
    if os.path.lexists(root) and (not os.path.isdir(root) or os.listdir(root)):
        raise Usage(
            f"{os.fsdecode(root)} already exists and is not empty",
            "Choose another folder; for one that already has the project's files: `snapstore init --from URL`.",
        )
    id = _project_id(url, say, progress, ask)
    made = not os.path.isdir(root)
    durable.make_folders(os.fsdecode(root), 0o777)
    try:
        result = _create(home, root, url, id, progress, ask, on_disk=False)
    except BaseException:
        if made:
            try:
                os.rmdir(root)
            except OSError:
                pass
        raise
    with Store.open(os.fsdecode(root), home=home, say=say) as store:
        if result.session is not None:
            session = store.session(result.session)
            plan = session.plan_goto(Graph(store, result.session).cursor.hex(), exact=True)
            plan.kind, plan.arguments = CLONE, []
            result.written = len(session.move(plan).plan.changing)
    return result


def attach(
    home: str,
    root: bytes,
    url: str,
    *,
    anyway: bool = False,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
    **settings: Any,
) -> CloneResult:
    """Join a shared project from a folder that already has its files.

    No file changes. What is on disk is recorded on top of the server's newest turn, as edits on a new branch.
    """
    id = _project_id(url, say, progress, ask)
    if not os.path.isdir(locations.store_folder(home, root)):
        return _create(home, root, url, id, progress, ask, on_disk=True, anyway=anyway, **settings)
    with Store.open(os.fsdecode(root), home=home, say=say) as store:
        return _join(store, url, id, progress, ask)


def _project_id(url: str, say: Callable[[str], None] | None, progress: Progress | None, ask: Ask | None) -> str:
    if bundles.is_bundle(url):
        id = project_of(bundles.read_header(url).refs, url)
        if id is None:
            raise Unsafe(f"{url} does not come from a snapstore store", "Make one with `snapstore export FILE`.")
        return id
    with open_remote(url, progress=progress, ask=ask) as connection:
        if connection.lacks and say is not None:
            say(connection.lacks)
        id = project_of(connection.refs(), connection.shown)
        if id is None:
            raise RemoteError(
                f"{connection.shown} is empty: nothing has been pushed there yet",
                "Push from the machine that has the turns: `snapstore remote add origin URL`, `snapstore push`.",
            )
    return id


def _create(
    home: str,
    root: bytes,
    url: str,
    id: str,
    progress: Progress | None,
    ask: Ask | None,
    *,
    on_disk: bool,
    anyway: bool = False,
    **settings: Any,
) -> CloneResult:
    result = CloneResult(root)

    def begin(store: StoreHandle) -> None:
        remote = _remote_for(store, url)
        result.pulled = pull(store, remote, progress=progress, ask=ask)
        result.session = newest_session(store)
        if result.session is None:
            RecordingSession(store, "shell").take_baseline()
            result.session = "shell" if on_disk else None
        elif on_disk:
            _put_cursor(store, result.session)
            RecordingSession(store, result.session).take_baseline()

    create_store(home, root, anyway=anyway, id=id, begin=begin, **settings)
    return result


def _remote_for(store: StoreHandle, url: str) -> Remote:
    """Return the remote of a new store, without a name if its address has a password.

    Such an address is used once and not stored.
    """
    if bundles.is_bundle(url):
        return Remote("", absolute(url))
    try:
        refuse_password(url)
    except Unsafe:
        return Remote("", url)
    return Remotes(store).add(DEFAULT, url)


def _put_cursor(store: StoreHandle, session: str) -> None:
    """Set the cursor to the newest node of another machine's session; no file changes.

    The next transaction records the difference.
    """
    with store.changing():
        graph = Graph(store, session)
        if graph.is_elsewhere:
            moves = [(cursor_ref(session), None, graph.cursor)]
            store.journal.carry_out(list(moves), {}, what=f"checkout of session {session}")


def _join(store: StoreHandle, url: str, id: str, progress: Progress | None, ask: Ask | None) -> CloneResult:
    """Make an existing store part of the project; its id changes together with the pull."""
    result = CloneResult(store.root)
    result.joined = store.header.id != id
    remotes = [remote for remote in Remotes(store).list() if remote.url != absolute(url)]
    if result.joined and remotes:
        raise Unsafe(
            f"this store is already shared with {remotes[0].shown}, as another project",
            f"Nothing was changed. To join anyway, run `snapstore remote remove {remotes[0].name}` first.",
        )
    known = {remote.name for remote in Remotes(store).list()}
    remote = _remote_for(store, url)
    header = copy(store.header)
    header.id = id
    try:
        files = {"format": encode(header)} if result.joined else None
        result.pulled = pull(store, remote, progress=progress, ask=ask, joining=files)
    except BaseException:
        if remote.name and remote.name not in known:
            Remotes(store).remove(remote.name)
        raise
    store.header.id = id
    result.session = store.active_session()
    return result


def newest_session(store: StoreHandle) -> str | None:
    """Return the session with the newest node."""
    found: list[tuple[int, str, str]] = []
    for name in store.sessions():
        graph = Graph(store, name)
        found.append((graph.node(graph.tip).seconds, _ended_at(store, graph.tip), name))
    return max(found)[2] if found else None


def _ended_at(store: StoreHandle, commit: bytes) -> str:
    """Return when a turn ended, to the millisecond, from its record.

    A commit has whole seconds only, and two sessions may share a second.
    """
    try:
        note = json.loads(store.shadow.note(commit) or b"null")
    except (SnapstoreError, ValueError, RecursionError):
        return ""
    ended = note.get("ended_at") if isinstance(note, dict) else None
    return ended if isinstance(ended, str) else ""
