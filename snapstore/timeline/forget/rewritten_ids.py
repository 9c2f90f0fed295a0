"""Maps commit ids from before a `forget` to their replacements.

A remote has commits under the old ids until `forget --remotes` replaces them. Bundles and clones made earlier have the
old ids forever. Whatever arrives under an old id is content that was forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.store.handle import StoreHandle
from snapstore.store.state import encode

FILE = "former.json"


class RewrittenIds:
    """Old and new commit ids, across any number of forgets.

    `commits` maps each old id to the current id. `gone` lists the ids of turns that were forgotten. `done` lists the
    remotes where the old commits have been replaced.
    """

    __slots__ = ("commits", "done", "gone")

    def __init__(
        self,
        *,
        commits: dict[str, str] | None = None,
        gone: list[str] | None = None,
        done: list[str] | None = None,
    ) -> None:
        self.commits = commits or {}
        self.gone = gone or []
        self.done = done or []

    @property
    def new(self) -> dict[bytes, bytes]:
        return {bytes.fromhex(old): bytes.fromhex(new) for old, new in self.commits.items()}


def read(store: StoreHandle) -> RewrittenIds:
    return store.documents.read(RewrittenIds, FILE) or RewrittenIds()


def updated(store: StoreHandle, new: Mapping[bytes, bytes], turn: bytes | None) -> dict[str, bytes | None]:
    """Return the document with new ids added, to be written in the same change."""
    known = read(store)
    moved = {old.hex(): now.hex() for old, now in new.items()}
    commits = {old: moved.get(now, now) for old, now in known.commits.items()}
    gone = set(known.gone)
    if turn is not None:
        gone |= {turn.hex(), *(old for old, now in known.commits.items() if now == turn.hex())}
    return {FILE: encode(RewrittenIds(commits={**moved, **commits}, gone=sorted(gone)))}


def marked_done(store: StoreHandle, remote: str) -> dict[str, bytes | None]:
    """Return the document with `remote` listed in `done`."""
    known = read(store)
    known.done = sorted({*known.done, remote})
    return {FILE: encode(known)}
