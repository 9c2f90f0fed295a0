"""What was pushed before it was forgotten: what is ours on a server is replaced when asked for, the rest is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forgetting import SECRET, holds
from helpers import all_refs, git
from machines import Machine, server_refs, sound

from snapstore.share import replace_forgotten
from snapstore.share.secrets import check


@pytest.fixture
def ada(tmp_path: Path, hub: str) -> Machine:
    """Has pushed a file that she would rather not have."""
    machine = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    machine.turn("Add violets", poem="violets\n")
    machine.turn("Oops", oops=SECRET, poem="more\n")
    machine.turn("On", poem="and more\n")
    allow(machine)
    machine.push()
    return machine


def allow(machine: Machine) -> None:
    """Whatever the rules say of it: it is on the server in these stories."""
    with machine.open() as store:
        commits = [bytes.fromhex(row) for row in git(store.shadow.git_dir, "rev-list", "--all").decode().split()]
        found = check.check(store, [oid for oid in commits if store.shadow.commit(oid).trailers])
        check.allow(store, [finding.fingerprint for finding in found])


def reachable(hub: str) -> bytes:
    """What anybody who clones gets."""
    ids = git(hub, "rev-list", "--objects", "--all", "--no-object-names")
    return git(hub, "cat-file", "--batch", feed=ids)


def test_remotes_are_named_and_left_alone_unless_asked(ada: Machine, hub: str) -> None:
    before = all_refs(hub)
    said = json.loads(ada.snap("forget", "oops", "--yes", "--json").stdout)
    assert [(one["remote"], one["done"]) for one in said["remotes"]] == [("origin", False)]
    assert any("--remotes" in text for text in said["remotes"][0]["left"])
    assert all_refs(hub) == before and SECRET.encode() in reachable(hub)
    with ada.open() as store:
        assert holds(store, SECRET) == []


def test_what_is_ours_is_replaced_there(ada: Machine, hub: str) -> None:
    ada.snap("checkpoint", "here")
    ada.push()
    names = set(all_refs(hub))
    said = json.loads(ada.snap("forget", "oops", "--yes", "--remotes", "--json").stdout)
    assert said["remotes"][0]["done"] is True and said["remotes"][0]["error"] is None
    assert any("server" in text for text in said["remotes"][0]["left"])
    assert SECRET.encode() not in reachable(hub)
    assert set(all_refs(hub)) == names
    sound(hub)
    with ada.open() as store:
        assert holds(store, SECRET) == []
        assert all_refs(hub)["refs/heads/shell/main"] == all_refs(store)["refs/heads/shell/main"]
    git(hub, "reflog", "expire", "--expire=now", "--all")
    git(hub, "gc", "--prune=now", "--quiet")
    assert SECRET.encode() not in git(hub, "cat-file", "--batch-all-objects", "--batch")
    ada.turn("Later", poem="last\n")
    ada.push()
    assert set(all_refs(hub)) == names  # it goes on under the same names
    assert {"Later", "On", "Oops"} <= ada.prompts()


def test_a_new_machine_gets_the_history_without_it(ada: Machine, hub: str, tmp_path: Path) -> None:
    ada.snap("forget", "oops", "--yes", "--remotes")
    cleo = Machine(tmp_path, "cleo")
    cleo.clone(hub)
    with cleo.open() as store:
        assert holds(store, SECRET) == []
    assert cleo.prompts() == ada.prompts()


def test_a_turn_is_replaced_there_too(ada: Machine, hub: str) -> None:
    ada.snap("forget", "2", "--yes", "--remotes")
    assert SECRET.encode() not in reachable(hub)
    assert "Oops" not in ada.prompts()
    assert b"Oops" not in reachable(hub)
    sound(hub)


def test_lines_of_others_are_theirs(ada: Machine, hub: str, tmp_path: Path) -> None:
    """Bob has built on it. His line is not ours to change, and that is said."""
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Bob's own", more="x")
    allow(bob)
    bob.push()
    theirs = {ref: oid for ref, oid in server_refs(hub).items() if ref not in all_refs_of(ada)}
    assert theirs
    said = json.loads(ada.snap("forget", "oops", "--yes", "--remotes", "--json").stdout)
    left = " ".join(said["remotes"][0]["left"])
    assert "other machines" in left
    assert all(all_refs(hub)[ref] == oid for ref, oid in theirs.items())
    sound(hub)
    bob.whole()


def all_refs_of(machine: Machine) -> dict[str, str]:
    with machine.open() as store:
        return all_refs(store)


def test_a_remote_that_is_gone_is_said_and_the_store_is_clean_all_the_same(ada: Machine, hub: str) -> None:
    Path(hub).rename(Path(hub).with_name("elsewhere"))
    done = ada.snap("forget", "oops", "--yes", "--remotes", "--json", status=1)
    said = json.loads(done.stdout)
    assert said["remotes"][0]["error"]
    with ada.open() as store:
        assert holds(store, SECRET) == []


def forget_without_the_remote(ada: Machine, how: str, hub: str) -> None:
    """In four ways: not asked for, the server away, another one forgotten on top, or the wish cut short."""
    away = Path(hub).with_name("elsewhere")
    if how == "away":
        Path(hub).rename(away)
    ada.snap("forget", "oops", "--yes", *(["--remotes"] if how == "away" else []), status=int(how == "away"))
    if how == "away":
        away.rename(hub)
    if how == "twice":
        ada.snap("forget", "2", "--yes")


@pytest.mark.parametrize("how", ["not asked for", "away", "twice"])
def test_a_remote_is_told_later_as_well(ada: Machine, hub: str, how: str, tmp_path: Path) -> None:
    forget_without_the_remote(ada, how, hub)
    ada.turn("Meanwhile", poem="last\n")
    for command in ("push", "pull"):
        error = ada.snap_json(command, "--json", status=15)
        assert "forgotten" in error["message"] and "forget --remotes" in error["hint"]
    assert SECRET.encode() in reachable(hub)
    again = ["oops", "--yes"] if how == "away" else []  # as one would say it once more
    said = json.loads(ada.snap("forget", *again, "--remotes", "--json").stdout)
    assert said["paths"] == [] and said["remotes"][0]["done"] is True
    assert SECRET.encode() not in reachable(hub) and (how != "twice" or b"Oops" not in reachable(hub))
    sound(hub)
    ada.push()
    ada.pull()
    assert set(server_refs(hub)) == {"refs/heads/shell/main"}
    assert all_refs(hub)["refs/heads/shell/main"] == all_refs_of(ada)["refs/heads/shell/main"]
    with ada.open() as store:
        assert holds(store, SECRET) == []
        assert not replace_forgotten.is_due(store)
    cleo = Machine(tmp_path, "cleo")
    cleo.clone(hub)
    assert cleo.prompts() == ada.prompts()


def test_names_that_are_ours_from_before_are_replaced_too(ada: Machine, hub: str) -> None:
    """The remote has another name by now, so lines went beside the old ones."""
    ada.snap("forget", "oops", "--yes")
    ada.snap("remote", "remove", "origin")
    ada.snap("remote", "add", "hub", hub)
    ada.push()
    assert len(server_refs(hub)) == 2
    said = json.loads(ada.snap("forget", "poem", "--yes", "--remotes", "--json").stdout)
    assert said["remotes"][0]["done"] is True
    assert SECRET.encode() not in reachable(hub)
    sound(hub)


def test_what_the_server_will_not_have_replaced_is_not_said_to_be(ada: Machine, hub: str) -> None:
    git(hub, "config", "receive.denyNonFastForwards", "true")
    said = json.loads(ada.snap("forget", "oops", "--yes", "--remotes", "--json").stdout)
    assert said["remotes"][0]["done"] is False
    assert any("refs/heads/shell/main" in text for text in said["remotes"][0]["left"])
    assert SECRET.encode() in reachable(hub)
    ada.turn("On and on", poem="x\n")
    ada.push()  # it was tried, and said: the line goes beside the old one


def test_a_server_that_cannot_push_atomically_is_told_ref_by_ref(ada: Machine, hub: str) -> None:
    git(hub, "config", "receive.advertiseAtomic", "false")
    said = json.loads(ada.snap("forget", "oops", "--yes", "--remotes", "--json").stdout)
    assert said["remotes"][0]["done"] is True
    assert SECRET.encode() not in reachable(hub)
    sound(hub)


def test_our_archived_line_is_not_said_to_be_anothers(ada: Machine, hub: str) -> None:
    ada.snap("goto", "1", "--yes")
    ada.turn("Aside", poem="aside\n")
    ada.push()
    ada.snap("branch", "archive", "main")
    ada.push()
    said = json.loads(ada.snap("forget", "oops", "--yes", "--remotes", "--json").stdout)
    assert not any("other machines" in text for text in said["remotes"][0]["left"] if "refs/" in text)
    assert SECRET.encode() not in reachable(hub)


@pytest.mark.parametrize("gone", [False, True])
def test_our_lines_there_that_have_nothing_to_do_with_it_stay(ada: Machine, hub: str, gone: bool) -> None:
    """A branch that was deleted here, and perhaps pruned since: the server may have the only copy."""
    ada.snap("goto", "1", "--yes")
    ada.turn("Aside", other="x\n")
    ada.push()
    line = server_refs(hub)["refs/heads/shell/main-2"]
    ada.snap("goto", "main", "--yes")
    ada.snap("branch", "delete", "main-2", "--yes")
    ada.push()
    if gone:
        ada.snap("prune", "--older", "0")
        ada.snap("gc", "--grace", "0")
    said = json.loads(ada.snap("forget", "oops", "--yes", "--remotes", "--json").stdout)
    assert server_refs(hub)["refs/heads/shell/main-2"] == line
    assert any("main-2, which no longer exists on this machine" in text for text in said["remotes"][0]["left"]) == gone
    assert SECRET.encode() not in reachable(hub)
    sound(hub)


def test_it_does_not_come_back_by_another_way(ada: Machine, hub: str, tmp_path: Path) -> None:
    """The same repository by another name, and a file that was exported before."""
    ada.snap("export", str(tmp_path / "before.bundle"))
    ada.snap("forget", "oops", "--yes")
    refs = ada.refs("refs/")
    ada.snap("pull", f"file://{hub}")
    ada.snap("import", str(tmp_path / "before.bundle"))
    ada.snap("remote", "add", "two", hub)
    ada.snap("pull", "two")
    after = ada.refs("refs/")
    assert {ref: oid for ref, oid in after.items() if "/heads/" in ref or "/cursor/" in ref} == {
        ref: oid for ref, oid in refs.items() if "/heads/" in ref or "/cursor/" in ref
    }
    ada.whole()


def test_remotes_alone_without_a_remote(tmp_path: Path) -> None:
    eve = Machine(tmp_path, "eve").init(f="0\n")
    eve.turn("One", f="1\n")
    assert "No remote" in eve.snap("forget", "--remotes").stdout
    assert "what should be forgotten" in eve.snap("forget", status=2).stderr
