"""Read and update the shared refs of a store and the last exchange per remote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snapstore.errors import Unsafe
from snapstore.git.objects.notes import REFS as NOTES
from snapstore.git.ref_names import MACHINES, REMOTES
from snapstore.share.remotes import Remote
from snapstore.share.server.ancestry import Ancestry
from snapstore.share.server.machine import is_id
from snapstore.share.server.names_there import PLACES, split
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.timeline.forget import rewritten_ids

_LATEST = ("latest", "latest-transcripts")  # per remote: refs to the server's notes, in the order of notes.REFS


class Exchanged:
    """State per remote besides refs: what was pushed where, and the refs seen there."""

    __slots__ = ("protected", "pushed", "seen")

    def __init__(
        self,
        *,
        pushed: dict[str, list[str]] | None = None,
        seen: list[str] | None = None,
        protected: dict[str, int] | None = None,
    ) -> None:
        self.pushed = pushed or {}  # local ref: [server ref, commit]
        self.seen = seen or []
        self.protected = protected or {}  # the server's default branch: when (in seconds) it refused to move


def document_of(remote: Remote) -> str:
    return f"shared/{remote.name}.json"


def notes_ref(remote: Remote) -> str | None:
    """Return the local ref of the server's records at the last exchange.

    The next exchange compares with these records.
    """
    return f"{REMOTES}{remote.name}/notes" if remote.name else None


def known_notes(store: StoreHandle, remote: Remote, theirs: bytes, ancestry: Ancestry) -> bytes | None:
    """Return the server's records at the last exchange.

    None if the server no longer has them, such as after it was restored from a backup.
    """
    ref = notes_ref(remote)
    base = store.shadow.refs.read(ref) if ref is not None else None
    return base if base is not None and ancestry.descends(theirs, base) else None


def exchanged(store: StoreHandle, remote: Remote) -> Exchanged:
    found = store.documents.read(Exchanged, document_of(remote)) if remote.name else None
    return found or Exchanged()


def has_forgotten_commits(store: StoreHandle, remote: Remote) -> bool:
    """Return whether a remote may still have forgotten commits under our names."""
    known = rewritten_ids.read(store)
    if not known.commits or remote.name in known.done:
        return False
    return any(commit in known.commits for _, commit in exchanged(store, remote).pushed.values())


def refuse_if_forgotten_there(store: StoreHandle, remote: Remote) -> None:
    """Raise Unsafe if an exchange with the remote would bring back what was forgotten."""
    if has_forgotten_commits(store, remote):
        raise Unsafe(
            f"{remote.name} still has what was forgotten here",
            "`snapstore forget --remotes` replaces this machine's refs there, and lists what it cannot replace.",
            remote=remote.name,
        )


def without_dropped_refs(store: StoreHandle, remote: Remote, refs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a server's refs without those that were forgotten or pruned here.

    A ref counts as pruned if the server has it as we pushed it and it no longer exists here. A pull must not bring it
    back as another machine's ref.
    """
    forgotten = rewritten_ids.read(store).commits
    here = store.shadow.refs
    pushed = exchanged(store, remote).pushed
    gone = {(there, commit) for local, (there, commit) in pushed.items() if here.value(local) is None}
    return {ref: oid for ref, oid in refs.items() if (ref, oid.hex()) not in gone and oid.hex() not in forgotten}


def shared_refs(store: StoreHandle) -> dict[str, bytes]:
    """Return every local branch and checkpoint that can be shared, whoever owns it."""
    found = {ref: oid for place in PLACES for ref, oid in store.shadow.refs.list(f"{place}/").items()}
    return {ref: oid for ref, oid in found.items() if split(ref)}


def own_refs(store: StoreHandle) -> dict[str, bytes]:
    foreign = store.foreign().refs
    return {ref: oid for ref, oid in shared_refs(store).items() if ref not in foreign}


def haves(store: StoreHandle) -> list[bytes]:
    """Return local tips, whose history a server need not send."""
    refs = store.shadow.refs
    found = [*shared_refs(store).values(), *refs.list(MACHINES).values(), *refs.list(REMOTES).values()]
    own = [refs.read(ref) for ref in NOTES]
    return list(dict.fromkeys([*found, *(tip for tip in own if tip is not None)]))


def latest_moves(
    store: StoreHandle, remote: Remote, notes: Iterable[bytes | None], beside: Iterable[RefMove] = ()
) -> list[RefMove]:
    """Return moves of the refs that hold the server's current records and transcripts.

    A push builds on these commits, and they may contain records that were not pulled yet, so no gc may remove them.
    Commits that the moves in `beside` already hold need no other ref.
    """
    held = {move[2] for move in beside}
    moves: list[RefMove] = []
    for name, tip in zip(_LATEST, notes, strict=True):
        ref = f"{REMOTES}{remote.name or 'unnamed'}/{name}"
        old = store.shadow.refs.read(ref)
        if tip is not None and tip not in held and tip != old:
            moves.append((ref, old, tip))
    return moves


def machine_moves(store: StoreHandle, refs: Mapping[str, bytes], ancestry: Ancestry) -> list[RefMove]:
    """Return moves that store other machines' claims here; they only advance."""
    moves: list[RefMove] = []
    for ref, new in sorted(refs.items()):
        if ref.startswith(MACHINES) and is_id(ref.removeprefix(MACHINES)):
            old = store.shadow.refs.read(ref)
            if new != old and (old is None or ancestry.descends(new, old)):
                moves.append((ref, old, new))
    return moves
