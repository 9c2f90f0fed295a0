"""Replace forgotten commits on remotes.

This is the only place that forces anything on a server. It forces only refs that this machine pushed, from exactly the
value it pushed, and the default branch, whichever machine advanced it. What others built on forgotten commits, what the
server keeps for itself and what others have fetched is out of reach, and the user is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.errors import SnapstoreError
from snapstore.git.objects import notes, reachability
from snapstore.git.objects.ids import EMPTY_TREE, Entry
from snapstore.git.ref_names import MACHINES, SAFETY
from snapstore.git.remote.connection import Connection, NotAtomic
from snapstore.git.remote.open import open_remote
from snapstore.share import chunked_push
from snapstore.share.exchange_state import document_of, exchanged, has_forgotten_commits, haves
from snapstore.share.remotes import Remote, Remotes
from snapstore.share.server.default_branch import Trail, candidates
from snapstore.share.server.machine import read_claims, this_machine
from snapstore.share.server.names_there import PLACES
from snapstore.store.handle import StoreHandle
from snapstore.store.state import encode
from snapstore.timeline.forget import rewritten_ids
from snapstore.timeline.forget.forget import PURGE, follow_up
from snapstore.timeline.forget.rewritten_ids import RewrittenIds

Updates = dict[str, tuple[bytes | None, bytes | None]]

SERVER = "what the server itself keeps of replaced history until its own gc; forks and caches of it"
CLONES = "what other machines and clones have: forget it there too, or the next pull brings it back"


class RemoteResult:
    """The result for one remote: whether our refs there were replaced, and what is left."""

    __slots__ = ("done", "error", "left", "remote")

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.done = False
        self.left: list[str] = []
        self.error: str | None = None

    def lines(self) -> list[str]:
        """Return the result as lines for the user."""
        name = self.remote.name
        if self.error is not None:
            return [f"Remote {name} was not changed: {self.error}"]
        head = (
            f"Remote {name}: this machine's refs were replaced." if self.done else f"Remote {name} may still have it."
        )
        return [head, *(f"  Left there: {text}" for text in self.left)]


def survey(store: StoreHandle) -> list[RemoteResult]:
    """Return the remotes that may have what is forgotten, without changing them."""
    found = []
    for remote in Remotes(store).list():
        result = RemoteResult(remote)
        result.left = ["everything that was pushed: `--remotes` replaces this machine's refs there", CLONES]
        found.append(result)
    return found


def is_due(store: StoreHandle) -> bool:
    """Return whether a remote may have what was forgotten here earlier."""
    return any(has_forgotten_commits(store, remote) for remote in Remotes(store).list())


def replace(store: StoreHandle) -> list[RemoteResult]:
    """Replace our forgotten commits on every remote, also those of earlier forgets.

    An unreachable remote does not stop the others, and is handled next time.
    """
    found = []
    for remote in Remotes(store).list():
        result = RemoteResult(remote)
        found.append(result)
        try:
            _Replacement(store, remote, rewritten_ids.read(store), result).run()
            with store.changing():
                done = rewritten_ids.marked_done(store, remote.name)
                store.journal.carry_out([], done, what=f"forgetting on {remote.name}")
        except SnapstoreError as error:
            result.error = f"{error.message} {error.hint}"
            result.left = ["everything that was pushed", CLONES]
    if found:
        with store.changing():  # the server's records had to be fetched to be changed
            follow_up(store, PURGE)
    return found


class _Replacement:
    """The replacement of forgotten commits on one remote."""

    def __init__(self, store: StoreHandle, remote: Remote, known: RewrittenIds, result: RemoteResult) -> None:
        self._store = store
        self._shadow = store.shadow
        self._remote = remote
        self._new = known.new
        self._gone = {bytes.fromhex(commit) for commit in known.gone}
        self._result = result
        self._me = this_machine(store).id
        self._packs: list[str | None] = []  # objects that no ref reaches, kept until they are sent

    def run(self) -> None:
        try:
            self._run()
        finally:
            for pack in self._packs:
                self._shadow.objects.give_up(pack)

    def _run(self) -> None:
        with open_remote(self._remote.url) as connection:
            if connection.lacks:
                self._store.say(connection.lacks)
            refs = connection.refs(push=True)
            updates = self._refs(refs)
            ours = self._ours()
            for ref in notes.REFS:
                records = self._records(connection, ref, refs.get(ref))
                if records is not None:
                    updates[ref] = (refs[ref], records)
            self._send(connection, refs, updates)
            handled = self._default_branches(connection, refs, updates)
            # A large push that was interrupted has left files on the server.
            self._note_refusals(chunked_push.drop(connection, self._me, refs, self._shadow.objects))
        places = tuple(f"{place}/" for place in PLACES)
        theirs = sorted(ref for ref in refs if ref.startswith(places) and ref not in ours and ref not in handled)
        if theirs:
            self._result.left.append(
                f"lines of other machines, which this machine may not change: {', '.join(theirs[:8])}"
            )
        self._result.left += [SERVER, CLONES]

    def _ours(self) -> dict[str, tuple[str, str]]:
        """Return our refs on the server, each with its local name and the commit we pushed.

        The commit is "" if it is not known.
        """
        found = {
            there: (local, commit) for local, (there, commit) in exchanged(self._store, self._remote).pushed.items()
        }
        tip = self._shadow.refs.read(f"{MACHINES}{self._me}")
        claims = read_claims(self._shadow, self._me, tip) if tip is not None else None
        for there, home in claims.refs.items() if claims is not None else ():
            found.setdefault(there, (home, ""))  # pushed before the ref got its current name on the server
        return found

    def _refs(self, refs: Mapping[str, bytes]) -> Updates:
        """Return updates for our refs on the server whose commits were rewritten.

        A ref that is not as we pushed it is in use by somebody else.
        """
        updates: Updates = {}
        for there, (local, commit) in self._ours().items():
            now, new = refs.get(there), self._shadow.refs.read(local)
            if now is None or now == new:
                continue
            if now in self._new:
                updates[there] = (now, new if commit and new is not None else self._replacement(now))
            elif commit and new is not None and now.hex() != commit:
                self._result.left.append(f"{there}, which has changed since this machine pushed it")
            elif not self._shadow.objects.contains(now):
                self._result.left.append(f"{there}, which no longer exists on this machine: its content is unknown")
        mine = f"{SAFETY}{self._me}/"
        for there, now in refs.items():
            if there.startswith(mine) and now in self._new:
                updates[there] = (now, self._replacement(now))
        return updates

    def _default_branches(self, connection: Connection, refs: Mapping[str, bytes], updates: Updates) -> set[str]:
        """Replace or delete default branches that lead to forgotten commits.

        They go one by one and after everything else, because servers often protect them, and such a branch may be the
        last to hold what was replaced. A branch with a person's own commits is reported and left alone.
        """
        found = candidates(self._shadow, connection.default_branch(), refs)
        for branch, tip in found.items():
            trail = self._trail(connection, tip)
            if trail.by_hand and (trail.forgotten is not None or not trail.whole):
                self._result.left.append(f"{branch}, which leads to it and holds commits that snapstore did not make")
                self._result.done = False
            elif trail.forgotten is not None:
                self._replace_default(connection, branch, tip, self._replacement(trail.forgotten), refs, updates)
            elif not trail.whole:
                self._result.left.append(f"{branch}, whose history this machine does not have")
                self._result.done = False
        return set(found)

    def _trail(self, connection: Connection, tip: bytes) -> Trail:
        """Return what a branch leads to; missing objects are fetched temporarily."""
        trail = Trail(self._shadow, tip, self._new)
        if trail.whole:
            return trail
        try:
            with (
                connection.fetch([tip], haves(self._store), self._shadow.objects) as incoming,
                self._store.changing(),
            ):
                self._packs += incoming.accept()
        except SnapstoreError:
            return trail
        return Trail(self._shadow, tip, self._new)

    def _replace_default(
        self,
        connection: Connection,
        branch: str,
        old: bytes,
        new: bytes | None,
        refs: Mapping[str, bytes],
        updates: Updates,
    ) -> None:
        objects = self._shadow.objects
        there = [oid for ref, oid in refs.items() if ref not in updates and ref != branch]
        why = None
        for value in (new, None) if new is not None else (None,):
            sent = (
                [oid for oid, _, _, _ in reachability.new_objects(objects, [value], there)] if value is not None else []
            )
            why = connection.push({branch: (old, value)}, sent, objects, atomic=False, forced=[branch])[branch]
            if why is None:
                break
        if why is not None:
            self._note_refusals({branch: why})
        elif value is None:
            self._result.left.append(f"nothing of {branch}, which was deleted: the next push creates it again")

    def _replacement(self, commit: bytes) -> bytes | None:
        """Return the replacement of a commit, None if it is gone here.

        In that case the server's ref is deleted.
        """
        new = self._new[commit]
        return new if self._shadow.objects.contains(new) else None

    def _records(self, connection: Connection, ref: str, old: bytes | None) -> bytes | None:
        """Return the server's records with ours for rewritten commits.

        The new commit has no parents, because the old history contains the forgotten records.
        """
        shadow = self._shadow
        if old is None:
            return None
        if not shadow.objects.contains(old):
            with connection.fetch([old], haves(self._store), shadow.objects) as incoming, self._store.changing():
                self._packs += incoming.accept()
        new, gone = self._new, self._gone
        ours = shadow.refs.read(ref)
        own = shadow.commit(ours).tree if ours is not None else None
        entries: dict[bytes, Entry | None] = {}
        tree = shadow.commit(old).tree
        for path, entry in shadow.trees.walk(tree):
            commit = notes.commit_of(path)
            if commit is None:
                entries[path] = entry
            elif commit not in gone:
                name = new.get(commit, commit)
                here = notes.find(shadow.trees, own, name) if own is not None else None
                digits = name.hex().encode()
                entries[b"%s/%s" % (digits[:2], digits[2:])] = (entry[0], here or entry[1])
        with self._store.changing():
            writer = shadow.objects.writer()
            made = shadow.trees.rewrite(writer, EMPTY_TREE, entries)
            seconds = max(0, int(self._store.clock()))
            result = shadow.notes_commit(writer, made, seconds)
            self._packs.append(shadow.objects.finish(writer))
        return result

    def _note_refusals(self, results: Mapping[str, str | None]) -> None:
        for ref, why in results.items():
            if why is not None:
                self._result.left.append(f"{ref}: the server says {why}")
                self._result.done = False

    def _send(self, connection: Connection, refs: Mapping[str, bytes], updates: Updates) -> None:
        if not updates:
            self._result.done = True
            return
        objects = self._shadow.objects
        ends = [new for _, new in updates.values() if new is not None]
        staying = [oid for ref, oid in refs.items() if ref not in updates]
        sent = [oid for oid, _, _, _ in reachability.new_objects(objects, ends, staying)]
        try:
            results = connection.push(updates, sent, objects, atomic=True, forced=list(updates))
        except NotAtomic:
            results = connection.push(updates, sent, objects, atomic=False, forced=list(updates))
        refused = {ref: why for ref, why in results.items() if why is not None}
        self._result.done = True
        self._note_refusals(refused)
        document = exchanged(self._store, self._remote)
        for local, (there, _) in list(document.pushed.items()):
            if there in updates and there not in refused:
                new = updates[there][1]
                document.pushed[local] = [there, new.hex() if new is not None else ""]
                if new is None:
                    del document.pushed[local]
        with self._store.changing():
            self._store.journal.carry_out(
                [], {document_of(self._remote): encode(document)}, what=f"forgetting on {self._remote.name}"
            )
