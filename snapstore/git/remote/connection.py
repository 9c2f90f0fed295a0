"""A connection to one remote repository, whichever program implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from snapstore.errors import Remote, Unsafe
from snapstore.git.objects import reachability
from snapstore.git.objects.store import Objects
from snapstore.git.ref_names import HEADS
from snapstore.git.refs import bad_part
from snapstore.git.remote.incoming import Incoming, Limits
from snapstore.git.remote.urls import Address

# Asks a person a question; the second argument tells whether the answer is secret. Returns None if nobody answers.
Ask = Callable[[str, bool], str | None]
# The activity, the amount done, and the total (0: unknown).
Progress = Callable[[str, int, int], None]
# Per ref, its present value and its new one. None means absent.
Moves = Mapping[str, tuple[bytes | None, bytes | None]]

MOVED = "it moved meanwhile"
NOT_THIS_ONE = "another ref of the same push cannot move"
MOST_REFS = 1_000_000
TIMEOUT = 60.0  # seconds
_DEFAULT_BRANCH = "refs/heads/main"


class ConnectionFailed(Remote):
    """The connection failed, not the request. With `again`, a retry may help."""

    def __init__(self, message: str, hint: str | None = None, *, again: bool = False, **details: object) -> None:
        super().__init__(message, hint, **details)
        self.again = again


class RedirectRefused(Unsafe):
    """git's config redirects an address to a forbidden place. Nothing was sent."""

    def __init__(self, who: str, protocol: str) -> None:
        super().__init__(
            f"git's configuration leads {who} to another address ({protocol}), which is not followed",
            "See url.*.insteadOf and url.*.pushInsteadOf there, or use the other address itself.",
        )
        self.protocol = protocol


class NotAtomic(Remote):
    """The server cannot move several refs atomically. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a connection that do not depend on the address."""

    environment: Mapping[str, str]  # the caller's
    progress: Progress | None = None
    ask: Ask | None = None  # given only if a person is at a terminal
    timeout: float = TIMEOUT
    limits: Limits | None = None


class Connection(ABC):
    """A connection to one remote. Close it, or use it in a `with` block."""

    # What the program in use cannot do, in one sentence for people. Empty for git.
    lacks = ""

    def __init__(self, address: Address, options: Options) -> None:
        self.address = address
        self._options = options
        self._head = ""  # the target of HEAD as of the last `refs`; empty if unknown

    @property
    def shown(self) -> str:
        """Return the address without secrets."""
        return self.address.shown

    @abstractmethod
    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        """Return every ref of the repository by full name. `push`: a push will follow."""

    def default_branch(self) -> str:
        """Return the branch that `git clone` checks out, as of the last `refs`.

        Few servers name a branch that does not exist yet; most call that branch main.
        """
        is_branch = self._head.startswith(HEADS) and is_ref(self._head)
        return self._head if is_branch else _DEFAULT_BRANCH

    def fetch(self, wants: Collection[bytes], haves: Iterable[bytes], into: Objects) -> Incoming:
        """Fetch the objects that the wanted tips need and the store lacks.

        `haves` are local tips whose history is complete. The received objects are checked in full, and stay invisible
        until `Incoming.accept`.
        """
        tips = [oid for oid in haves if into.contains(oid, fresh=False)]
        wanted = list(dict.fromkeys(wants))
        if all(oid in tips for oid in wanted):
            return Incoming(into, self._options.limits)
        return self._fetch(wanted, tips, into)

    def push(
        self,
        updates: Moves,
        objects: Sequence[bytes],
        source: Objects,
        *,
        atomic: bool = True,
        forced: Collection[str] = (),
        has_parts: bool = False,
    ) -> dict[str, str | None]:
        """Move refs of the remote; return for each None, or why it did not move.

        `objects` are those that the remote lacks (objects/reachability.py). A ref is only fast-forwarded, unless it is
        in `forced`. With `atomic`, all refs move or none. Raises NotAtomic if the server does not support this.
        `has_parts` tells that the server has needed objects only below refs that are not in this history.
        """
        results = {name: _unfit(name, old, new, source, name in forced) for name, (old, new) in updates.items()}
        going = {name: updates[name] for name, why in results.items() if why is None}
        if atomic and len(going) != len(updates):
            return {name: why or NOT_THIS_ONE for name, why in results.items()}
        going = {name: (old, new) for name, (old, new) in going.items() if old != new}
        if going:
            results.update(self._push(going, objects, source, atomic=atomic and len(going) > 1, has_parts=has_parts))
        return results

    def push_in_order(
        self, steps: Sequence[Moves], objects: Sequence[bytes], source: Objects, *, has_parts: bool = False
    ) -> dict[str, str | None]:
        """Push all steps atomically, or one by one if the server cannot.

        One by one, the first refusal ends the push.
        """
        left = [step for step in steps if step]
        try:
            every = {name: move for step in left for name, move in step.items()}
            return self.push(every, objects, source, has_parts=has_parts)
        except NotAtomic:
            results: dict[str, str | None] = {}
            for step in left:
                results |= self.push(step, objects, source, atomic=False, has_parts=has_parts)
                if any(results.values()):
                    break
            return results

    def close(self) -> None:
        """Forget the answers that a person typed."""
        return

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming: ...

    @abstractmethod
    def _push(
        self, going: Moves, objects: Sequence[bytes], source: Objects, *, atomic: bool, has_parts: bool
    ) -> dict[str, str | None]: ...


def is_ref(name: str) -> bool:
    """Return whether a name is a valid ref name and harmless as a path."""
    parts = name.split("/")
    return len(parts) >= 3 and parts[0] == "refs" and not any(bad_part(part) for part in parts) and len(name) < 1024


def _unfit(name: str, old: bytes | None, new: bytes | None, source: Objects, forced: bool) -> str | None:
    """Return why a ref cannot move, as far as known without the remote."""
    if not is_ref(name):
        return "not a ref name"
    if old is None or new is None or old == new or forced:
        return None
    if not source.contains(old) or not reachability.is_ancestor(source, old, new):
        return "it is not a fast-forward"
    return None
