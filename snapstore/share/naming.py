"""What a ref is called on a server, and what one from a server is called here. Pure: no store, no network.

Every ref only ever advances, and its name stays the one it got first. A ref that cannot advance what has its name on
the server meets another machine's line, and goes beside it as `<branch>@<machine>`; a session that shares no root with
the session of that name goes as `<session>@<machine>`. The other way round the same: a line of another machine never
takes the place of one of ours.
"""

from __future__ import annotations

from snapstore.git.refs import bad_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
    marked = name if name.endswith(f"@{machine.name}") else f"{name}@{machine.name}"
    if marked != name:
        yield marked
    marked += f"-{machine.id}"
    number = 1
    while True:
        yield marked if number == 1 else f"{marked}-{number}"
        number += 1


# To a server.


class Server:
    """A server's shared refs, and whose each is."""

    def __init__(self, refs: Mapping[str, bytes], owners: Mapping[str, Owner]) -> None:
        self.refs = {ref: oid for ref, oid in refs.items() if split(ref)}
        self.owners = {ref: owner for ref, owner in owners.items() if split(ref)}


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
                self._remember(ref, oid, fitting[0])
        for ref, oid in sorted(own.items()):
            if ref not in found:
                found[ref] = self._name(ref, oid)
                self._taken.add(_folded(found[ref]))
        return found

    def _fits(self, name: str, oid: bytes) -> bool:
        there = self._server.refs.get(name)
        return there is None or self._history.descends(oid, there)

    def _is_behind(self, name: str, oid: bytes) -> bool:
        return self._history.descends(self._server.refs[name], oid)

    def _name(self, ref: str, oid: bytes) -> str:
        place, session, name = _parts(ref)
        session = self._session(session, self._history.root(oid))
        for variant in variants(name, self._me):
            candidate = f"{place}/{session}/{variant}"
            if _folded(candidate) not in self._taken:
                return candidate
            # A push that was cut short before it said whose its refs are: they are taken up again.
            if candidate in self._server.refs and candidate not in self._server.owners and self._fits(candidate, oid):
                return candidate
        raise AssertionError("variants never end")

    def _remember(self, ref: str, oid: bytes, name: str) -> None:
        session, there = _parts(ref)[1], _parts(name)[1]
        if self._is_ambiguous(session):
            self._sessions.setdefault((session, self._history.root(oid)), there)
        else:
            self._sessions.setdefault((session, None), there)

    def _is_ambiguous(self, session: str) -> bool:
        """Whether another session may be meant by the name: only then are roots looked for, which takes a walk."""
        return any(
            _parts(ref)[1] == session and self._server.owners.get(ref, ("", ""))[0] != self._me.id
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
        found = next(name for name in variants(session, self._me) if name.casefold() not in taken)
        roots[found] = {root}
        return found

    def _server_roots(self) -> dict[str, set[bytes | None]]:
        if self._roots is None:
            self._roots = {}
            for ref, oid in self._server.refs.items():
                root = self._history.root(oid) or (self._history.root(self._seen[ref]) if ref in self._seen else None)
                self._roots.setdefault(_parts(ref)[1], set()).add(root)
            for ref in self._server.owners:
                self._roots.setdefault(_parts(ref)[1], set())
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


# From a server.


class Received:
    """What a server's refs come to here."""

    __slots__ = ("made", "names", "owners", "rewound")

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # server ref: local ref
        self.made: dict[str, tuple[bytes | None, bytes]] = {}  # local ref: from, to
        self.owners: dict[str, Owner] = {}  # of every local ref that is another machine's
        self.rewound: list[str] = []  # server refs that went back; ours stay


def receive(
    server: Server,
    me: Machine,
    machines: Mapping[str, Machine],
    local: Mapping[str, bytes],
    foreign: Mapping[str, Owner],
    history: History,
) -> Received:
    """The local ref of each ref of another machine. `local` are all shared refs here, `foreign` those of them that are
    others', with what each is called at home. Ours are never moved, others' only forward."""
    return _Receiving(server, me, machines, local, foreign, history).run()


class _Receiving:
    def __init__(
        self,
        server: Server,
        me: Machine,
        machines: Mapping[str, Machine],
        local: Mapping[str, bytes],
        foreign: Mapping[str, Owner],
        history: History,
    ) -> None:
        self._server = server
        self._me = me
        self._machines = machines
        self._local = dict(local)
        self._history = history
        self._known = {owner: ref for ref, owner in foreign.items() if ref in local}
        self._taken = {_name_folded(ref) for ref in local}
        self._roots: dict[str, set[bytes | None]] | None = None
        self._done = Received()
        self._done.owners.update({ref: owner for ref, owner in foreign.items() if ref in local})

    def run(self) -> Received:
        owners = identities(self._server)
        for ref, oid in sorted(self._server.refs.items()):
            owner = owners[ref]
            if owner[0] == self._me.id and self._is_ours(owner[1], oid):
                continue
            if self._history.root(oid) is not None:
                self._take(ref, oid, owner)
        return self._done

    def _is_ours(self, home: str, oid: bytes) -> bool:
        """What we pushed ourselves. A home that was copied to another machine pushes under the same id."""
        mine = self._local.get(home)
        return (mine is not None and self._history.descends(mine, oid)) or self._is_held(oid)

    def _is_held(self, oid: bytes) -> bool:
        own = [tip for ref, tip in self._local.items() if ref not in self._done.owners]
        return any(self._history.descends(tip, oid) for tip in own)

    def _take(self, ref: str, oid: bytes, owner: Owner) -> None:
        done = self._done
        here = self._known.get(owner) or self._unowned(ref, owner)
        if here is not None:
            tip = self._local[here]
            if tip == oid or self._history.descends(tip, oid):
                done.names[ref] = here
                if tip != oid:
                    done.rewound.append(ref)
                return
            if self._history.descends(oid, tip):
                done.names[ref] = here
                self._move(here, oid)
                return
            done.rewound.append(ref)
            done.owners[here] = (owner[0], "")  # what it was stays under the name it has
        place, session, name = _parts(ref)
        machine = self._machines.get(owner[0]) or Machine(owner[0] or "unknown", owner[0] or "unknown")
        session = self._session(session, machine, self._history.root(oid))
        here = next(
            candidate
            for candidate in (f"{place}/{session}/{variant}" for variant in variants(name, machine))
            if _name_folded(candidate) not in self._taken
        )
        done.names[ref] = here
        done.owners[here] = owner
        self._taken.add(_name_folded(here))
        self._move(here, oid)

    def _unowned(self, ref: str, owner: Owner) -> str | None:
        """A ref that came before its machine had said that it is its own."""
        here = self._known.get(("", ref))
        if here is not None:
            self._done.owners[here] = owner
        return here

    def _move(self, here: str, oid: bytes) -> None:
        self._done.made[here] = (self._local.get(here), oid)
        self._local[here] = oid
        if self._roots is not None:
            self._roots.setdefault(_parts(here)[1], set()).add(self._history.root(oid))

    def _session(self, session: str, machine: Machine, root: bytes | None) -> str:
        roots = self._local_roots()
        same = [name for name, found in sorted(roots.items()) if root in found]
        if same:
            return session if session in same else same[0]
        taken = {name.casefold() for name in roots}
        return next(name for name in variants(session, machine) if name.casefold() not in taken)

    def _local_roots(self) -> dict[str, set[bytes | None]]:
        if self._roots is None:
            self._roots = {}
            for ref, oid in self._local.items():
                self._roots.setdefault(_parts(ref)[1], set()).add(self._history.root(oid))
        return self._roots


def identities(server: Server) -> dict[str, Owner]:
    """Whose each ref is and what it is called there. Where two claim to be the same one (a home was copied), the ref
    of the very name is it, and the others go by the names that they have on the server."""
    owners = {ref: server.owners.get(ref, ("", ref)) for ref in server.refs}
    counts: dict[Owner, int] = {}
    for owner in owners.values():
        counts[owner] = counts.get(owner, 0) + 1
    return {ref: owner if counts[owner] == 1 or owner[1] == ref else (owner[0], ref) for ref, owner in owners.items()}


def _parts(ref: str) -> tuple[str, str, str]:
    parts = split(ref)
    assert parts is not None, ref
    return parts


def _folded(ref: str) -> str:
    """On some file systems `Login` and `login` are one."""
    return ref.casefold()


def _name_folded(ref: str) -> tuple[str, str]:
    """One name is one thing in a session, whether branch, archived branch or checkpoint."""
    _, session, name = _parts(ref)
    return session.casefold(), name.casefold()
