"""Advance the server's default branch, which `git clone` of a shared repository checks out.

A push advances the default branch to the tip of the active session's line, but only if that tip descends from it. A
branch that a person pushed to, or that another machine's line advanced, stays. The default branch does not belong to a
session, so no pull brings it in. Every machine claims the branches it advanced, so that `forget --remotes` on any
machine replaces a branch that leads to something forgotten, whoever pushed it last (test_share_clone.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from snapstore.errors import SnapstoreError
from snapstore.git.ref_names import HEADS, MACHINES
from snapstore.git.remote.connection import is_ref
from snapstore.git.repository import Shadow
from snapstore.share.server.ancestry import Ancestry
from snapstore.share.server.machine import read_claims
from snapstore.share.server.names_there import split

Updates = dict[str, tuple[bytes | None, bytes | None]]

_AGAIN = 24 * 3600  # seconds until a server that refused to move the branch is asked again


def is_default_branch(ref: str) -> bool:
    """Return whether a server ref can be a default branch and is not a session's line."""
    return ref.startswith(HEADS) and is_ref(ref) and split(ref) is None


def is_asked(refused_at: int | None, now: int) -> bool:
    """Return whether a push tries to move the branch, given the time of the last refusal.

    A refusal makes it necessary to push once more.
    """
    return refused_at is None or not 0 <= now - refused_at < _AGAIN


def advance(
    branch: str, tip: bytes | None, refs: Mapping[str, bytes], names: Iterable[str], ancestry: Ancestry
) -> Updates:
    """Return the move of the default branch to the active session's tip, if allowed.

    `names` has our refs' names on the server. They may block the branch, since no ref can be a folder of another ref.
    """
    there = refs.get(branch)
    if tip is None or there == tip or not is_default_branch(branch) or _is_blocked(branch, (*refs, *names)):
        return {}
    return {branch: (there, tip)} if there is None or ancestry.descends(tip, there) else {}


def _is_blocked(branch: str, refs: Iterable[str]) -> bool:
    folded = f"{branch.casefold()}/"
    return any((other := f"{ref.casefold()}/") != folded and _overlap(other, folded) for ref in refs)


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def candidates(shadow: Shadow, default: str, refs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the server branches that a machine may have advanced.

    These are the server's default branch and every claimed branch.
    """
    found = {default}
    for ref, oid in (*shadow.refs.list(MACHINES).items(), *refs.items()):
        if ref.startswith(MACHINES):
            claims = read_claims(shadow, ref.removeprefix(MACHINES), oid)
            found |= claims.default_branches if claims is not None else set()
    return {ref: refs[ref] for ref in sorted(found) if ref in refs and is_default_branch(ref)}


class Trail:
    """The history of a branch back to forgotten commits, as far as known here."""

    __slots__ = ("by_hand", "forgotten", "whole")

    def __init__(self, shadow: Shadow, tip: bytes, forgotten: Collection[bytes]) -> None:
        self.forgotten: bytes | None = None  # the first one found
        self.by_hand = False  # whether a commit on the way was not made by snapstore
        self.whole = True
        seen, waiting = {tip}, [tip]
        for oid in waiting:
            if oid in forgotten:
                self.forgotten = self.forgotten or oid
                continue
            try:
                commit = shadow.commit(oid)
            except SnapstoreError:
                self.whole = False
                continue
            self.by_hand = self.by_hand or "Kind" not in commit.trailers
            fresh = [parent for parent in commit.parents if parent not in seen]
            seen.update(fresh)
            waiting += fresh
