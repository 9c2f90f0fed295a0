"""Send one push, atomically or in an order in which a kill does no harm."""

from __future__ import annotations

import os
import time

from snapstore.git.objects.store import Objects
from snapstore.git.ref_names import STORES
from snapstore.git.remote.connection import MOVED, NOT_THIS_ONE, Connection
from snapstore.share.remotes import Remote

Updates = dict[str, tuple[bytes | None, bytes | None]]

ATTEMPTS = 10
_PAUSE = 0.05  # seconds, growing, with jitter


class PushedRef:
    """One ref on the server: local name (or None), name there, old and new value."""

    __slots__ = ("new", "old", "ref", "there")

    def __init__(self, ref: str | None, there: str, old: bytes | None, new: bytes | None) -> None:
        self.ref = ref
        self.there = there
        self.old = old
        self.new = new


class Pushed:
    """The result of a push."""

    __slots__ = ("attempts", "objects", "protected", "refs", "remarks", "remote", "turns", "updates")

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.attempts = 0
        self.objects = 0
        self.turns = 0
        self.updates: list[PushedRef] = []
        self.protected = ""  # the server's default branch, where the server refused to move it
        self.remarks: list[str] = []  # messages for the user
        self.refs: dict[str, str] = {}  # our ref: its name on the server


class Batch:
    """The ref updates of one push, and the objects to send.

    `metadata` updates the store's id, records and claims, `default_branch` the branch that `git clone` checks out.
    """

    __slots__ = ("branches", "default_branch", "has_parts", "metadata", "objects")

    def __init__(
        self, branches: Updates, metadata: Updates, default_branch: Updates, objects: list[bytes], *, has_parts: bool
    ) -> None:
        self.branches = branches
        self.metadata = metadata
        self.default_branch = default_branch
        self.objects = objects
        self.has_parts = has_parts


def send(connection: Connection, source: Objects, batch: Batch, pushed: Pushed) -> dict[str, str]:
    """Send a batch; return the refs that the server did not accept, and why.

    The project's id goes first, because without it the next push would refuse the server as something else. The claims
    go after the refs. The default branch goes last, because everything else is pushed even if the server refuses to
    move it.
    """
    first: Updates = {ref: move for ref, move in batch.metadata.items() if ref.startswith(STORES)}
    rest = {ref: move for ref, move in batch.metadata.items() if ref not in first}
    steps = [first | batch.branches, rest]

    def sent(steps: list[Updates]) -> dict[str, str]:
        results = connection.push_in_order(steps, batch.objects, source, has_parts=batch.has_parts)
        return {ref: why for ref, why in results.items() if why is not None}

    refused = sent([*steps, batch.default_branch])
    branch = next((ref for ref in batch.default_branch if ref in refused), None)
    if branch is None:
        return refused
    why = refused.pop(branch)
    if why in (MOVED, NOT_THIS_ONE):
        return refused  # if nothing else was refused, the next push moves the branch
    refused = sent(steps) if refused else {}
    if not refused:
        pushed.protected = branch
        refusal = f"{connection.shown} refused to move {branch} ({why})"
        pushed.remarks.append(f"{refusal}: a plain `git clone` does not check out these turns.")
    return refused


def wait(attempt: int) -> None:
    """Sleep for a time that grows with the attempts, with jitter."""
    time.sleep(_PAUSE * min(attempt, ATTEMPTS) * (0.5 + os.urandom(1)[0] / 255))
