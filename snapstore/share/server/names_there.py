"""Choose names on a server for our refs, without a store or a network.

`names_here` is the reverse direction.

A ref only advances and keeps the first name it got. If our ref does not descend from the server's ref of its name, that
ref is another machine's line, and ours is pushed as `<branch>@<machine>`. If our session shares no root with the
server's session of its name, ours is pushed as `<session>@<machine>`. The reverse holds too: a line of another machine
never replaces one of ours.

A branch that is renamed or archived locally is also pushed under its new name, and its old name is marked as retired.
Other machines drop the old name once they have the new one, which contains everything the old one did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from snapstore.git.ref_names import ARCHIVE, HEADS, TAGS
from snapstore.git.refs import bad_part

Owner = tuple[str, str]  # a machine's id, and the ref's name on that machine

PLACES = tuple(place.removesuffix("/") for place in (HEADS, TAGS, ARCHIVE))
LONGEST_PART = 200


class Machine:
    """One home folder of one person."""

    __slots__ = ("email", "id", "name", "person")

    def __init__(self, id: str, name: str, person: str = "", email: str = "") -> None:
        self.id = id
        self.name = name
        self.person = person
        self.email = email


class History:
    """Answers about commits that naming needs; None and False for missing commits."""

    __slots__ = ("descends", "root")

    def __init__(self, root: Callable[[bytes], bytes | None], descends: Callable[[bytes, bytes], bool]) -> None:
        self.root = root  # returns the first commit of a line
        self.descends = descends  # returns whether the first commit is the second or a descendant of it


def split(ref: str) -> tuple[str, str, str] | None:
    """Return place, session and name of a shared ref; None for other or unsafe refs."""
    for place in PLACES:
        if ref.startswith(f"{place}/"):
            parts = ref[len(place) + 1 :].split("/")
            if len(parts) == 2 and all(_good(part) for part in parts):
                return place, parts[0], parts[1]
    return None


def _good(part: str) -> bool:
    return not bad_part(part) and part.isprintable() and len(part.encode("utf-8", "surrogateescape")) <= LONGEST_PART


def variants(name: str, machine: Machine) -> Iterator[str]:
    """Yield names to try in order: plain, with the machine's name, with its id."""
    yield name
    mark = "" if name.endswith(f"@{machine.name}") else f"@{machine.name}"
    if mark:
        yield _marked(name, mark)
    mark += f"-{machine.id}"
    yield _marked(name, mark)
    number = 2
    while True:
        yield _marked(name, f"{mark}-{number}")
        number += 1


def _marked(name: str, mark: str) -> str:
    """Return a name with a mark appended, shortened to the longest allowed name."""
    room = LONGEST_PART - len(mark.encode())
    return name.encode("utf-8", "surrogateescape")[:room].decode("utf-8", "ignore").rstrip(".") + mark


# Names on a server.


class Server:
    """A server's shared refs, the owner of each, and which are retired.

    The machine of a retired ref has renamed or removed it.
    """

    def __init__(
        self, refs: Mapping[str, bytes], owners: Mapping[str, Owner], retired: Collection[str] = frozenset()
    ) -> None:
        self.refs = {ref: oid for ref, oid in refs.items() if split(ref)}
        # Other refs in the same places: a ref cannot be a folder of another ref.
        self.others = {ref for ref in refs if ref not in self.refs and ref.startswith(tuple(f"{p}/" for p in PLACES))}
        self.owners = {ref: owner for ref, owner in owners.items() if split(ref)}
        self.retired = {ref for ref in retired if ref in self.refs and ref in self.owners}


def publish(
    own: Mapping[str, bytes],
    server: Server,
    me: Machine,
    history: History,
    seen: Mapping[str, bytes],
) -> dict[str, str]:
    """Return the server name of each of our refs; the first name is final.

    `seen` has local tips of server refs that may have advanced since.
    """
    return _Publishing(server, me, history, seen).run(own)


class _Publishing:
    """Chooses a name on the server for each of our refs."""

    def __init__(self, server: Server, me: Machine, history: History, seen: Mapping[str, bytes]) -> None:
        self._server = server
        self._me = me
        self._history = history
        self._seen = seen
        self._taken = {_folded(ref) for ref in (*server.refs, *server.owners)}
        self._taken |= {_folded(ref) for ref in server.others}
        self._sessions: dict[tuple[str, bytes | None], str] = {}
        self._roots: dict[str, set[bytes | None]] | None = None

    def run(self, own: Mapping[str, bytes]) -> dict[str, str]:
        found: dict[str, str] = {}
        claimed: dict[str, list[str]] = {}
        for ref, (machine, home) in sorted(self._server.owners.items()):
            if machine == self._me.id:
                claimed.setdefault(home, []).append(ref)
        for ref, oid in sorted(own.items()):
            fitting = [name for name in claimed.get(ref, ()) if self._fits(name, oid) or self._is_behind(name, oid)]
            if fitting:
                found[ref] = fitting[0]
        unnamed = [(ref, oid) for ref, oid in sorted(own.items()) if ref not in found]
        if unnamed:
            for ref, name in found.items():
                self._remember(ref, own[ref], name)
        for ref, oid in unnamed:
            found[ref] = self._name(ref, oid)
            self._taken.add(_folded(found[ref]))
        return found

    def _fits(self, name: str, oid: bytes) -> bool:
        there = self._server.refs.get(name)
        return there is None or self._history.descends(oid, there)

    def _is_behind(self, name: str, oid: bytes) -> bool:
        return self._history.descends(self._server.refs[name], oid)

    def _name(self, ref: str, oid: bytes) -> str:
        place, session, name = parts_of(ref)
        session = self._session(session, self._history.root(oid))
        for variant in variants(name, self._me):
            candidate = f"{place}/{session}/{variant}"
            if _folded(candidate) not in self._taken and not self._is_blocked(candidate):
                return candidate
            # A push was interrupted before it claimed this ref: use the ref again.
            if candidate in self._server.refs and candidate not in self._server.owners and self._fits(candidate, oid):
                return candidate
        raise AssertionError("variants never end")

    def _is_blocked(self, ref: str) -> bool:
        """Return whether refs below this name block it."""
        return any(other.startswith(f"{ref}/") for other in self._server.others)

    def _remember(self, ref: str, oid: bytes, name: str) -> None:
        session, there = parts_of(ref)[1], parts_of(name)[1]
        if self._is_ambiguous(session):
            self._sessions.setdefault((session, self._history.root(oid)), there)
        else:
            self._sessions.setdefault((session, None), there)

    def _is_ambiguous(self, session: str) -> bool:
        """Return whether another machine has a session of this name on the server.

        Only then are root commits compared, because finding them takes a walk.
        """
        return any(
            parts_of(ref)[1] == session and self._server.owners.get(ref, ("", ""))[0] != self._me.id
            for ref in self._server.refs
        )

    def _session(self, session: str, root: bytes | None) -> str:
        known = self._sessions.get((session, root)) or self._sessions.get((session, None))
        if known is None:
            known = self._sessions[session, root] = self._new_session(session, root)
        return known

    def _new_session(self, session: str, root: bytes | None) -> str:
        roots = self._server_roots()
        same = [name for name, found in sorted(roots.items()) if root in found]
        if root is not None and same:
            return session if session in same else same[0]
        taken = {name.casefold() for name in roots}
        # A ref with the name of the session blocks all refs below it.
        taken |= {name.casefold() for ref in self._server.others for name in (_below(ref),) if "/" not in name}
        found = next(name for name in variants(session, self._me) if name.casefold() not in taken)
        roots[found] = {root}
        return found

    def _server_roots(self) -> dict[str, set[bytes | None]]:
        if self._roots is None:
            self._roots = {}
            for ref, oid in self._server.refs.items():
                root = self._history.root(oid) or (self._history.root(self._seen[ref]) if ref in self._seen else None)
                self._roots.setdefault(parts_of(ref)[1], set()).add(root)
            for ref in self._server.owners:
                self._roots.setdefault(parts_of(ref)[1], set())
        return self._roots


def updates(
    own: Mapping[str, bytes], names: Mapping[str, str], server: Server, history: History
) -> dict[str, tuple[bytes | None, bytes]]:
    """Return the server refs to create or advance; no other change is ever made."""
    found: dict[str, tuple[bytes | None, bytes]] = {}
    for ref, name in names.items():
        there = server.refs.get(name)
        if there is None or (there != own[ref] and history.descends(own[ref], there)):
            found[name] = (there, own[ref])
    return found


def parts_of(ref: str) -> tuple[str, str, str]:
    parts = split(ref)
    assert parts is not None, ref
    return parts


def _folded(ref: str) -> str:
    """Fold case, because `Login` and `login` are the same file on some file systems."""
    return ref.casefold()


def _below(ref: str) -> str:
    """Return a ref's name without its place."""
    return next(ref[len(place) + 1 :] for place in PLACES if ref.startswith(f"{place}/"))


def name_folded(ref: str) -> tuple[str, str]:
    """Return the case-folded session and name, which identify one thing.

    Within a session a branch, an archived branch and a checkpoint cannot share a name.
    """
    _, session, name = parts_of(ref)
    return session.casefold(), name.casefold()
