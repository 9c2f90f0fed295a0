"""Push our refs to a server, under names that no other machine uses there.

Refs on the server are only created or advanced. Branches, records and claims go in one atomic push if the server
supports that. If not, branches go first, so that nothing is claimed that is not there. A push that loses a race reads
the server's refs again and retries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from snapstore.errors import Remote as RemoteError
from snapstore.git.objects import notes, reachability
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, Missing
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.ref_names import MACHINES, SAFETY, STORES
from snapstore.git.remote.connection import Ask, Connection
from snapstore.git.remote.open import open_remote
from snapstore.share import chunked_push
from snapstore.share.exchange_state import (
    document_of,
    exchanged,
    haves,
    known_notes,
    latest_moves,
    machine_moves,
    notes_ref,
    own_refs,
    refuse_if_forgotten_there,
)
from snapstore.share.record_sync import OwnCommits, to_send, transcripts_of
from snapstore.share.remotes import Remote
from snapstore.share.secrets import check
from snapstore.share.sending import ATTEMPTS, Batch, Pushed, PushedRef, send, wait
from snapstore.share.server.ancestry import Ancestry
from snapstore.share.server.default_branch import advance, is_asked
from snapstore.share.server.machine import Claims, this_machine, write_claims, write_store
from snapstore.share.server.names_there import Machine, publish, updates
from snapstore.share.server.view import ServerView, check_commits, check_project
from snapstore.store import log
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.store.state import encode

Progress = Callable[[str, int, int], None]
Updates = dict[str, tuple[bytes | None, bytes | None]]

_UNMOVED = 2  # refusals by a server whose refs did not move meanwhile, after which the refusal is final
_RETRY_FOR = 30.0  # seconds; if very many machines push at once, ten attempts can fail in a row


def push(
    store: StoreHandle,
    remote: Remote,
    *,
    progress: Progress | None = None,
    ask: Ask | None = None,
    with_safety: bool = False,
) -> Pushed:
    """Send what is new here; raise Remote if the server refuses, Secret for a secret."""
    refuse_if_forgotten_there(store, remote)
    pushed = Pushed(remote)
    unmoved, start = 0, time.monotonic()
    cleared: set[bytes] = set()
    while True:
        pushed.attempts += 1
        with open_remote(remote.url, progress=progress, ask=ask) as connection:
            if connection.lacks and pushed.attempts == 1:
                store.say(connection.lacks)
            attempt = _Attempt(store, remote, connection, pushed, cleared, with_safety=with_safety)
            try:
                refused = attempt.run()
                if not refused:
                    log.clear_notice(f"{store.folder}/log", f"push-{remote.name}")
                    return pushed
                error: RemoteError | Missing = _refused(connection.shown, refused)
            except (RemoteError, Missing) as found:
                # The refs we asked for may have moved meanwhile. Or we read old records without the lock, a turn has
                # replaced them since, and a user's git removed them.
                error = found
                if not attempt.refs:
                    raise
            try:
                unmoved = unmoved + 1 if connection.refs(push=True) == attempt.refs else 0
            except RemoteError:  # the server is unreachable now: the first error says more
                raise error from None
        if unmoved >= _UNMOVED or (pushed.attempts >= ATTEMPTS and time.monotonic() - start > _RETRY_FOR):
            raise error
        wait(pushed.attempts)


def _refused(shown: str, refused: Mapping[str, str]) -> RemoteError:
    ref, why = next(iter(sorted(refused.items())))
    return RemoteError(
        f"{shown} refused {ref}: {why}",
        "Nothing there was overwritten. Read the server's message, then push again.",
        refs=dict(refused),
    )


class _Attempt:
    """One attempt to push; `push` starts another if this one loses a race."""

    def __init__(
        self,
        store: StoreHandle,
        remote: Remote,
        connection: Connection,
        pushed: Pushed,
        cleared: set[bytes],
        *,
        with_safety: bool,
    ) -> None:
        self._store = store
        self._shadow = store.shadow
        self._remote = remote
        self._connection = connection
        self._pushed = pushed
        self._cleared = cleared  # objects without secrets; each is checked once, however many attempts there are
        self._with_safety = with_safety
        self._me = this_machine(store)
        self._seconds = max(0, int(store.clock()))
        self._ancestry = Ancestry(store)
        self._fetched: set[bytes] = set()
        self.refs: dict[str, bytes] = {}
        self.view = ServerView(store, {})

    def run(self) -> dict[str, str]:
        """Run the attempt; return the refs that the server did not accept, and why."""
        store, connection = self._store, self._connection
        refs = self.refs = connection.refs(push=True)
        check_project(store, refs, connection.shown)
        while self._fetch_claims(refs):
            refs = self.refs = connection.refs(push=True)
            check_project(store, refs, connection.shown)
        check_commits(store, refs, (*notes.REFS, f"{MACHINES}{self._me.id}"), connection.shown)
        self.view = ServerView(store, refs)
        own = own_refs(store)
        history = self._ancestry.history()
        pushed = exchanged(store, self._remote).pushed.values()
        seen = {ref: bytes.fromhex(commit) for ref, commit in pushed} | self.view.seen(store, store.foreign())
        names = publish(own, self.view.server, self._me, history, seen)
        branches: Updates = dict(updates(own, names, self.view.server, history))
        if self._with_safety:
            branches |= self._safety(refs)
        tips = [new for _, new in branches.values() if new is not None]
        known = chunked_push.other_targets(refs)
        new = [(oid, kind) for oid, kind, _, _ in reachability.new_objects(self._shadow.objects, tips, known)]
        fresh = [oid for oid, kind in new if kind == COMMIT]
        blobs = self._records(own, fresh)
        self._ancestry.save()
        self._refuse_secrets(fresh, blobs, {name: new for name, (_, new) in branches.items() if new is not None})
        default_branch = self._default_branch(own, names, refs)
        writer = self._shadow.objects.writer()
        try:
            metadata = self._metadata(writer, names, blobs, refs, default_branch)
            pack = self._shadow.objects.finish(writer)
        except BaseException:
            writer.abandon()
            raise
        try:
            ends = [oid for _, oid in metadata.values() if oid is not None]
            extra = [item[:2] for item in reachability.new_objects(self._shadow.objects, ends, [*known, *tips])]
            parts = chunked_push.Parts(self._shadow, connection, self._me.id, refs)
            files = [oid for oid, kind in (*new, *extra) if kind == BLOB]
            project = {ref: move for ref, move in metadata.items() if ref.startswith(STORES)}
            sent = project if parts.send(files, self._seconds, project) else {}
            left = {ref: move for ref, move in metadata.items() if ref not in sent}
            objects = [oid for oid, _ in (*new, *extra) if oid not in parts.there]
            batch = Batch(branches, left, default_branch, objects, has_parts=bool(parts.there))
            refused = send(connection, self._shadow.objects, batch, self._pushed)
            if not refused:
                self._save_state(own, names, branches, metadata, fresh, len(new) + len(extra))
                parts.clear()
        finally:
            self._shadow.objects.release(pack)
        return refused

    def _fetch_claims(self, refs: Mapping[str, bytes]) -> bool:
        """Fetch the machines' claims and the records that a push adds to.

        Return whether any were missing here.
        """
        store = self._store
        wanted = {ref: oid for ref, oid in refs.items() if ref in notes.REFS or ref.startswith(MACHINES)}
        # A stored object that no ref reaches may lack parts, and a gc may remove it at any moment.
        held = reachability.reachable_from(self._shadow.objects, haves(store), wanted.values()) | self._fetched
        lacking = [oid for oid in wanted.values() if oid not in held]
        if not lacking:
            return False
        self._fetched.update(lacking)  # fetch once, because a restored server may have objects that no ref here reaches
        with self._connection.fetch(lacking, haves(store), self._shadow.objects) as incoming, store.changing():
            packs = incoming.accept()
            try:
                moves = machine_moves(store, wanted, self._ancestry)
                moves += latest_moves(store, self._remote, [wanted.get(ref) for ref in notes.REFS])
                if moves:
                    store.journal.carry_out(moves, {}, what="look at a remote")
            except BaseException:
                if not store.journal.pending():
                    for pack in packs:
                        self._shadow.objects.give_up(pack)
                raise
            for pack in packs:
                self._shadow.objects.release(pack)
        return True

    def _safety(self, refs: Mapping[str, bytes]) -> Updates:
        """Return updates that copy safety commits of forced moves; nobody pulls them."""
        found: Updates = {}
        for ref, oid in self._shadow.refs.list(SAFETY).items():
            there = f"{SAFETY}{self._me.id}/{ref.removeprefix(SAFETY)}"
            if refs.get(there) is None:
                found[there] = (None, oid)
        return found

    def _records(self, own: Mapping[str, bytes], fresh: list[bytes]) -> dict[bytes, bytes]:
        shadow = self._shadow
        ours, theirs = shadow.refs.read(notes.REF), self.view.notes
        if ours is None:
            return {}
        base = known_notes(self._store, self._remote, theirs, self._ancestry) if theirs is not None else None
        foreign = self._store.foreign().refs
        others = [oid for ref in foreign if (oid := shadow.refs.read(ref)) is not None]
        mine = OwnCommits(self._ancestry, own.values(), others)
        sent = set(fresh)
        return to_send(
            shadow,
            shadow.commit(ours).tree,
            shadow.commit(theirs).tree if theirs is not None else EMPTY_TREE,
            shadow.commit(base).tree if base is not None else None,
            lambda commit: commit in sent or mine.leads_to(commit),
            mine,
        )

    def _refuse_secrets(self, fresh: list[bytes], blobs: Mapping[bytes, bytes], refs: Mapping[str, bytes]) -> None:
        commits = [oid for oid in fresh if oid not in self._cleared]
        lines = transcripts_of(self._shadow, self._shadow.refs.read(notes.TRANSCRIPTS), blobs)
        records = [(oid, blob) for oid, blob in (*blobs.items(), *lines.items()) if blob not in self._cleared]
        names = {**refs, **self._new_identity()}
        if commits or records or names:
            found = check.check(self._store, commits, records, names=names, say=self._pushed.remarks.append)
            check.refuse(found)
            self._cleared.update(commits, (blob for _, blob in records))

    def _new_identity(self) -> dict[str, bytes]:
        """Return this machine's name and person if they are new to the server."""
        known, me = self.view.claims.get(self._me.id), self._me
        if known is not None and _identity(known.machine) == _identity(me):
            return {}
        return {f"machine {me.name} of {me.person} <{me.email}>": b""}

    def _default_branch(self, own: Mapping[str, bytes], names: Mapping[str, str], refs: Mapping[str, bytes]) -> Updates:
        """Return the move of the branch that `git clone` checks out, if it moves."""
        branch = self._connection.default_branch()
        refused_at = exchanged(self._store, self._remote).protected.get(branch)
        if branch == self._pushed.protected or not is_asked(refused_at, self._seconds):
            return {}
        return advance(branch, own.get(str(self._shadow.refs.value("HEAD"))), refs, names.values(), self._ancestry)

    def _metadata(
        self,
        writer: PackWriter,
        names: Mapping[str, str],
        blobs: Mapping[bytes, bytes],
        refs: Mapping[str, bytes],
        default_branch: Updates,
    ) -> Updates:
        """Write what is pushed besides branches: the store's id, the records and our claims."""
        found: Updates = {}
        shadow = self._shadow
        if f"{STORES}{self._store.header.id}" not in refs:
            found[f"{STORES}{self._store.header.id}"] = (None, write_store(writer, self._store.header.id))
        lines = transcripts_of(shadow, shadow.refs.read(notes.TRANSCRIPTS), blobs)
        for ref, theirs, sent in (
            (notes.REF, self.view.notes, blobs),
            (notes.TRANSCRIPTS, self.view.transcripts, lines),
        ):
            tree = shadow.commit(theirs).tree if theirs is not None else EMPTY_TREE
            merged = notes.put(shadow.trees, writer, tree, sent.items()) if sent else tree
            if merged != tree:
                parents = [theirs] if theirs is not None else []
                found[ref] = (theirs, shadow.notes_commit(writer, merged, self._seconds, parents))
        known = self.view.claims.get(self._me.id)
        claimed = {**(known.refs if known is not None else {}), **{name: ref for ref, name in names.items()}}
        advanced = {*(known.default_branches if known is not None else ()), *default_branch}
        claims = Claims(self._me, claimed, self._retired(known, names), advanced)
        if known is None or _content(known) != _content(claims):
            ref = f"{MACHINES}{self._me.id}"
            previous = refs.get(ref)
            found[ref] = (previous, write_claims(shadow, writer, claims, previous, self._seconds))
        return found

    def _retired(self, known: Claims | None, names: Mapping[str, str]) -> set[str]:
        """Return our refs on the server that were renamed or removed here.

        Refs that others have moved, or that we never had, are not included: a home folder that was copied or restored
        from a backup shares its id with another machine, which may still use these refs.
        """
        if known is None:
            return set()
        ours = set(known.refs)
        if self._remote.name:
            there = self.view.server.refs
            pushed = exchanged(self._store, self._remote).pushed.values()
            ours = {ref for ref, commit in pushed if ref in known.refs and ref in there and there[ref].hex() == commit}
        return (known.retired | ours).difference(names.values())

    def _save_state(
        self,
        own: Mapping[str, bytes],
        names: Mapping[str, str],
        branches: Updates,
        metadata: Updates,
        fresh: list[bytes],
        objects: int,
    ) -> None:
        """Save what the server has now."""
        store, remote, pushed, refs = self._store, self._remote, self._pushed, self._shadow.refs
        with store.changing():
            moves: list[RefMove] = []
            files: dict[str, bytes | None] = {}
            base_ref = notes_ref(remote)
            there = metadata[notes.REF][1] if notes.REF in metadata else self.view.notes
            lines = metadata[notes.TRANSCRIPTS][1] if notes.TRANSCRIPTS in metadata else self.view.transcripts
            if (
                base_ref is not None
                and there is not None
                and refs.read(base_ref) != there
                and self._knows_all_records()
            ):
                moves.append((base_ref, refs.read(base_ref), there))
            moves += latest_moves(store, remote, (there, lines), moves)
            own_ref = f"{MACHINES}{self._me.id}"
            if own_ref in metadata:
                moves.append((own_ref, refs.read(own_ref), metadata[own_ref][1]))
            document = exchanged(store, remote)
            # A ref that was renamed or removed here is still on the server.
            after = {**document.pushed, **{ref: [name, own[ref].hex()] for ref, name in sorted(names.items())}}
            protected = {pushed.protected: self._seconds} if pushed.protected else document.protected
            if remote.name and (document.pushed, document.protected) != (after, protected):
                document.pushed, document.protected = after, protected
                files[document_of(remote)] = encode(document)
            # A forget in between may have removed what was pushed, and no ref here may lead to missing objects.
            self._shadow.objects.refresh()
            contains = self._shadow.objects.contains
            moves = [move for move in moves if not isinstance(move[2], bytes) or contains(move[2])]
            if moves or files:
                store.journal.carry_out(moves, files, what=f"push to {remote.name or 'a remote'}")
        commit = self._shadow.commit
        pushed.objects = objects
        pushed.refs = dict(names)
        pushed.turns = sum(commit(oid).number("Turn") is not None for oid in fresh)
        homes = {name: ref for ref, name in names.items()}
        pushed.updates = [PushedRef(homes.get(name), name, old, new) for name, (old, new) in sorted(branches.items())]

    def _knows_all_records(self) -> bool:
        """Return whether every record of the server is here.

        If so, the next exchange can start from these records. If not, others have added records that were not pulled.
        """
        shadow, theirs = self._shadow, self.view.notes
        base_ref = notes_ref(self._remote)
        base = shadow.refs.read(base_ref) if base_ref is not None else None
        return theirs is None or theirs == base


def _content(claims: Claims) -> tuple[object, ...]:
    return claims.refs, claims.retired, claims.default_branches, *_identity(claims.machine)


def _identity(machine: Machine) -> tuple[str, ...]:
    return machine.name, machine.person, machine.email
