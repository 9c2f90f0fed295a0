"""What a ref is called on a server, and what one from a server is called here. Pure: no store, no network.

Every ref only ever advances, and its name stays the one it got first. A ref that cannot advance what has its name on
the server meets another machine's line, and goes beside it as `<branch>@<machine>`; a session that shares no root with
the session of that name goes as `<session>@<machine>`. The other way round the same: a line of another machine never
takes the place of one of ours.

A branch that is renamed or archived at home goes under its new name too, and the old one is said to be retired: others
drop it once they have the new one, which holds all that it held.
"""

from __future__ import annotations

from snapstore.git.refs import bad_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    Owner = tuple[str, str]  # a machine's id, and what the ref is called there

HEADS, TAGS, ARCHIVE = "refs/heads", "refs/tags", "refs/snapstore/archive"
PLACES = (HEADS, TAGS, ARCHIVE)
LONGEST_PART = 200


class Machine:
    """One home of one person."""

    __slots__ = ("email", "id", "name", "person")

    def __init__(self, id: str, name: str, person: str = "", email: str = "") -> None:
        self.id = id
        self.name = name
        self.person = person
        self.email = email


class History:
    """What naming must know of commits. None and False where they are not here."""

    __slots__ = ("descends", "root")

    def __init__(self, root: Callable[[bytes], bytes | None], descends: Callable[[bytes, bytes], bool]) -> None:
        self.root = root  # the first commit of a line
        self.descends = descends  # whether the first is the second, or comes after it


def split(ref: str) -> tuple[str, str, str] | None:
    """Place, session and name of a ref that is shared; None for every other, and for a name that must not be taken."""
    for place in PLACES:
        if ref.startswith(f"{place}/"):
            parts = ref[len(place) + 1 :].split("/")
            if len(parts) == 2 and all(_good(part) for part in parts):
                return place, parts[0], parts[1]
    return None


def _good(part: str) -> bool:
    return not bad_part(part) and part.isprintable() and len(part.encode("utf-8", "surrogateescape")) <= LONGEST_PART


def variants(name: str, machine: Machine) -> Iterator[str]:
    """Names to try one after the other: plain, with the machine's name, with its id."""
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
    """A name with a mark behind it, and no longer than names may be."""
    room = LONGEST_PART - len(mark.encode())
    return name.encode("utf-8", "surrogateescape")[:room].decode("utf-8", "ignore").rstrip(".") + mark


# To a server.


class Server:
    """A server's shared refs, whose each is, and which have another name at home by now, or none."""

    def __init__(
        self, refs: Mapping[str, bytes], owners: Mapping[str, Owner], retired: Collection[str] = frozenset()
    ) -> None:
        self.refs = {ref: oid for ref, oid in refs.items() if split(ref)}
        # What else lies where ours would: a ref cannot be above or below another.
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
    """The name on the server of each of our refs: for good, once the server has it. `seen` are tips that are here of
    server refs that may have moved on since."""
    return _Publishing(server, me, history, seen).run(own)


class _Publishing:
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
            # A push that was cut short before it said whose its refs are: they are taken up again.
            if candidate in self._server.refs and candidate not in self._server.owners and self._fits(candidate, oid):
                return candidate
        raise AssertionError("variants never end")

    def _is_blocked(self, ref: str) -> bool:
        """By refs below it."""
        return any(other.startswith(f"{ref}/") for other in self._server.others)

    def _remember(self, ref: str, oid: bytes, name: str) -> None:
        session, there = parts_of(ref)[1], parts_of(name)[1]
        if self._is_ambiguous(session):
            self._sessions.setdefault((session, self._history.root(oid)), there)
        else:
            self._sessions.setdefault((session, None), there)

    def _is_ambiguous(self, session: str) -> bool:
        """Whether another session may be meant by the name: only then are roots looked for, which takes a walk."""
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
        # A ref that is called as the session leaves no room below it.
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
    """What to move on the server: made or advanced, never anything else."""
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
    """On some file systems `Login` and `login` are one."""
    return ref.casefold()


def _below(ref: str) -> str:
    """A ref's name without its place."""
    return next(ref[len(place) + 1 :] for place in PLACES if ref.startswith(f"{place}/"))


def name_folded(ref: str) -> tuple[str, str]:
    """One name is one thing in a session, whether branch, archived branch or checkpoint."""
    _, session, name = parts_of(ref)
    return session.casefold(), name.casefold()
