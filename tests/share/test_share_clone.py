"""M-15: `git clone` of a shared repository checks something out. Nothing of a person's is overwritten, no machine of
ours takes the branch for a line, and what was forgotten does not stay readable by way of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import remotes
from forgetting import SECRET, holds
from helpers import all_refs, git, git_in, write
from machines import Machine, bare, sound
from test_forget_remotes import allow, reachable

from snapstore.git.ref_names import MACHINES
from snapstore.git.remote.open import open_remote


def cloned(hub: str, place: Path) -> Path:
    git_in(place.parent, "clone", "-q", hub, str(place))
    return place


def default(hub: str) -> str:
    """The full name of the hub's default branch."""
    return git(hub, "symbolic-ref", "HEAD").decode().strip()


def stands(hub: str) -> str | None:
    """Where the hub's default branch is."""
    return all_refs(hub).get(default(hub))


def by_hand(hub: str, place: Path) -> None:
    """A person commits on top of what a clone checks out, and pushes."""
    cloned(hub, place)
    (place / "README").write_text("mine\n")
    git_in(place, "add", "README")
    git_in(place, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "Mine")
    git_in(place, "push", "-q")


def refuse(hub: str, ref: str) -> None:
    """A server's rule that nobody moves a branch."""
    body = f'#!/bin/sh\nif [ "$1" = {ref} ]; then echo protected >&2; exit 1; fi\n'
    write(Path(hub) / "hooks" / "update", body, executable=True)


def oops(machine: Machine) -> None:
    machine.turn("Add violets", poem="violets\n")
    machine.turn("Oops", oops=SECRET, poem="more\n")
    machine.turn("On", poem="and more\n")
    allow(machine)
    machine.push()


# The branch.


@pytest.mark.parametrize("name", ["main", "trunk"])
def test_a_clone_by_git_checks_out_the_files_of_the_last_push(tmp_path: Path, hub: str, name: str) -> None:
    git(hub, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("Add violets", poem="violets\n")
    pushed = ada.push()
    assert [update.there for update in pushed.updates] == ["refs/heads/shell/main"]  # people are told of lines alone
    first = cloned(hub, tmp_path / "first")
    assert (first / "poem").read_text() == "violets\n"
    assert b"Add violets" in git_in(first, "log", "-1", "--format=%s")
    ada.turn("Sugar", poem="sugar\n")
    ada.push()
    assert (cloned(hub, tmp_path / "second") / "poem").read_text() == "sugar\n"
    assert ada.push().updates == []
    sound(hub)


def test_it_only_advances(tmp_path: Path, hub: str) -> None:
    """A line that went another way does not move it, nor does any line once a person has pushed to it."""
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("One", poem="1\n")
    ada.push()
    stood = stands(hub)
    ada.snap("undo", "-y")
    ada.turn("Another", poem="2\n")
    ada.push()
    assert stands(hub) == stood
    by_hand(hub, tmp_path / "by hand")
    mine = stands(hub)
    ada.turn("Third", poem="3\n")
    ada.push()
    assert stands(hub) == mine != stood
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Fourth", poem="4\n")
    bob.push()
    assert stands(hub) == mine


def test_two_machines_push_in_turns_and_see_no_line_more(tmp_path: Path, ada: Machine, hub: str) -> None:
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    cleo = Machine(tmp_path, "cleo")
    cleo.root.mkdir(parents=True)
    for number in range(3):
        bob.turn(f"Bob {number}", bob=f"{number}\n")
        bob.push()
        ada.turn(f"Ada {number}", ada=f"{number}\n")
        ada.push()
        ada.pull()
        bob.pull()
    assert (cloned(hub, tmp_path / "by git") / "bob").read_text() == "2\n"  # the first that went on from it
    cleo.attach(hub)
    lines = {ref for ref in all_refs(hub) if ref.startswith("refs/heads/")} - {default(hub)}
    assert lines == {"refs/heads/shell/main", "refs/heads/shell/main-2"}
    for machine in (ada, bob, cleo):
        assert default(hub) not in machine.refs("refs/")
        assert not any("@" in ref for ref in machine.refs())
        assert {"Bob 2", "Ada 2"} <= machine.prompts()
        machine.whole()
    dee = Machine(tmp_path, "dee")
    dee.clone(hub)
    assert default(hub) not in dee.refs("refs/")
    sound(hub)


def test_a_session_whose_name_is_in_the_way_is_shared_all_the_same(tmp_path: Path, hub: str) -> None:
    head = default(hub).removeprefix("refs/heads/")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("One", head, poem="1\n")
    ada.push()
    assert f"refs/heads/{head}/main" in all_refs(hub) and stands(hub) is None
    # And the other way round: the session comes when the branch is there.
    other = bare(tmp_path / "other.git")
    eve = Machine(tmp_path, "eve").init(poem="roses\n").remote(other)
    eve.turn("One", poem="1\n")
    eve.push()
    eve.turn("Two", head, poem="2\n")
    eve.push()
    assert f"refs/heads/{head}@eve/main" in all_refs(other)
    zoe = Machine(tmp_path, "zoe")
    zoe.clone(other)
    assert zoe.prompts() == {"One", "Two"}


def test_the_machine_says_which_branch_it_advanced(ada: Machine, hub: str) -> None:
    said = next(ref for ref in all_refs(hub) if ref.startswith(MACHINES))
    assert json.loads(git(hub, "show", f"{said}:machine.json"))["default_branches"] == [default(hub)]
    before = all_refs(hub)[said]
    ada.turn("More", poem="more\n")
    ada.push()
    assert all_refs(hub)[said] == before  # said once


def test_without_the_git_program(tmp_path: Path, hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("Add violets", poem="violets\n")
    ada.push()
    monkeypatch.undo()
    assert (cloned(hub, tmp_path / "first") / "poem").read_text() == "violets\n"


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("name", ["main", "trunk"])
def test_over_a_network(tmp_path: Path, hub: str, name: str, atomic: bool) -> None:
    """An empty repository's default branch is known too; and a branch that the server protects keeps nothing else from
    being pushed, is told of once, and costs the next push nothing."""
    git(hub, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    git(hub, "config", "receive.advertiseAtomic", str(atomic).lower())
    with remotes.daemon(tmp_path) as url:
        ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(f"{url}/hub.git")
        ada.turn("Add violets", poem="violets\n")
        assert ada.push().remarks == []
        assert set(all_refs(hub)) >= {f"refs/heads/{name}", "refs/heads/shell/main"}
        with open_remote(f"{url}/hub.git") as remote:
            remote.refs()
            assert remote.default_branch() == f"refs/heads/{name}"
        stood = stands(hub)
        refuse(hub, f"refs/heads/{name}")
        ada.turn("Sugar", poem="sugar\n")
        pushed = ada.push()
        assert [update.there for update in pushed.updates] == ["refs/heads/shell/main"] and pushed.attempts == 1
        assert len(pushed.remarks) == 1 and f"refs/heads/{name}" in pushed.remarks[0]
        ada.turn("Salt", poem="salt\n")
        assert ada.push().remarks == []
        assert stands(hub) == stood
        assert all_refs(hub)["refs/heads/shell/main"] == ada.refs()["refs/heads/shell/main"]
        sound(hub)


# Forgetting.


def forgotten(machine: Machine, *words: str) -> dict[str, object]:
    said = json.loads(machine.snap("forget", *words, "--yes", "--remotes", "--json").stdout)
    reach: dict[str, object] = said["remotes"][0]
    return reach


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("what", ["oops", "2"])
def test_what_was_forgotten_is_not_left_in_it(tmp_path: Path, hub: str, what: str, atomic: bool) -> None:
    git(hub, "config", "receive.advertiseAtomic", str(atomic).lower())
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    oops(ada)
    assert stands(hub)
    assert forgotten(ada, what)["done"] is True
    assert SECRET.encode() not in reachable(hub)
    assert stands(hub) == ada.refs()["refs/heads/shell/main"]
    ada.turn("Later", poem="last\n")
    ada.push()
    assert stands(hub) == ada.refs()["refs/heads/shell/main"]
    sound(hub)


def test_nor_where_it_is_told_later_and_the_line_has_gone_on(tmp_path: Path, hub: str) -> None:
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    oops(ada)
    ada.snap("goto", "1", "--yes")
    ada.turn("Aside", poem="aside\n")
    ada.push()
    ada.snap("forget", "oops", "--yes")
    ada.turn("Meanwhile", poem="meanwhile\n")
    assert SECRET.encode() in reachable(hub)
    said = json.loads(ada.snap("forget", "--remotes", "--json").stdout)
    assert said["remotes"][0]["done"] is True
    assert SECRET.encode() not in reachable(hub) and stands(hub)
    sound(hub)


@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize("renamed", [False, True])
def test_nor_where_another_machine_advanced_it(tmp_path: Path, hub: str, pulled: bool, renamed: bool) -> None:
    """Also where the server calls another branch its default by now."""
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    oops(ada)
    branch, before = default(hub), stands(hub)
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Bob's own", more="x")
    allow(bob)
    bob.push()
    assert stands(hub) not in (None, before)
    if pulled:
        ada.pull()
    if renamed:
        git(hub, "symbolic-ref", "HEAD", "refs/heads/other")
    reach = forgotten(ada, "oops")
    tree = git(hub, "ls-tree", "-r", "--name-only", branch).decode().split()
    assert "oops" not in tree and "poem" in tree
    assert SECRET.encode() not in git(hub, "log", "-p", branch)
    assert branch not in str(reach["left"])  # Bob's own line is named, which is his to forget in
    assert "shell/main-2" in str(reach["left"])
    with ada.open() as store:
        assert holds(store, SECRET) == []
    sound(hub)
    bob.turn("Again", more="y")
    bob.push()  # his line still holds it; the branch stays as it is
    assert SECRET.encode() not in git(hub, "log", "-p", branch)


def test_a_person_s_commits_on_top_are_named_and_stay(tmp_path: Path, hub: str) -> None:
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    oops(ada)
    by_hand(hub, tmp_path / "by hand")
    mine = stands(hub)
    reach = forgotten(ada, "oops")
    assert stands(hub) == mine
    assert reach["done"] is False and f"{default(hub)}, which leads to it" in str(reach["left"])
    assert all_refs(hub)["refs/heads/shell/main"] == ada.refs()["refs/heads/shell/main"]


def test_one_that_has_nothing_to_do_with_it_stays(tmp_path: Path, hub: str) -> None:
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("Add violets", poem="violets\n")
    ada.push()
    stood = stands(hub)
    ada.snap("undo", "--yes")
    oops(ada)
    reach = forgotten(ada, "oops")
    assert stands(hub) == stood and reach["done"] is True and default(hub) not in str(reach["left"])


@pytest.mark.parametrize("deletes", [True, False])
def test_one_that_cannot_be_replaced_is_deleted_or_said_to_stay(tmp_path: Path, hub: str, deletes: bool) -> None:
    """The lines are replaced all the same."""
    ada = Machine(tmp_path, "ada").init(poem="roses\n")
    zeros = "0" * 40
    with remotes.daemon(tmp_path) as url:
        ada.remote(f"{url}/hub.git")
        oops(ada)
        rule = f'[ "$1" = {default(hub)} ] && [ "$3" != {zeros if deletes else "x"} ]'
        write(Path(hub) / "hooks" / "update", f"#!/bin/sh\nif {rule}; then exit 1; fi\n", executable=True)
        git(hub, "config", "receive.denyDeleteCurrent", "ignore")
        if deletes:
            reach = forgotten(ada, "oops")
        else:
            done = ada.snap("forget", "oops", "--yes", "--remotes", "--json")
            reach = json.loads(done.stdout)["remotes"][0]
    assert all_refs(hub)["refs/heads/shell/main"] == ada.refs()["refs/heads/shell/main"]
    assert default(hub) in str(reach["left"])
    assert reach["done"] is deletes and (stands(hub) is None) == deletes
    assert (SECRET.encode() in reachable(hub)) != deletes


def test_what_is_not_git_s_to_clone_is_left_alone(tmp_path: Path, hub: str) -> None:
    """A default branch that stands for another ref, or is named like a session's line."""
    git(hub, "symbolic-ref", "HEAD", "refs/heads/some/line")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("One", poem="1\n")
    ada.push()
    assert {ref for ref in all_refs(hub) if ref.startswith("refs/heads/")} == {"refs/heads/shell/main"}
    git(hub, "symbolic-ref", "HEAD", "refs/heads/main")
    subprocess.run(["git", "-C", hub, "symbolic-ref", "refs/heads/main", "refs/heads/elsewhere"], check=True)
    ada.turn("Two", poem="2\n")
    assert len(ada.push().updates) == 1
    assert "refs/heads/elsewhere" not in all_refs(hub)
