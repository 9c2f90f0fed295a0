"""What of a store is shared: its refs, which of them are ours, and what was last exchanged with each remote."""

from __future__ import annotations

from snapstore.errors import Unsafe
from snapstore.git.objects.notes import REFS as NOTES
from snapstore.share.server.machine import PREFIX, is_id
from snapstore.share.server.names_there import PLACES, split
from snapstore.timeline.forget import rewritten_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from snapstore.share.remotes import Remote
    from snapstore.share.server.ancestry import Ancestry
    from snapstore.store.handle import StoreHandle
    from snapstore.store.journal import RefMove


_LATEST = ("latest", "latest-transcripts")  # of a remote: where its notes stand, by notes.REFS


class Exchanged:
    """Beside the refs, for one remote: where each of ours is there and how far, and what was there when we looked."""

    __slots__ = ("protected", "pushed", "seen")

    def __init__(
        self,
        *,
        pushed: dict[str, list[str]] | None = None,
        seen: list[str] | None = None,
        protected: dict[str, int] | None = None,
    ) -> None:
        self.pushed = pushed or {}  # local ref: [ref there, commit]
        self.seen = seen or []
        self.protected = protected or {}  # a default branch there: the second at which the server refused to move it


def document_of(remote: Remote) -> str:
    return f"shared/{remote.name}.json"


def notes_ref(remote: Remote) -> str | None:
    """Holds the server's records as both sides last knew them: where the next exchange starts from."""
    return f"refs/snapstore/remotes/{remote.name}/notes" if remote.name else None


def known_notes(store: StoreHandle, remote: Remote, theirs: bytes, ancestry: Ancestry) -> bytes | None:
    """The server's records as both sides last knew them. A server that went back to a backup knows them no longer."""
    ref = notes_ref(remote)
    base = store.shadow.refs.read(ref) if ref is not None else None
    return base if base is not None and ancestry.descends(theirs, base) else None


def exchanged(store: StoreHandle, remote: Remote) -> Exchanged:
    found = store.documents.read(Exchanged, document_of(remote)) if remote.name else None
    return found or Exchanged()


def is_untold(store: StoreHandle, remote: Remote) -> bool:
    """Whether a remote may have under our names what was forgotten here."""
    known = rewritten_ids.read(store)
    if not known.commits or remote.name in known.done:
        return False
    return any(commit in known.commits for _, commit in exchanged(store, remote).pushed.values())


def check_told(store: StoreHandle, remote: Remote) -> None:
    """Raises Unsafe: to exchange anything with it would bring back what was forgotten."""
    if is_untold(store, remote):
        raise Unsafe(
            f"{remote.name} still has what was forgotten here",
            "Run `snapstore forget --remotes`: it replaces what is ours there, and says what it cannot.",
            remote=remote.name,
        )


def without_let_go(store: StoreHandle, remote: Remote, refs: Mapping[str, bytes]) -> dict[str, bytes]:
    """A server's refs but for what was forgotten here, and for those that are as we left them there, and that we have
    none of any more: what was pruned here is not to come back as somebody else's."""
    forgotten = rewritten_ids.read(store).commits
    here = store.shadow.refs
    pushed = exchanged(store, remote).pushed
    gone = {(there, commit) for local, (there, commit) in pushed.items() if here.value(local) is None}
    return {ref: oid for ref, oid in refs.items() if (ref, oid.hex()) not in gone and oid.hex() not in forgotten}


def shared_refs(store: StoreHandle) -> dict[str, bytes]:
    """Every branch and checkpoint here that can be shared, of whomever."""
    found = {ref: oid for place in PLACES for ref, oid in store.shadow.refs.list(f"{place}/").items()}
    return {ref: oid for ref, oid in found.items() if split(ref)}


def own_refs(store: StoreHandle) -> dict[str, bytes]:
    foreign = store.foreign().refs
    return {ref: oid for ref, oid in shared_refs(store).items() if ref not in foreign}


def haves(store: StoreHandle) -> list[bytes]:
    """Tips of ours, whole with all their history, newest use first: what a server need not send."""
    refs = store.shadow.refs
    found = [*shared_refs(store).values(), *refs.list(PREFIX).values(), *refs.list("refs/snapstore/remotes/").values()]
    own = [refs.read(ref) for ref in NOTES]
    return list(dict.fromkeys([*found, *(tip for tip in own if tip is not None)]))


def latest_moves(
    store: StoreHandle, remote: Remote, notes: Iterable[bytes | None], beside: Iterable[RefMove] = ()
) -> list[RefMove]:
    """Refs on the server's records and transcripts as they are now: they may hold some that are not ours yet, and a
    push builds on them, so no gc may take a part of them. None is needed where `beside` already holds them."""
    held = {move[2] for move in beside}
    moves: list[RefMove] = []
    for name, tip in zip(_LATEST, notes, strict=True):
        ref = f"refs/snapstore/remotes/{remote.name or 'unnamed'}/{name}"
        old = store.shadow.refs.read(ref)
        if tip is not None and tip not in held and tip != old:
            moves.append((ref, old, tip))
    return moves


def machine_moves(store: StoreHandle, refs: Mapping[str, bytes], ancestry: Ancestry) -> list[RefMove]:
    """What machines say of themselves, held here too; as everything from elsewhere, forward only."""
    moves: list[RefMove] = []
    for ref, new in sorted(refs.items()):
        if ref.startswith(PREFIX) and is_id(ref.removeprefix(PREFIX)):
            old = store.shadow.refs.read(ref)
            if new != old and (old is None or ancestry.descends(new, old)):
                moves.append((ref, old, new))
    return moves
