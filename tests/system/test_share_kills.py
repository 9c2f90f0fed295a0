"""P-05, G-17: a push, pull or clone that is killed anywhere leaves the old state or the new, here and on the server,
and the next one does the rest."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from helpers import all_refs, git, killed_at, on_disk, quick_folder
from machines import Machine, bare, prompts, server_refs, sound

from snapstore.share.clone import attach, clone


def pull_killed(base: Path, step: int, more: int = 0) -> None:
    hub = bare(base / "hub.git")
    ada = Machine(base, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n")
    ada.push()
    bob = Machine(base, "bob")
    bob.clone(hub)
    bob.turn("Bob's", b="b\n")
    ada.turn("Two", f="2\n")
    ada.turn("Noted", session="notes", f="3\n")
    ada.snap("checkpoint", "here")
    ada.push()
    tip = server_refs(hub)["refs/heads/notes/main"]
    for number in range(more):
        git(hub, "update-ref", f"refs/heads/notes/more{number}", tip)
    kept = base / "kept"
    shutil.copytree(bob.home, kept)
    old = bob.refs()
    bob.pull()
    new = bob.refs()
    assert new != old
    disk = on_disk(bob.root)
    seen: set[bool] = set()
    for nth in range(1, 2000, step):
        shutil.rmtree(bob.home)
        shutil.copytree(kept, bob.home)
        killed = killed_at(nth, bob.pull)
        found = bob.refs()  # opening it finishes what was begun, or forgets it
        assert found in (old, new), f"half a pull after call {nth}"
        seen.add(found == new)
        with bob.open() as store:
            foreign = store.foreign()
            assert set(foreign.refs) <= set(all_refs(store))
            assert ("refs/heads/notes/main" in foreign.refs) == (found == new)
        bob.whole()
        bob.pull()
        assert bob.refs() == new and on_disk(bob.root) == disk
        with bob.open() as store:
            tip = new["refs/heads/notes/main"]
            assert b"Noted" in git(store.shadow.git_dir, "notes", "--ref=turns", "show", tip)
        if not killed:
            break
    else:
        raise AssertionError("it never came to an end")
    assert seen == {True, False}


def pull_of_many_killed(base: Path, step: int) -> None:
    """So many that they are made in one write."""
    pull_killed(base, step, more=70)


def push_killed(base: Path, step: int) -> None:
    hub = bare(base / "hub.git")
    ada = Machine(base, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n")
    ada.push()
    ada.turn("Two", f="2\n")
    ada.turn("Noted", session="notes", f="3\n")
    kept, kept_hub = base / "kept", base / "kept.git"
    shutil.copytree(ada.home, kept)
    shutil.copytree(hub, kept_hub)
    own, disk, before = ada.refs(), on_disk(ada.root), server_refs(hub)
    for nth in range(1, 2000, step):
        for place, copy in ((ada.home, kept), (Path(hub), kept_hub)):
            shutil.rmtree(place)
            shutil.copytree(copy, place)
        killed = killed_at(nth, ada.push)
        # No repository of git moves several refs in one instant: each is old or new, and all that it leads to is there.
        for ref, oid in server_refs(hub).items():
            assert oid in (before.get(ref), own[ref]), f"{ref} after call {nth}"
        sound(hub)
        late = Machine(base, f"late-{nth}")
        late.clone(hub)  # whoever looks just now sees what is there
        assert late.prompts() == prompts(hub) >= {"One"}
        for place in (late.root, late.home):
            shutil.rmtree(place)
        assert ada.refs() == own and on_disk(ada.root) == disk
        ada.push()
        assert server_refs(hub) == own
        assert b"Noted" in git(hub, "notes", "--ref=turns", "show", own["refs/heads/notes/main"])
        sound(hub)
        ada.whole()
        if not killed:
            break
    else:
        raise AssertionError("it never came to an end")


def first_push_killed(base: Path, step: int) -> None:
    """An empty repository that got a part of the refs is known as this project's: the next push does the rest."""
    hub = base / "hub.git"
    ada = Machine(base, "ada").init(f="0\n").remote(bare(hub))
    ada.turn("One", f="1\n")
    ada.snap("checkpoint", "here")
    kept = base / "kept"
    shutil.copytree(ada.home, kept)
    own = {**ada.refs(), **ada.refs("refs/tags/")}
    for nth in range(1, 2000, step):
        for place in (ada.home, hub):
            shutil.rmtree(place)
        shutil.copytree(kept, ada.home)
        bare(hub)
        killed = killed_at(nth, ada.push)
        ada.push()
        found = server_refs(str(hub), "refs/")
        assert {ref: oid for ref, oid in found.items() if "/snapstore/" not in ref and "/notes/" not in ref} == own
        assert b"One" in git(str(hub), "notes", "--ref=turns", "show", own["refs/heads/shell/main"])
        sound(str(hub))
        if not killed:
            break
    else:
        raise AssertionError("it never came to an end")


def clone_killed(base: Path, step: int) -> None:
    hub = bare(base / "hub.git")
    ada = Machine(base, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n", g="2\n")
    ada.push()
    bob = Machine(base, "bob")
    for nth in range(1, 2000, step):
        for place in (bob.home, bob.root):
            shutil.rmtree(place, ignore_errors=True)
        bob.root.parent.mkdir(parents=True, exist_ok=True)
        killed = killed_at(nth, lambda: clone(str(bob.home), hub, str(bob.root)))
        stores = [name for name in (os.listdir(bob.home) if bob.home.is_dir() else []) if not name.startswith(".")]
        if stores:
            bob.whole()
            assert bob.prompts() == {"One"}
            if on_disk(bob.root) != on_disk(ada.root):
                bob.snap("goto", "--exact", "@", "--session", "shell", "-y")
        else:
            assert not bob.root.exists() or not os.listdir(bob.root)
            bob.clone(hub)
        assert on_disk(bob.root) == on_disk(ada.root)
        if not killed:
            break
    else:
        raise AssertionError("it never came to an end")


def join_killed(base: Path, step: int) -> None:
    """A store of its own becomes one of the project: its id changes together with what comes in."""
    hub = bare(base / "hub.git")
    ada = Machine(base, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n")
    ada.push()
    dee = Machine(base, "dee").init(d="0\n")
    dee.turn("Dee's", d="1\n")
    kept, disk, own = base / "kept", on_disk(dee.root), dee.refs()
    shutil.copytree(dee.home, kept)
    with ada.open() as store:
        project = store.header.id
    for nth in range(1, 2000, step):
        shutil.rmtree(dee.home)
        shutil.copytree(kept, dee.home)
        killed = killed_at(nth, lambda: attach(str(dee.home), os.fsencode(dee.root), hub))
        with dee.open() as store:
            joined = store.header.id == project
        assert dee.prompts() == ({"One", "Dee's"} if joined else {"Dee's"}), f"half a join after call {nth}"
        dee.attach(hub)
        assert dee.prompts() == {"One", "Dee's"} and on_disk(dee.root) == disk
        assert own.items() <= dee.refs().items()
        dee.whole()
        if not killed:
            break
    else:
        raise AssertionError("it never came to an end")


WORKS = {
    "pull": pull_killed,
    "pull of many": pull_of_many_killed,
    "push": push_killed,
    "first push": first_push_killed,
    "clone": clone_killed,
    "join": join_killed,
}


@pytest.mark.parametrize("work", WORKS)
def test_killed_now_and_then(work: str) -> None:
    with quick_folder() as base:
        WORKS[work](base, 17)


@pytest.mark.deep
@pytest.mark.parametrize("work", WORKS)
def test_killed_anywhere(work: str) -> None:
    with quick_folder() as base:
        WORKS[work](base, 1)
