"""One remote repository, whichever program speaks to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from snapstore.errors import Remote, Unsafe
from snapstore.git.objects import reachability
from snapstore.git.objects.store import Objects
from snapstore.git.refs import bad_part
from snapstore.git.remote.incoming import Incoming, Limits
from snapstore.git.remote.urls import Address

# Asks a person: the question, and whether the answer is secret. None where nobody answers.
Ask = Callable[[str, bool], str | None]
# What is being done, how much of it, out of how much (0: unknown).
Progress = Callable[[str, int, int], None]
# A ref: the value it has now and the one it should get. None: absent.
Moves = Mapping[str, tuple[bytes | None, bytes | None]]

MOVED = "it moved meanwhile"
NOT_THIS_ONE = "another ref of the same push cannot move"
MOST_REFS = 1_000_000
TIMEOUT = 60.0  # seconds
HEADS = "refs/heads/"
_DEFAULT_BRANCH = "refs/heads/main"


class Broken(Remote):
    """The connection failed, not the request. With `again`, a second try may help."""

    def __init__(self, message: str, hint: str | None = None, *, again: bool = False, **details: object) -> None:
        super().__init__(message, hint, **details)
        self.again = again


class NotFollowed(Unsafe):
    """git's configuration leads an address to where it must not go. Nothing was sent."""

    def __init__(self, who: str, protocol: str) -> None:
        super().__init__(
            f"git's configuration leads {who} to another address ({protocol}), which is not followed",
            "See url.*.insteadOf and url.*.pushInsteadOf there, or use the other address itself.",
        )
        self.protocol = protocol


class NotAtomic(Remote):
    """The server cannot move several refs at once. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a remote is spoken to, whatever its address."""

    environment: Mapping[str, str]  # the caller's
    progress: Progress | None = None
    ask: Ask | None = None  # given only where a person sits at a terminal
    timeout: float = TIMEOUT
    limits: Limits | None = None


class Connection(ABC):
    """One remote. Close it, or use it in a `with` block."""

    # What the program in use cannot do, in one sentence for people; empty where it is git.
    lacks = ""

    def __init__(self, address: Address, options: Options) -> None:
        self.address = address
        self._options = options
        self._head = ""  # what HEAD stood for when refs were last asked for; empty where nobody said

    @property
    def shown(self) -> str:
        """The address without anything secret."""
        return self.address.shown

    @abstractmethod
    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        """Return every ref of the repository by its full name. `push`: a push is to follow."""

    def default_branch(self) -> str:
        """Return the branch that `git clone` checks out, as far as the last `refs` told.

        Few servers name a branch that does not exist yet; most call it main.
        """
        is_branch = self._head.startswith(HEADS) and is_ref(self._head)
        return self._head if is_branch else _DEFAULT_BRANCH

    def fetch(self, wants: Collection[bytes], haves: Iterable[bytes], into: Objects) -> Incoming:
        """Fetch what the wanted tips need and the store lacks.

        `haves` are tips of ours, whole with all their history. What came is checked in full, and invisible until
        `Incoming.accept`.
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
        """Move refs there from the value seen to a new one; give for each None, or why it stayed.

        `objects` are those that the other side lacks (objects/reachability.py). A ref only advances, unless it is in
        `forced`. With `atomic` all move or none; raises NotAtomic where the server cannot.
        `has_parts`: files that history needs are below refs of the server that history does not lead to.
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
        """Push all steps at once; where the server cannot, one after the other until one is refused."""
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
        """Forget what a person has typed."""
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
    """Whether git would take a name for a ref's, and it can do no harm as a path."""
    parts = name.split("/")
    return len(parts) >= 3 and parts[0] == "refs" and not any(bad_part(part) for part in parts) and len(name) < 1024


def _unfit(name: str, old: bytes | None, new: bytes | None, source: Objects, forced: bool) -> str | None:
    """Say why a ref cannot move, as far as that is known without asking the other side."""
    if not is_ref(name):
        return "not a ref name"
    if old is None or new is None or old == new or forced:
        return None
    if not source.contains(old) or not reachability.is_ancestor(source, old, new):
        return "it would not simply advance"
    return None
