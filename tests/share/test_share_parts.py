"""A large push over a network goes in parts: what broke off goes on from where it was (issue 7)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from helpers import all_refs, git, killed_at, on_disk, quick_folder, write
from machines import Machine, prompts, server_refs, sound
from remotes import bare, daemon, wire
from test_share_servers import WAYS, Reached
from transporting import ADA, shadow_with

from snapstore.errors import Remote as RemoteError
from snapstore.git.objects.commits import encode
from snapstore.git.objects.ids import BLOB, COMMIT, FILE, FOLDER, TREE, object_id
from snapstore.git.ref_names import PARTS
from snapstore.git.remote.connection import Moves
from snapstore.git.remote.git_driver import GitConnection
from snapstore.git.remote.open import open_remote
from snapstore.share import chunked_push

SIZE = 100_000
Way = Callable[[Path], AbstractContextManager[Reached]]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_push, "SIZE", SIZE)


Sent = list[tuple[set[str], int]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What each push was made of: its refs, and how many objects git says that it sent."""
    found: Sent = []
    push = GitConnection._pushed

    def noted(self: GitConnection, going: Moves, *more: Any, **options: Any) -> dict[str, str | None]:
        totals = [0]
        self._progress = lambda what, done, total: totals.append(total) if what == "sending" else None
        try:
            return push(self, going, *more, **options)
        finally:
            found.append((set(going), max(totals)))

    monkeypatch.setattr(GitConnection, "_pushed", noted)
    return found


def noise(number: int, size: int = 30_000) -> dict[str, str]:
    return {f"f{at}": os.urandom(size // 2).hex() for at in range(number)}


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return bare(tmp_path / "hub.git")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with daemon(tmp_path) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
def ada(tmp_path: Path, hub: Path, port: int) -> Machine:
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(f"git://127.0.0.1:{port}/hub.git")
    ada.turn("Big", **noise(30))
    return ada


def at(machine: Machine, port: int) -> None:
    machine.snap("remote", "remove", "origin")
    machine.remote(f"git://127.0.0.1:{port}/hub.git")


def seen_by_another(ada: Machine, hub: Path) -> None:
    """All of it is there, nothing else is, and git has nothing to say."""
    sound(str(hub))
    bob = Machine(hub.parent, "bob")
    bob.clone(str(hub))
    assert on_disk(bob.root) == on_disk(ada.root) and bob.prompts() == ada.prompts()
    assert not bob.refs(PARTS)


def test_a_line_that_never_holds_for_the_whole_of_it(
    small: None, ada: Machine, hub: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wire(port, up=3 * SIZE) as broken:
        at(ada, broken)
        with monkeypatch.context() as whole:
            whole.setattr(chunked_push, "SIZE", 1 << 30)
            with pytest.raises(RemoteError):
                ada.push()
        assert not all_refs(str(hub))
        assert ada.push().turns == 1
    assert not server_refs(str(hub), PARTS)
    seen_by_another(ada, hub)


@pytest.mark.parametrize("way", WAYS)
def test_over_every_kind_of_server(
    small: None, tmp_path: Path, hub: Path, way: Way, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.turn("Big", **noise(12))
    with way(tmp_path) as (url, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        ada.remote(url).push()
    assert len(sent) > 3
    assert not server_refs(str(hub), PARTS)
    seen_by_another(ada, hub)


def test_what_broke_off_goes_on_from_where_it_was(small: None, ada: Machine, hub: Path, port: int, sent: Sent) -> None:
    """Every file goes over once. (git by itself would send all of them again with history.)"""
    ada.turn("Too large for the line", **noise(1, 8 * SIZE))
    with wire(port, up=4 * SIZE) as broken:
        at(ada, broken)
        with pytest.raises(RemoteError):
            ada.push()
    over = [(refs, count) for refs, count in sent if any(ref.startswith(PARTS) for ref in refs)]
    assert len(over) >= 5
    assert not server_refs(str(hub)), "history moves in one step, at the end"
    sent.clear()
    at(ada, port)
    ada.push()
    assert not server_refs(str(hub), PARTS)
    git(str(hub), "prune", "--expire=now")
    stored = len(git(str(hub), "cat-file", "--batch-all-objects", "--batch-check").splitlines())
    sets = [*over, *sent]
    # Each part has a tree and a commit besides its files, and the first one says whose project it is.
    assert sum(count for _, count in sets) <= stored + 2 * len(sets) + 6
    seen_by_another(ada, hub)


@pytest.mark.parametrize("helped", [True, False])
def test_git_leaves_out_what_the_last_part_holds(tmp_path: Path, helped: bool) -> None:
    """What git does not document: with a list of cut-off history, if only an empty one, it takes all trees of what the
    server has for known. Without, it sends every file again."""
    hub = str(bare(tmp_path / "hub.git"))
    store = shadow_with(tmp_path / "store.git")
    objects, told = store.objects, list[int]()

    def written(*rows: tuple[bytes, bytes, bytes], parent: bytes | None = None) -> tuple[bytes, bytes]:
        writer = objects.writer()
        tree = writer.add(TREE, b"".join(b"%s %s\0%s" % row for row in rows))
        commit = writer.add(COMMIT, encode(tree, [parent] if parent else [], ADA, ADA, 1_700_000_000, "x\n"))
        objects.release(objects.finish(writer))
        return tree, commit

    writer = objects.writer()
    files = sorted((object_id(BLOB, data), data) for data in (b"%d\n" % number * 50 for number in range(40)))
    for _, data in files:
        writer.add(BLOB, data)
    objects.release(objects.finish(writer))
    rows = [(FILE, oid.hex().encode(), oid) for oid, _ in files]
    tree, first = written(*rows[:20])
    _, second = written(*rows[20:], (FOLDER, b"parts", tree), parent=first)
    _, history = written(*((FILE, b"f%02d" % at, oid) for at, (oid, _) in enumerate(files)))
    with open_remote(
        hub, progress=lambda what, done, total: told.append(total) if what == "sending" else None
    ) as remote:
        part = f"{PARTS}me"
        assert remote.push({part: (None, first)}, [], objects) == {part: None}
        assert remote.push({part: (first, second)}, [], objects) == {part: None}
        told.clear()
        main = "refs/heads/shell/main"
        assert remote.push({main: (None, history)}, [], objects, has_parts=helped) == {main: None}
    assert max(told) == (2 if helped else 42)
    sound(hub)


def test_a_small_push_and_one_to_a_folder_go_at_once(small: None, ada: Machine, hub: Path, sent: Sent) -> None:
    ada.snap("remote", "remove", "origin")
    ada.remote(str(hub))
    ada.push()
    assert len(sent) == 1
    ada.turn("Small", f="1\n")
    ada.push()
    assert len(sent) == 2
    seen_by_another(ada, hub)


HOOKS = {"refuses them": '"$1" in */parts/*)', "deletes none": '"$3" in 000*)'}


@pytest.mark.parametrize("words", HOOKS)
def test_a_server_that_will_not_have_such_refs(small: None, ada: Machine, hub: Path, words: str) -> None:
    """One that keeps them keeps nothing else by it; one that refuses them gets everything at once."""
    hook = hub / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ncase {HOOKS[words]} exit 1;; esac\n")
    hook.chmod(0o755)
    ada.push()
    ada.turn("Next", **noise(12))
    ada.push()
    assert len(server_refs(str(hub), PARTS)) == (words == "deletes none")
    seen_by_another(ada, hub)


def test_parts_that_are_gone_from_here_or_were_moved_are_no_hindrance(
    small: None, ada: Machine, hub: Path, port: int
) -> None:
    """A store that was restored from a backup; a server that puts our ref on something else."""
    empty = git(str(hub), "hash-object", "-w", "-t", "tree", "--stdin", feed=b"").decode().strip()
    strange = git(str(hub), "commit-tree", "-m", "A part of a push", empty).decode().strip()
    ada.push()
    (claims,) = server_refs(str(hub), "refs/snapstore/machines/")
    ref = f"{PARTS}{claims.rpartition('/')[2]}"
    git(str(hub), "update-ref", ref, strange)
    ada.turn("Next", **noise(12))
    ada.push()
    git(str(hub), "update-ref", ref, server_refs(str(hub))["refs/heads/shell/main"])
    ada.turn("Another", **noise(12))
    ada.push()
    assert prompts(str(hub)) == {"Big", "Next", "Another"}
    assert not server_refs(str(hub), PARTS)
    seen_by_another(ada, hub)


def test_what_is_forgotten_is_not_left_in_parts(small: None, ada: Machine, hub: Path, port: int) -> None:
    ada.push()
    secret = noise(1, 3 * SIZE)["f0"]
    ada.turn("Secret", secret=secret, **noise(10))
    oid = git(str(hub), "hash-object", "--stdin", feed=secret.encode()).decode().strip()
    with wire(port, up=5 * SIZE) as broken:
        at(ada, broken)
        ada.turn("Too large for the line", **noise(1, 20 * SIZE))
        with pytest.raises(RemoteError):
            ada.push()
    assert git(str(hub), "cat-file", "-t", oid).strip() == b"blob"
    at(ada, port)
    hook = hub / "hooks" / "update"
    write(hook, f"#!/bin/sh\ncase {HOOKS['deletes none']} exit 1;; esac\n", executable=True)
    (left,) = server_refs(str(hub), PARTS)
    said = ada.snap_json("forget", "secret", "--remotes", "-y", "--json")["remotes"][0]
    assert said["done"] is False and any(left in text for text in said["left"]), said
    hook.unlink()
    ada.snap("forget", "--remotes", "-y")
    assert not server_refs(str(hub), PARTS)
    git(str(hub), "prune", "--expire=now")
    assert git(str(hub), "cat-file", "-t", oid, may_fail=True) == b""
    ada.push()
    (ada.root / "secret").unlink()
    seen_by_another(ada, hub)


def killed(base: Path, step: int) -> None:
    hub = bare(base / "hub.git")
    with daemon(base) as url:
        ada = Machine(base, "ada").init(f="0\n").remote(f"{url}/hub.git")
        ada.turn("Big", **noise(8))
        kept, own = base / "kept", ada.refs()
        shutil.copytree(ada.home, kept)
        for nth in range(1, 3000, step):
            shutil.rmtree(ada.home)
            shutil.copytree(kept, ada.home)
            shutil.rmtree(hub)
            bare(hub)
            dead = killed_at(nth, ada.push)
            found = server_refs(str(hub))
            assert found in ({}, own), f"half a push after call {nth}"
            ada.push()
            assert server_refs(str(hub)) == own and not server_refs(str(hub), PARTS)
            sound(str(hub))
            ada.whole()
            if not dead:
                return
    raise AssertionError("it never came to an end")


def test_killed_now_and_then(small: None) -> None:
    with quick_folder() as base:
        killed(base, 23)


@pytest.mark.deep
def test_killed_anywhere(small: None) -> None:
    with quick_folder() as base:
        killed(base, 1)
