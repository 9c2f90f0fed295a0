"""Pull other machines' branches; our own refs and files do not change.

Everything is fetched and checked outside the store first. Then, under the lock, names are chosen, and all refs, the
records and `state/foreign` change in one journal entry. A kill at any point leaves the old state or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from snapstore.errors import Remote as RemoteError
from snapstore.errors import Unsafe
from snapstore.git.maintenance import fold
from snapstore.git.objects import notes
from snapstore.git.objects.ids import EMPTY_TREE, Missing
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.reachability import reachable_from
from snapstore.git.ref_names import CURSORS, MACHINES
from snapstore.git.remote import bundles
from snapstore.git.remote.connection import Ask
from snapstore.git.remote.incoming import Incoming
from snapstore.git.remote.open import open_remote
from snapstore.share.exchange_state import (
    document_of,
    exchanged,
    haves,
    known_notes,
    latest_moves,
    machine_moves,
    notes_ref,
    refuse_if_forgotten_there,
    shared_refs,
    without_dropped_refs,
)
from snapstore.share.record_sync import OwnCommits, to_receive, transcripts_of
from snapstore.share.remotes import Remote
from snapstore.share.sending import ATTEMPTS, wait
from snapstore.share.server.ancestry import Ancestry
from snapstore.share.server.machine import this_machine
from snapstore.share.server.names_here import Origin, Received, receive, recover_origins
from snapstore.share.server.names_there import Machine
from snapstore.share.server.view import ServerView, check_commits, check_project, interesting
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.store.owners import DOCUMENT, Owners
from snapstore.store.state import encode

Progress = Callable[[str, int, int], None]


class _RefsChanged(RemoteError):
    """Local refs were removed during a pull."""


class PulledRef:
    """One local ref that a pull changed: names, old and new value, turns, its machine."""

    __slots__ = ("machine", "new", "old", "ref", "there", "turns")

    def __init__(
        self, ref: str, there: str, old: bytes | None, new: bytes, *, turns: int, machine: Machine | None
    ) -> None:
        self.ref = ref
        self.there = there
        self.old = old
        self.new = new
        self.turns = turns
        self.machine = machine


class Pulled:
    """The result of a pull."""

    __slots__ = ("dropped", "empty", "gone", "objects", "received", "refused", "remote", "turns", "updates")

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.empty = False  # whether the server's repository is empty
        self.objects = 0
        self.turns = 0
        self.updates: list[PulledRef] = []
        self.received: dict[str, str] = {}  # server ref: local ref
        self.dropped: list[str] = []  # local refs that were removed because they were renamed on the server
        self.gone: list[str] = []  # refs that moved back or were deleted on the server, and stay here
        self.refused = 0  # notes that were not valid records


def pull(
    store: StoreHandle,
    remote: Remote,
    *,
    progress: Progress | None = None,
    ask: Ask | None = None,
    joining: Mapping[str, bytes | None] | None = None,
) -> Pulled:
    """Fetch what is new on the remote and record it.

    `joining` has state files that change in the same journal entry (see `clone.attach`).
    """
    if bundles.is_bundle(remote.url):
        refs = bundles.read_header(remote.url).refs
        if joining is None and not check_project(store, refs, remote.url):
            raise Unsafe(f"{remote.url} does not come from a snapstore store", "Make one with `snapstore export FILE`.")
        tips = [*haves(store), *store.shadow.refs.list("refs/").values()]
        refs, incoming = bundles.read(remote.url, store.shadow.objects, list(dict.fromkeys(tips)), progress=progress)
        with incoming:
            return _accept(store, remote, refs, incoming, joining or {})
    refuse_if_forgotten_there(store, remote)
    attempts = 0
    with open_remote(remote.url, progress=progress, ask=ask) as connection:
        if connection.lacks:
            store.say(connection.lacks)
        while True:
            refs = connection.refs()
            attempts += 1
            if joining is None and not check_project(store, refs, connection.shown):
                pulled = Pulled(remote)
                pulled.empty = True
                return pulled
            try:
                wanted = _wanted(store, without_dropped_refs(store, remote, refs))
                incoming = connection.fetch(*wanted, store.shadow.objects)
                with incoming:
                    return _accept(store, remote, refs, incoming, joining or {})
            except (_RefsChanged, Missing):  # Missing: a turn replaced old records, and a user's git removed them
                if attempts >= ATTEMPTS:
                    raise
            except RemoteError:  # over http, the refs we asked for may have moved meanwhile
                if attempts >= ATTEMPTS or connection.refs() == refs:
                    raise
            wait(attempts)


def _wanted(store: StoreHandle, refs: Mapping[str, bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the objects to ask for, and the tips that we have."""
    tips = haves(store)
    there = [oid for _, oid in interesting(refs)]
    held = reachable_from(store.shadow.objects, tips, there)
    return [oid for oid in there if oid not in held], tips


def _accept(
    store: StoreHandle, remote: Remote, refs: Mapping[str, bytes], incoming: Incoming, files: Mapping[str, bytes | None]
) -> Pulled:
    """Make fetched objects visible in one journal entry."""
    this_machine(store)  # creates the document now, not within the change
    with store.changing():
        objects = store.shadow.objects
        fresh = _fresh(store, incoming.commits)
        _refuse_unreachable(store, incoming)
        writer = objects.writer()
        try:
            with incoming.visible():
                taking = _Taking(store, remote, refs, files, fresh)
                taking.prepare(writer)
            packs = incoming.accept(writer)
        except BaseException:
            writer.abandon()
            raise
        try:
            pulled = taking.carry_out()
            pulled.objects = len(incoming.ids)
        except BaseException:
            # This removes only the `.keep` file, and not while a pending change, which the next command finishes, needs
            # the pack.
            if not store.journal.pending():
                for pack in packs:
                    objects.give_up(pack)
            raise
        for pack in packs:
            objects.release(pack)
        fold.tidy(objects)  # a machine that only pulls has no turns that would do this
        return pulled


def _fresh(store: StoreHandle, commits: list[bytes]) -> set[bytes]:
    """Return the received commits that are new here.

    Commits that a failed pull left behind are stored already, but still count as new.
    """
    objects = store.shadow.objects
    stored = [oid for oid in commits if objects.contains(oid, fresh=False)]
    return set(commits) - reachable_from(objects, store.shadow.refs.list("refs/").values(), stored)


def _refuse_unreachable(store: StoreHandle, incoming: Incoming) -> None:
    """Raise Remote if refs no longer reach the objects that the received ones build on.

    The fetch ran without the lock, so these objects may have become unreachable and may be removed at any moment. Old
    records are protected by the reflog, also from git.
    """
    refs, builds_on = store.shadow.refs, incoming.builds_on
    tips = set(refs.list("refs/").values())
    if any(oid not in tips for oid in builds_on):
        tips |= {oid for rows in refs.logged().values() for _, old, new in rows for oid in (old, new)}
    held = reachable_from(store.shadow.objects, tips, builds_on)
    if any(oid not in held for oid in builds_on):
        raise _RefsChanged("branches of this store were removed during the pull", "Nothing was changed. Pull again.")


class _Taking:
    """Chooses names for the fetched refs, and moves refs and records in one change."""

    def __init__(
        self,
        store: StoreHandle,
        remote: Remote,
        refs: Mapping[str, bytes],
        files: Mapping[str, bytes | None],
        fresh: set[bytes],
    ) -> None:
        self._store = store
        self._shadow = store.shadow
        self._remote = remote
        self._refs = refs
        self._view = ServerView(store, without_dropped_refs(store, remote, refs))
        self._files: dict[str, bytes | None] = dict(files)
        self._moves: list[RefMove] = []
        self._pulled = Pulled(remote)
        self._fresh = fresh
        self._ancestry = Ancestry(store)

    def prepare(self, writer: PackWriter) -> None:
        """Choose names and write the records. What was received must be visible."""
        store = self._store
        missing = [ref for ref, oid in interesting(self._view.refs) if not self._shadow.objects.contains(oid)]
        if missing:
            raise RemoteError(f"{self._remote.shown} did not send the commit of {missing[0]}", "Pull again.")
        check_commits(store, self._view.refs, notes.REFS, self._remote.shown)
        foreign = store.foreign()
        me = this_machine(store)
        machines = {**self._view.machines}
        local = shared_refs(store)
        origins = foreign.origins() or self._recovered_owners(me, local)
        received = receive(self._view.server, me, machines, local, origins, self._ancestry.history())
        self._advance(received)
        self._moves += machine_moves(store, self._view.refs, self._ancestry)
        self._records(writer, local, received)
        self._remember(foreign, received)

    def carry_out(self) -> Pulled:
        """Move the refs. All objects must be in the store."""
        self._ancestry.save()
        if self._moves or self._files:
            what = f"pull from {self._remote.name or 'a remote'}"
            self._store.journal.carry_out(self._moves, self._files, what=what)
        return self._pulled

    def _recovered_owners(self, me: Machine, local: Mapping[str, bytes]) -> dict[str, Origin]:
        """Return the owners of local refs if the store seems to have lost `state/foreign`.

        It may have if it knows other machines but none of their lines.
        """
        if not self._shadow.refs.list(MACHINES):
            return {}
        claims = self._view.claims.get(me.id)
        own = set(claims.refs.values()) if claims is not None else set()
        return recover_origins(self._view.server, me, local, own, self._ancestry.history())

    def _advance(self, received: Received) -> None:
        pulled, refs = self._pulled, self._shadow.refs
        names = {here: there for there, here in received.names.items()}
        pinned = {ref: refs.value(ref) for ref in refs.list(CURSORS)}
        for cursor, value in pinned.items():
            if isinstance(value, str) and value in received.dropped:
                self._moves.append((cursor, value, received.dropped[value]))
        for here, (old, new) in sorted(received.made.items()):
            for cursor, value in pinned.items():
                if value == here:  # files do not change, so the cursor must not follow the branch
                    self._moves.append((cursor, value, old))
            self._moves.append((here, old, new))
            turns = self._turns(new)
            pulled.turns += turns
            machine = self._view.machines.get(received.origins[here][0])
            pulled.updates.append(PulledRef(here, names[here], old, new, turns=turns, machine=machine))
        # Another ref contains all of each of these, and a cursor on one has been moved to its commit.
        self._moves += [(ref, tip, None) for ref, tip in sorted(received.dropped.items())]
        pulled.dropped = sorted(received.dropped)
        pulled.received = dict(received.names)
        before = exchanged(self._store, self._remote)
        gone = [ref for ref in before.seen if ref not in self._refs]
        pulled.gone = sorted({*received.rewound, *gone})

    def _turns(self, tip: bytes) -> int:
        """Return the number of new turns up to a tip, except those counted before."""
        found = 0
        at: bytes | None = tip
        while at is not None and at in self._fresh:
            self._fresh.remove(at)
            commit = self._shadow.commit(at)
            found += commit.number("Turn") is not None
            at = commit.parents[0] if commit.parents else None
        return found

    def _records(self, writer: PackWriter, local: Mapping[str, bytes], received: Received) -> None:
        shadow, theirs = self._shadow, self._view.notes
        base_ref = notes_ref(self._remote)
        if theirs is None:
            return
        held = shadow.refs.read(base_ref) if base_ref is not None else None
        ours = shadow.refs.read(notes.REF)
        if theirs != held:
            tree = shadow.commit(ours).tree if ours is not None else EMPTY_TREE
            owned = [oid for ref, oid in local.items() if ref not in received.origins]
            others = [received.made.get(ref, (None, local.get(ref, b"")))[1] for ref in received.origins]
            own = OwnCommits(self._ancestry, owned, others)
            base = known_notes(self._store, self._remote, theirs, self._ancestry)
            base_tree = shadow.commit(base).tree if base is not None else None
            blobs, self._pulled.refused = to_receive(shadow, tree, shadow.commit(theirs).tree, base_tree, own)
            seconds = max(0, int(self._store.clock()))
            lines = transcripts_of(shadow, self._view.transcripts, blobs)
            for ref, taken in ((notes.REF, blobs), (notes.TRANSCRIPTS, lines)):
                if taken:
                    self._moves.append((ref, *shadow.add_notes(writer, ref, taken.items(), seconds)))
            if base_ref is not None:
                self._moves.append((base_ref, held, theirs))
        tips = theirs, self._view.transcripts
        self._moves += latest_moves(self._store, self._remote, tips, self._moves)

    def _remember(self, foreign: Owners, received: Received) -> None:
        machines = {**foreign.machines}
        for id, machine in self._view.machines.items():
            machines[id] = {"name": machine.name, "person": machine.person, "email": machine.email}
        used = {owner[0] for owner in received.origins.values()}
        after = Owners(
            machines={id: row for id, row in sorted(machines.items()) if id in used},
            refs={ref: list(origin) for ref, origin in sorted(received.origins.items())},
        )
        if (after.refs or foreign.refs) and (after.refs, after.machines) != (foreign.refs, foreign.machines):
            self._files[DOCUMENT] = encode(after)
        if self._remote.name:
            document = exchanged(self._store, self._remote)
            seen = sorted(self._view.server.refs)
            if seen != document.seen:
                document.seen = seen
                self._files[document_of(self._remote)] = encode(document)
