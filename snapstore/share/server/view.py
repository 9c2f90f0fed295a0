"""Read a server before an exchange: its project, and the owners of its refs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from snapstore.errors import Remote, Unsafe
from snapstore.git.objects.ids import COMMIT
from snapstore.git.objects.notes import REF as TURNS
from snapstore.git.objects.notes import REFS as NOTES
from snapstore.git.objects.notes import TRANSCRIPTS
from snapstore.git.ref_names import MACHINES, STORES
from snapstore.share.server.machine import Claims, is_id, read_claims
from snapstore.share.server.names_here import received_names
from snapstore.share.server.names_there import Machine, Server, split
from snapstore.store.handle import StoreHandle
from snapstore.store.owners import Owners

Refs = Mapping[str, bytes]

MOST_REFS = 20_000  # more than any user has; lists and the tree show every ref that was pulled


def project_of(refs: Refs, shown: str) -> str | None:
    """Return the id of the store that a server's refs belong to; None if it is empty."""
    ids = sorted(ref.removeprefix(STORES) for ref in refs if ref.startswith(STORES))
    if len(refs) > MOST_REFS:
        raise Remote(f"{shown} has {len(refs):,} refs, more than a snapstore store has", "Use a repository of its own.")
    if len(ids) > 1:
        raise Unsafe(
            f"{shown} contains the turns of {len(ids)} projects",
            "Each project needs a repository of its own: create an empty one, and push to that.",
        )
    if ids and is_id(ids[0]):
        return ids[0]
    if any(ref.startswith("refs/") for ref in refs):
        raise Unsafe(
            f"{shown} is not a snapstore repository: it contains something else",
            "Use an empty repository for the turns: `git init --bare`, or a new one on your server.",
        )
    return None


def check_project(store: StoreHandle, refs: Refs, shown: str) -> bool:
    """Raise Unsafe for another project; return whether the server has any turns."""
    found = project_of(refs, shown)
    if found is not None and found != store.header.id:
        raise Unsafe(
            f"{shown} contains the turns of another project ({found[:8]}, this is {store.header.id[:8]})",
            f"If it is the same project, join it: `snapstore init --from {shown}`. Otherwise use another repository.",
            theirs=found,
            ours=store.header.id,
        )
    return found is not None


def check_commits(store: StoreHandle, refs: Refs, names: Iterable[str], shown: str) -> None:
    """Raise Remote if a ref that an exchange builds on, set by hand, is not a commit."""
    objects = store.shadow.objects
    for name in names:
        if name in refs and objects.header(refs[name])[0] != COMMIT:
            raise Remote(
                f"{name} on {shown} is not a commit", "Correct or delete that ref there, then try again.", ref=name
            )


def interesting(refs: Refs) -> Iterator[tuple[str, bytes]]:
    """Yield the refs that a pull fetches; a server may have other refs too."""
    for ref, oid in refs.items():
        if ref in NOTES or split(ref) or (ref.startswith(MACHINES) and is_id(ref.removeprefix(MACHINES))):
            yield ref, oid


class ServerView:
    """A server's refs, claims and owners, as far as their objects are present here."""

    def __init__(self, store: StoreHandle, refs: Refs) -> None:
        shadow = store.shadow
        self.refs = dict(refs)
        self.notes = refs.get(TURNS)
        self.transcripts = refs.get(TRANSCRIPTS)
        self.claims: dict[str, Claims] = {}
        owners: dict[str, tuple[str, str]] = {}
        retired: set[str] = set()
        for ref, oid in sorted(refs.items()):
            id = ref.removeprefix(MACHINES)
            if ref.startswith(MACHINES) and is_id(id):
                claims = read_claims(shadow, id, oid)
                if claims is not None:
                    self.claims[id] = claims
                    for name, home in claims.refs.items():
                        owners.setdefault(name, (id, home))
                    retired |= claims.retired
        self.server = Server(refs, owners, retired)

    @property
    def machines(self) -> dict[str, Machine]:
        return {id: claims.machine for id, claims in self.claims.items()}

    def seen(self, store: StoreHandle, foreign: Owners) -> dict[str, bytes]:
        """Return the local tips of server refs that may have advanced since."""
        found: dict[str, bytes] = {}
        for name, here in received_names(self.server, foreign.origins()).items():
            tip = store.shadow.refs.read(here)
            if tip is not None:
                found[name] = tip
        return found
