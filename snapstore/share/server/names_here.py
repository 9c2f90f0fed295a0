"""Choose local names for refs from a server, without a store or a network.

A line of another machine has one local name that never changes. The line is recognized by its name on the server. If
the line comes from a second server or a bundle, it is recognized by its name on its own machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from snapstore.share.server.names_there import History, Machine, Server, name_folded, parts_of, variants
from snapstore.store.state import reads_as_address

# A machine's id, the ref's name on that machine, and the ref's name on the server it first came from.
Origin = tuple[str, str, str]


class Received:
    """What to do locally with a server's refs."""

    __slots__ = ("dropped", "made", "names", "origins", "rewound")

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # server ref: local ref
        self.made: dict[str, tuple[bytes | None, bytes]] = {}  # local ref: from, to
        self.dropped: dict[str, bytes] = {}  # local refs of other machines that another ref fully contains
        self.origins: dict[str, Origin] = {}  # of every local ref that belongs to another machine
        self.rewound: list[str] = []  # server refs that moved backwards; the local refs stay


def receive(
    server: Server,
    me: Machine,
    machines: Mapping[str, Machine],
    local: Mapping[str, bytes],
    foreign: Mapping[str, Origin],
    history: History,
) -> Received:
    """Return the local ref of each ref of another machine, and how it moves.

    `local` has all shared refs here, `foreign` those of other machines. Our own refs never move. Refs of other machines
    only advance.
    """
    return _Receiving(server, me, machines, local, foreign, history).run()


def received_names(server: Server, foreign: Mapping[str, Origin]) -> dict[str, str]:
    """Return the local ref of each server ref that was received before, by name."""
    there = {(machine, name): ref for ref, (machine, _, name) in foreign.items()}
    homes = {(machine, home): ref for ref, (machine, home, _) in foreign.items()}
    found: dict[str, str] = {}
    for name, (machine, home) in server.owners.items():
        here = there.get((machine, name)) or homes.get((machine, home))
        if here is not None:
            found[name] = here
    return found


def recover_origins(
    server: Server, me: Machine, local: Mapping[str, bytes], own: Collection[str], history: History
) -> dict[str, Origin]:
    """Find local refs of other machines, for a store that lost its record of them.

    Such a ref has the same name on the server and is claimed by another machine there, and the server's ref contains
    it. `own` has the refs that we have claimed ourselves.
    """
    theirs = [ref for ref, (machine, _) in server.owners.items() if machine != me.id and ref in server.refs]
    found: dict[str, Origin] = {}
    for ref, tip in local.items():
        for there in () if ref in own else theirs:
            if _is_named_after(ref, there) and history.descends(server.refs[there], tip):
                found[ref] = (*server.owners[there], there)
                break
    return found


def _is_named_after(ref: str, there: str) -> bool:
    """Return whether a local name may come from a server ref, with or without `@…`."""
    (place, *here), (other, *names) = parts_of(ref), parts_of(there)
    return place == other and all(
        one == name or one.startswith(f"{name}@") for one, name in zip(here, names, strict=True)
    )


class _Receiving:
    """Chooses a local name and a move for each ref of a server."""

    def __init__(
        self,
        server: Server,
        me: Machine,
        machines: Mapping[str, Machine],
        local: Mapping[str, bytes],
        foreign: Mapping[str, Origin],
        history: History,
    ) -> None:
        self._server = server
        self._me = me
        self._machines = machines
        self._local = dict(local)
        self._history = history
        self._taken = {name_folded(ref) for ref in local}
        self._sessions: set[str] | None = None  # their names, case-folded
        self._by_root: dict[bytes | None, set[str]] = {}  # the sessions with branches that start at this root commit
        self._candidates: dict[tuple[str, ...], Iterator[str]] = {}
        self._kept: dict[str, list[bytes]] = {}  # per machine: retired refs that no other ref contains
        self._done = Received()
        self._by_name: dict[str, dict[str, None]] = {}  # local refs of other machines, by name on the server
        self._by_home: dict[tuple[str, str], dict[str, None]] = {}  # the same, by machine and name on that machine
        for ref, origin in foreign.items():
            if ref in local:
                self._set_origin(ref, origin)
        self._live: dict[str, list[bytes]] = {}  # per machine: tips of refs that are not retired
        for ref, oid in server.refs.items():
            if ref not in server.retired:
                self._live.setdefault(self._owner(ref)[0], []).append(oid)

    def run(self) -> Received:
        renamed = [ref for ref in sorted(self._server.retired) if self._drop(ref)]
        for ref, oid in sorted(self._server.refs.items()):
            machine, home = self._owner(ref)
            if ref in renamed or (machine == self._me.id and self._is_ours(home, oid)):
                continue
            if ref not in self._server.owners and self._is_held(ref, oid):
                continue  # the server has lost the claim, and a local ref of that name contains the line
            if self._history.descends(oid, oid):  # the object is a commit and is present here
                self._receive_ref(ref, oid)
        return self._done

    def _set_origin(self, here: str, origin: Origin) -> None:
        self._unset_origin(here)
        self._done.origins[here] = origin
        self._by_name.setdefault(origin[2], {})[here] = None
        self._by_home.setdefault(origin[:2], {})[here] = None

    def _unset_origin(self, here: str) -> None:
        origin = self._done.origins.pop(here, None)
        if origin is not None:
            del self._by_name[origin[2]][here]
            del self._by_home[origin[:2]][here]

    def _owner(self, ref: str) -> tuple[str, str]:
        return self._server.owners.get(ref, ("", ref))

    def _drop(self, ref: str) -> bool:
        """Return whether other refs contain a retired ref; if so, drop the local ref.

        Only refs of the same machine count.
        """
        history, done = self._history, self._done
        machine, oid = self._owner(ref)[0], self._server.refs[ref]
        here = self._match(ref, oid)
        holders = list(self._live.get(machine, []))
        others = [name for name, origin in done.origins.items() if origin[0] == machine and name != here]
        holders += [self._local[name] for name in others] + self._kept.get(machine, [])
        if oid not in holders and not any(history.descends(holder, oid) for holder in holders):
            self._kept.setdefault(machine, []).append(oid)
            return False
        if here is not None and any(history.descends(holder, self._local[here]) for holder in holders):
            done.dropped[here] = self._local.pop(here)
            self._unset_origin(here)
            self._taken.discard(name_folded(here))
        return True

    def _is_ours(self, home: str, oid: bytes) -> bool:
        """Return whether we pushed this ourselves.

        A home folder that was copied to another machine pushes under the same id.
        """
        mine = self._local.get(home)
        if mine is not None and home not in self._done.origins and self._history.descends(mine, oid):
            return True
        own = [tip for ref, tip in self._local.items() if ref not in self._done.origins]
        return any(self._history.descends(tip, oid) for tip in own)

    def _is_held(self, ref: str, oid: bytes) -> bool:
        """Return whether a local ref of the same name contains `oid`.

        A name without `@machine` counts as the same.
        """
        place, session, name = parts_of(ref)
        sessions, names = {session, session.partition("@")[0]}, {name, name.partition("@")[0]}
        tips = [self._local.get(f"{place}/{one}/{other}") for one in sessions for other in names]
        return any(tip is not None and self._history.descends(tip, oid) for tip in tips)

    def _match(self, ref: str, oid: bytes) -> str | None:
        """Return the local ref of a server ref that was received before."""
        machine, home = self._owner(ref)
        for here in self._by_name.get(ref, ()):
            if not machine or self._done.origins[here][0] in (machine, ""):
                return here
        for here in self._by_home.get((machine, home), ()):
            elsewhere = self._done.origins[here][2] not in self._server.refs
            if elsewhere and self._is_related(self._local[here], oid):
                return here
        return None

    def _is_related(self, one: bytes, other: bytes) -> bool:
        return self._history.descends(one, other) or self._history.descends(other, one)

    def _receive_ref(self, ref: str, oid: bytes) -> None:
        done = self._done
        machine, home = self._owner(ref)
        here = self._match(ref, oid)
        if here is not None:
            tip, known = self._local[here], done.origins[here]
            owner = (machine, home) if machine else known[:2]  # an earlier claim stays valid
            if self._is_related(tip, oid):
                done.names[ref] = here
                self._set_origin(here, (*owner, known[2]))  # the machine may have claimed the ref since
                if self._history.descends(oid, tip) and oid != tip:
                    self._move(here, oid)
                elif oid != tip:
                    done.rewound.append(ref)
                return
            done.rewound.append(ref)
            self._set_origin(here, (owner[0], "", ""))  # the previous line keeps its local name
        here = self._new_name(ref, oid, machine)
        done.names[ref] = here
        self._set_origin(here, (machine, home, ref))
        self._taken.add(name_folded(here))
        self._move(here, oid)

    def _new_name(self, ref: str, oid: bytes, id: str) -> str:
        place, session, name = parts_of(ref)
        machine = self._machines.get(id) or Machine(id or "unknown", id or "unknown")
        session = self._session(session, machine, self._history.root(oid))
        key = (place, session, name, machine.id)
        if key not in self._candidates:
            # A server may have a branch named `5` or like a commit's hash, which would read as an address here.
            misleads = reads_as_address(name)
            fitting = (variant for variant in variants(name, machine) if variant != name or not misleads)
            self._candidates[key] = (f"{place}/{session}/{variant}" for variant in fitting)
        candidates = self._candidates[key]  # continues where it stopped: a taken name stays taken
        return next(one for one in candidates if name_folded(one) not in self._taken and one not in self._done.dropped)

    def _move(self, here: str, oid: bytes) -> None:
        self._done.made[here] = (self._local.get(here), oid)
        self._local[here] = oid
        if self._sessions is not None:
            self._note_session(here, oid)

    def _session(self, session: str, machine: Machine, root: bytes | None) -> str:
        if self._sessions is None:
            self._sessions = set()
            for ref, oid in self._local.items():
                self._note_session(ref, oid)
        same = self._by_root.get(root)
        if same:
            return session if session in same else min(same)
        taken = self._sessions
        return next(name for name in variants(session, machine) if name.casefold() not in taken)

    def _note_session(self, ref: str, oid: bytes) -> None:
        assert self._sessions is not None
        session = parts_of(ref)[1]
        self._sessions.add(session.casefold())
        self._by_root.setdefault(self._history.root(oid), set()).add(session)
