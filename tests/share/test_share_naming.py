"""P-05: names on a server and names at home. Any number of machines pushing and pulling in any order: every line of
everyone is kept, under a name that stays, and nobody's ref ever goes back.

The machines here are a model: commits are numbers with a parent, a server is a dictionary. What the real thing does
with a real server is in test_share.py.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from snapstore.share.server.names_here import receive, received_names
from snapstore.share.server.names_there import History, Machine, Server, publish, split, updates, variants

PARENTS: dict[bytes, bytes | None] = {}


def commit(parent: bytes | None) -> bytes:
    oid = len(PARENTS).to_bytes(20, "big")
    PARENTS[oid] = parent
    return oid


def line(oid: bytes | None) -> list[bytes]:
    found = []
    while oid is not None:
        found.append(oid)
        oid = PARENTS[oid]
    return found


class Home:
    """One machine: its own refs, others' refs, and the commits that it has."""

    def __init__(self, id: str, name: str) -> None:
        self.me = Machine(id, name)
        self.own: dict[str, bytes] = {}
        self.foreign: dict[str, tuple[str, str, str]] = {}
        self.others: dict[str, bytes] = {}
        self.has: set[bytes] = set()
        self.names: dict[tuple[str, str], str] = {}  # by whose and what on the server: the name it got here first
        self.published: dict[str, str] = {}

    @property
    def history(self) -> History:
        def root(oid: bytes) -> bytes | None:
            return line(oid)[-1] if oid in self.has else None

        def descends(new: bytes, old: bytes) -> bool:
            return new in self.has and old in line(new)

        return History(root, descends)

    @property
    def local(self) -> dict[str, bytes]:
        return {**self.own, **self.others}

    def turn(self, session: str, branch: str, after: bytes | None) -> None:
        """A turn: on a branch of our own, or on a new one of our own."""
        ref = f"refs/heads/{session}/{branch}"
        taken = {name.casefold() for name in self.local if name in self.others or name != ref}
        number = 1
        while ref.casefold() in taken or (ref in self.own and after is not None and self.own[ref] != after):
            number += 1
            ref = f"refs/heads/{session}/{branch}-{number}"
            taken = {name.casefold() for name in self.local if name in self.others or name != ref}
        self.own[ref] = commit(self.own.get(ref, after))
        self.has.add(self.own[ref])

    def push(self, server: SharedServer) -> None:
        seen = {name: self.others[here] for name, here in server.names_at(self).items() if here in self.others}
        there = Server(server.refs, server.owners, server.retired)
        names = publish(self.own, there, self.me, self.history, seen)
        moved = updates(self.own, names, there, self.history)
        for name, (old, new) in moved.items():
            assert server.refs.get(name) == old
            assert old is None or old in line(new), "a ref on the server went back"
            server.refs[name] = new
        for ref, name in names.items():
            server.owners[name] = (self.me.id, ref)
            server.retired.discard(name)
            assert self.published.setdefault(ref, name) == name, "a name on the server changed"
        assert len(set(names.values())) == len(names)
        mine = {name for name, (id, _) in server.owners.items() if id == self.me.id}
        server.retired |= mine.difference(names.values())

    def pull(self, server: SharedServer, machines: dict[str, Machine]) -> None:
        for oid in server.refs.values():
            self.has.update(line(oid))
        before = dict(self.own)
        there = Server(server.refs, server.owners, server.retired)
        got = receive(there, self.me, machines, self.local, self.foreign, self.history)
        for ref, (old, new) in got.made.items():
            assert ref not in self.own, "a line of ours was overwritten"
            assert self.others.get(ref) == old
            assert old is None or old in line(new), "a ref here went back"
            self.others[ref] = new
        for ref, tip in got.dropped.items():
            assert ref not in got.made, "another line took the name of one that was renamed"
            assert self.others.pop(ref) == tip
            assert any(tip in line(other) for other in self.others.values()), "a line was dropped"
            self.names = {owner: name for owner, name in self.names.items() if name != ref}
        for ref, (id, _, there) in got.origins.items():
            assert self.names.setdefault((id, there), ref) == ref, "a name here changed"
        self.foreign = got.origins
        assert self.own == before
        assert not got.rewound


class SharedServer:
    def __init__(self) -> None:
        self.refs: dict[str, bytes] = {}
        self.owners: dict[str, tuple[str, str]] = {}
        self.retired: set[str] = set()

    def names_at(self, home: Home) -> dict[str, str]:
        return received_names(Server(self.refs, self.owners), home.foreign)


class Sharing(RuleBasedStateMachine):
    """Machines that record, push and pull as they like; two of them even have the same name."""

    def __init__(self) -> None:
        super().__init__()
        PARENTS.clear()
        self.server = SharedServer()
        self.homes: list[Home] = []

    @initialize(number=st.integers(2, 4))
    def start(self, number: int) -> None:
        names = ["ada", "bob", "ada", "cy"]
        self.homes = [Home(f"{at:08x}", names[at]) for at in range(number)]

    @property
    def machines(self) -> dict[str, Machine]:
        return {home.me.id: home.me for home in self.homes}

    @rule(at=st.integers(0, 3), session=st.sampled_from(["shell", "Shell", "claude"]), data=st.data())
    def record(self, at: int, session: str, data: st.DataObject) -> None:
        home = self.homes[at % len(self.homes)]
        starts: list[bytes | None] = [None]
        mine = [tip for ref, tip in sorted(home.local.items()) if split(ref)[1].casefold() == session.casefold()]  # type: ignore[index]
        starts += [oid for tip in mine for oid in line(tip)]
        after = data.draw(st.sampled_from(starts)) if mine else None
        home.turn(session, "main", after)

    @rule(at=st.integers(0, 3), place=st.sampled_from(["refs/heads", "refs/snapstore/archive"]), data=st.data())
    def rename(self, at: int, place: str, data: st.DataObject) -> None:
        """A branch gets another name, or goes to the archive; a name that is free may be used again."""
        home = self.homes[at % len(self.homes)]
        if not home.own:
            return
        ref = data.draw(st.sampled_from(sorted(home.own)))
        session = ref.split("/")[-2]
        name = data.draw(st.sampled_from(["main", "login", "main-2"]))
        taken = {(one.split("/")[-2].casefold(), one.split("/")[-1].casefold()) for one in home.local}
        if (session.casefold(), name) not in taken:
            home.own[f"{place}/{session}/{name}"] = home.own.pop(ref)
            home.published.pop(ref, None)
            home.published.pop(f"{place}/{session}/{name}", None)

    @rule(at=st.integers(0, 3))
    def push(self, at: int) -> None:
        self.homes[at % len(self.homes)].push(self.server)

    @rule(at=st.integers(0, 3))
    def pull(self, at: int) -> None:
        self.homes[at % len(self.homes)].pull(self.server, self.machines)

    @precondition(lambda self: self.homes)
    @rule()
    def everybody(self) -> None:
        for home in self.homes:
            home.push(self.server)
        tips = {oid for home in self.homes for oid in home.own.values()}
        held = {oid for tip in self.server.refs.values() for oid in line(tip)}
        assert tips <= held, "a line is not on the server"
        for home in self.homes:
            home.pull(self.server, self.machines)
            here = {oid for tip in home.local.values() for oid in line(tip)}
            assert tips <= here, "a line is not everywhere"

    @invariant()
    def one_name_is_one_thing(self) -> None:
        for home in self.homes:
            names = [ref.casefold() for ref in home.local]
            assert len(names) == len(set(names))


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


def home_with(id: str, name: str, **refs: bytes) -> Home:
    home = Home(id, name)
    for ref, oid in refs.items():
        home.own[f"refs/heads/{ref.replace('__', '/')}"] = oid
        home.has.update(line(oid))
    return home


def test_the_second_line_of_a_name_goes_beside_the_first() -> None:
    start = commit(None)
    ada = home_with("aaaaaaaa", "ada", shell__main=commit(start))
    bob = home_with("bbbbbbbb", "bob", shell__main=commit(start))
    server, machines = SharedServer(), {home.me.id: home.me for home in (ada, bob)}
    ada.push(server)
    bob.pull(server, machines)
    bob.push(server)
    ada.pull(server, machines)
    assert set(server.refs) == {"refs/heads/shell/main", "refs/heads/shell/main@bob"}
    assert set(ada.local) == {"refs/heads/shell/main", "refs/heads/shell/main@bob"}
    assert set(bob.local) == {"refs/heads/shell/main", "refs/heads/shell/main@ada"}


def test_sessions_without_a_common_root_are_two_sessions() -> None:
    ada = home_with("aaaaaaaa", "ada", shell__main=commit(None))
    bob = home_with("bbbbbbbb", "bob", shell__main=commit(None))
    server, machines = SharedServer(), {home.me.id: home.me for home in (ada, bob)}
    ada.push(server)
    bob.pull(server, machines)
    bob.push(server)
    ada.pull(server, machines)
    assert set(server.refs) == {"refs/heads/shell/main", "refs/heads/shell@bob/main"}
    assert set(bob.local) == {"refs/heads/shell/main", "refs/heads/shell@ada/main"}
    assert set(ada.local) == {"refs/heads/shell/main", "refs/heads/shell@bob/main"}


def test_what_is_continued_joins_the_session_it_came_from_everywhere() -> None:
    """Bob has a `shell` of his own, so Ada's is `shell@ada` at his place; what he adds to it is in her `shell`."""
    first = commit(None)
    ada = home_with("aaaaaaaa", "ada", shell__main=first)
    bob = home_with("bbbbbbbb", "bob", shell__main=commit(None))
    cy = home_with("cccccccc", "cy")
    server, machines = SharedServer(), {home.me.id: home.me for home in (ada, bob, cy)}
    ada.push(server)
    bob.pull(server, machines)
    bob.turn("shell@ada", "main", first)
    bob.push(server)
    for home in (ada, cy):
        home.pull(server, machines)
        assert "refs/heads/shell/main-2" in home.local
        assert "refs/heads/shell@bob/main" in home.local


def test_a_copied_home_keeps_both_lines() -> None:
    """Two machines with one id (a home that was copied) advance the same branch: each goes on under a name of its own,
    and a third machine sees both."""
    start = commit(None)
    one = home_with("aaaaaaaa", "ada", shell__main=start)
    server = SharedServer()
    one.push(server)
    two = home_with("aaaaaaaa", "ada", shell__main=start)
    cy = home_with("cccccccc", "cy")
    machines = {home.me.id: home.me for home in (one, cy)}
    for home in (one, two):
        home.turn("shell", "main", start)
    one.push(server)
    two.pull(server, machines)
    two.published.clear()  # it goes on under another name from here
    two.push(server)
    for home in (one, two, cy):
        home.pull(server, machines)
        held = {oid for tip in home.local.values() for oid in line(tip)}
        assert {*one.own.values(), *two.own.values()} <= held
    before = dict(server.refs)
    for home in (one, two):
        home.turn("shell", "main", home.own["refs/heads/shell/main"])
        home.push(server)
    assert set(server.refs) == set(before)


def test_a_ref_that_was_forced_back_on_the_server_stays_here() -> None:
    start = commit(None)
    ada = home_with("aaaaaaaa", "ada", shell__main=commit(commit(start)))
    cy = home_with("cccccccc", "cy")
    server, machines = SharedServer(), {home.me.id: home.me for home in (ada, cy)}
    ada.push(server)
    cy.pull(server, machines)
    held = dict(cy.others)

    def pulled() -> Any:
        cy.has.update(oid for tip in server.refs.values() for oid in line(tip))
        there = Server(server.refs, server.owners)
        return receive(there, cy.me, machines, cy.local, cy.foreign, cy.history)

    server.refs["refs/heads/shell/main"] = start
    got = pulled()
    assert got.rewound == ["refs/heads/shell/main"] and not got.made and cy.others == held
    server.refs["refs/heads/shell/main"] = commit(start)
    got = pulled()
    assert got.rewound and list(got.made) == ["refs/heads/shell/main@ada"]
    assert got.origins["refs/heads/shell/main"] == ("aaaaaaaa", "", "")


def test_a_push_that_was_cut_short_is_taken_up_again() -> None:
    """The refs arrived, and not the word whose they are: nobody takes them for another's."""
    main = "refs/heads/shell/main"
    ada = home_with("aaaaaaaa", "ada", shell__main=commit(None))
    cy = home_with("cccccccc", "cy")
    server, machines = SharedServer(), {home.me.id: home.me for home in (ada, cy)}
    ada.push(server)
    server.owners.clear()
    cy.pull(server, machines)
    assert cy.foreign == {main: ("", main, main)}
    ada.push(server)
    assert set(server.refs) == {"refs/heads/shell/main"}
    cy.names.clear()
    cy.pull(server, machines)
    assert cy.foreign == {main: ("aaaaaaaa", main, main)}


def test_names_that_must_not_be_taken() -> None:
    refused = [
        "refs/heads/main",
        "refs/heads/a/b/c",
        "refs/heads/a/.hidden",
        "refs/heads/-a/b",
        "refs/heads/a/b\x1b[2J",
    ]
    refused += [
        "refs/heads/a/b.lock",
        "refs/snapstore/cursor/a",
        "refs/heads/../../x",
        "HEAD",
        "refs/heads/a/" + "x" * 300,
    ]
    refused += ["refs/snapstore/safety/a/1", "refs/heads/a/", "refs/heads//b", "refs/heads/a/\u202eb"]
    for ref in refused:
        assert split(ref) is None, ref
    assert split("refs/snapstore/archive/a/b") == ("refs/snapstore/archive", "a", "b")


def test_variants_mark_a_name_once() -> None:
    found = variants("main@ada", Machine("aaaaaaaa", "ada"))
    assert [next(found) for _ in range(3)] == ["main@ada", "main@ada-aaaaaaaa", "main@ada-aaaaaaaa-2"]


def test_a_branch_that_is_archived_at_home_is_archived_everywhere() -> None:
    ada = home_with("aaaaaaaa", "ada", shell__main=commit(commit(None)))
    cy = home_with("cccccccc", "cy")
    server, machines = SharedServer(), {home.me.id: home.me for home in (ada, cy)}
    ada.push(server)
    cy.pull(server, machines)
    assert set(cy.local) == {"refs/heads/shell/main"}
    ada.own["refs/snapstore/archive/shell/main"] = ada.own.pop("refs/heads/shell/main")
    ada.push(server)
    cy.pull(server, machines)
    assert set(cy.local) == {"refs/snapstore/archive/shell/main"}
    ada.own.clear()  # deleted at home: nobody else loses it
    ada.push(server)
    cy.pull(server, machines)
    assert set(cy.local) == {"refs/snapstore/archive/shell/main"}


@pytest.mark.parametrize("name", ["x" * 200, "名" * 66, "x" * 150])
def test_a_long_name_that_is_taken_is_cut_for_the_machines(name: str) -> None:
    made = list(islice(variants(name, Machine("0123456789", "a-machine")), 5))
    assert len(set(made)) == 5 and made[0] == name and made[1].endswith("@a-machine")
    assert all(split(f"refs/heads/s/{one}") for one in made)
