"""`forget` killed, short of room, over damage and links, and beside turns, pushes and other people's git."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from commands import snap
from faults import strike
from forgetting import SECRET, assert_gone, forget, holds
from helpers import all_refs, assert_cache_adds_up, assert_whole, git, line, needs_strace, turn, write

from snapstore import Store
from snapstore.errors import Busy, Failed, Interrupted, SnapstoreError, Unsafe
from snapstore.git.maintenance import fold, pack_builder, purge
from snapstore.git.objects.pack_writer import KEPT_BY
from snapstore.timeline.forget import forget as forgetting

# Kills.


def _prepared(root: Path) -> None:
    with Store.open(root, create=True, session="s1") as store:
        session = store.session("s1")
        turn(session, root, "One", a="1", key=SECRET)
        turn(session, root, f"Two {SECRET}", a="2")
        turn(session, root, "Three", key=SECRET + "3", b="3")
        session.move(session.plan_undo(1))


CALLS = ["rename", "unlink", "fsync", "openat", "write", "pwrite64", "mkdir", "rmdir"]


STEPS = {"openat": 40, "write": 5, "fsync": 4, "unlink": 9, "rename": 2}  # for the short run


@needs_strace
@pytest.mark.parametrize("call", CALLS)
def test_killed_anywhere_the_store_is_old_or_new(root: Path, tmp_path: Path, call: str) -> None:
    """G-37: whatever the moment, the next command finds all of it, or finishes, and nothing in between."""
    killed(root, tmp_path, call, STEPS.get(call, 1))


@needs_strace
@pytest.mark.deep
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_call_the_store_is_old_or_new(root: Path, tmp_path: Path, call: str) -> None:
    killed(root, tmp_path, call, 1)


def killed(root: Path, tmp_path: Path, call: str, step: int) -> None:
    _prepared(root)
    home = Path(os.environ["SNAPSTORE_HOME"])
    template = tmp_path / "template"
    shutil.copytree(home, template, symlinks=True)

    def again() -> None:
        shutil.rmtree(home)
        shutil.copytree(template, home, symlinks=True)

    def work() -> None:
        with Store.open(root, clock=lambda: 1_700_000_000.0) as store:
            forget(store, "key")

    with Store.open(root) as store:
        old = all_refs(store)
    work()  # also loads every module
    with Store.open(root) as store:
        assert_gone(store)
        new = all_refs(store)
    number, outcomes = 1, set()
    while True:
        again()
        struck = strike(work, call, number, "signal=SIGKILL")
        with Store.open(root) as store:
            found = all_refs(store)
            assert found in (old, new), (call, number)
            outcomes.add(found == new)
            if found == new:
                assert_gone(store)
                assert store.header.never_capture == ["/key"]
            else:
                assert_whole(store)
                assert store.header.never_capture == []
                forget(store, "key")  # it can be begun again
                assert_gone(store)
            turn(store.session("s1"), root, "On", z=str(number))
            assert_whole(store)
        (root / "z").unlink()
        if struck.status == 0:
            break
        number += step
    assert outcomes == {True, False} or call in ("rmdir", "mkdir", "unlink")


@needs_strace
def test_a_full_disk_half_way_is_finished_when_there_is_room(root: Path) -> None:
    _prepared(root)

    def work() -> None:
        with Store.open(root) as store:
            forget(store, "key")

    number, finished = 1, 0
    while strike(work, "rename", number, "error=ENOSPC", forever=True).status != 0:
        with Store.open(root) as store:  # finishes what was begun, if anything was
            assert_whole(store)
            finished += not holds(store, SECRET)
        if finished:
            break
        number += 1
    assert finished
    with Store.open(root) as store:
        assert_gone(store)


def _forgettable(root: Path, store: Store) -> None:
    for number in range(3):
        turn(store.session("s1"), root, f"Turn {number}", a=f"{number}", key=f"{SECRET} {number}")


def test_somebodys_git_that_packs_meanwhile_loses_nothing(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-17. It puts all into a pack of its own, which is removed like all that is not ours, and would remove ours."""
    _forgettable(root, store)
    git(store.shadow.git_dir, "repack", "-adfq")
    remove = purge._remove
    struck: list[str] = []

    def slowly(path: str) -> None:
        if path.endswith((".idx", ".pack")):
            git(store.shadow.git_dir, "repack", "-adfq")
            struck.append(path)
        remove(path)

    monkeypatch.setattr(purge, "_remove", slowly)
    forget(store, "key")
    assert struck
    assert_gone(store)
    assert len(line(store, "s1")) == 4
    assert not list(Path(store.shadow.objects.pack_folder).glob("*.keep"))


def test_a_git_that_was_at_it_before_and_makes_the_very_same_pack_loses_nothing(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes away packs that it saw at its beginning: none that it has seen may be one that is counted on."""
    _forgettable(root, store)
    show = purge.show

    def known_and_taken(base: str, target: str) -> None:
        before = set(Path(store.shadow.objects.pack_folder).iterdir())
        show(base, target)
        for path in before:
            path.unlink()

    forget(store, "key")
    monkeypatch.setattr(purge, "show", known_and_taken)
    with store.changing():
        forgetting.follow_up(store, forgetting.PURGE)  # packs the same once more, into the very same bytes
    assert_gone(store)
    assert len(line(store, "s1")) == 4


def test_the_old_packs_stay_where_the_new_ones_are_not(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took them away: the next command goes on from what there is."""
    _forgettable(root, store)
    show = purge.show

    def shown_and_gone(base: str, target: str) -> None:
        show(base, target)
        os.unlink(f"{target}.pack")

    with monkeypatch.context() as patch, pytest.raises(Interrupted, match="another program removed"):
        patch.setattr(purge, "show", shown_and_gone)
        forget(store, "key")
    store.close()
    said = snap(root, "recover").stdout
    assert "cannot be undone" in said and "--back" not in said
    assert "cannot be undone" in snap(root, "recover", "--back", status=2).stderr
    with Store.open(root) as again:
        again.recover()
        assert_gone(again)
        assert len(line(again, "s1")) == 4


def test_where_the_disk_has_no_room_nothing_is_changed_and_turns_go_on(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forgettable(root, store)
    before, refs = _below(store.shadow.objects.folder), all_refs(store)
    free = os.statvfs(store.folder)
    with monkeypatch.context() as patch, pytest.raises(Failed, match="MB are free on the disk"):
        patch.setattr(fold, "SPARE", (free.f_blocks + 1) * free.f_frsize)
        forget(store, "key")
    assert (_below(store.shadow.objects.folder), all_refs(store)) == (before, refs)
    turn(store.session("s1"), root, "Goes on", b="1")
    forget(store, "key")
    assert_gone(store)


@pytest.mark.parametrize("way", ["git", "ourselves"])
def test_an_object_that_is_damaged_stops_it_before_anything_is_changed(
    root: Path, store: Store, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or every command after it would try to finish, in vain."""
    if way == "ourselves":
        monkeypatch.setattr(forgetting, "_packing", lambda _: pack_builder.without_git)
    _forgettable(root, store)
    rotten = git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"rotten").decode().strip()
    git(store.shadow.git_dir, "update-ref", "refs/tags/s1/rotten", rotten)  # a turn would store it again
    loose = Path(store.shadow.objects.loose_path(bytes.fromhex(rotten)))
    loose.chmod(0o600)
    loose.write_bytes(zlib.compress(b"blob 6\0rotten")[:-6])
    refs = all_refs(store)
    with pytest.raises(SnapstoreError):
        forget(store, "key")
    assert all_refs(store) == refs
    assert not Path(store.shadow.objects.folder, purge.WORK).exists()
    turn(store.session("s1"), root, "Goes on", b="1")


@pytest.mark.parametrize("place", ["pack", "info", "info/commit-graphs", "7f"])
def test_a_link_in_the_store_is_refused_and_nothing_behind_it_is_touched(
    root: Path, store: Store, tmp_path: Path, place: str
) -> None:
    _forgettable(root, store)
    there = Path(store.shadow.objects.folder, place)
    mine = tmp_path / "mine"
    if there.exists():
        there.rename(mine)
    write(mine / "thesis", "all of it")
    there.symlink_to(mine)
    before, refs = _below(str(mine)), all_refs(store)
    with pytest.raises(Unsafe, match="is a link"):
        forget(store, "key")
    assert (_below(str(mine)), all_refs(store)) == (before, refs)
    turn(store.session("s1"), root, "Goes on", b="1")


def test_a_link_where_the_purge_works_is_not_followed(root: Path, store: Store, tmp_path: Path) -> None:
    _forgettable(root, store)
    write(tmp_path / "mine" / "thesis", "all of it")
    Path(store.shadow.objects.folder, purge.WORK).symlink_to(tmp_path / "mine")
    Path(store.shadow.git_dir, "ORIG_HEAD").symlink_to(tmp_path / "mine" / "thesis")
    shutil.rmtree(f"{store.shadow.git_dir}/logs", ignore_errors=True)
    Path(store.shadow.git_dir, "logs").symlink_to(tmp_path / "mine")
    forget(store, "key")
    assert (tmp_path / "mine" / "thesis").read_text() == "all of it"
    assert not Path(store.shadow.git_dir, "logs").is_symlink()
    assert_gone(store)


def test_folders_among_the_packs_go_too(root: Path, store: Store) -> None:
    """git keeps one of its indexes as a folder of files."""
    _forgettable(root, store)
    objects = Path(store.shadow.objects.folder)
    for place in ("pack/multi-pack-index.d", "3c/odd", "info/commit-graphs/odd", purge.WORK + "/pack"):
        write(objects / place / "file", SECRET)
    forget(store, "key")
    assert_gone(store)


def test_refused_while_a_push_is_at_work(root: Path, store: Store) -> None:
    """It will refer to what it has written without the store's lock."""
    _forgettable(root, store)
    pushing = subprocess.Popen(["sleep", "60"])
    try:
        written = Path(store.shadow.objects.pack_folder, "pack-" + "1" * 40 + ".keep")
        written.write_bytes(b"%s%d\n" % (KEPT_BY, pushing.pid))
        with pytest.raises(Busy, match="push"):
            forget(store, "key")
    finally:
        pushing.kill()
        pushing.wait()
    forget(store, "key")
    assert_gone(store)


def test_nobody_waits_at_what_is_only_called_like_the_mark_of_a_push(root: Path, store: Store) -> None:
    _forgettable(root, store)
    os.mkfifo(Path(store.shadow.objects.pack_folder, "pack-" + "2" * 40 + ".keep"))
    forget(store, "key")
    assert_gone(store)


def test_refused_while_the_git_of_a_killed_forget_is_still_at_work(root: Path, store: Store, tmp_path: Path) -> None:
    """It saw all that there was when it began, and leaves a pack of it behind."""
    _forgettable(root, store)
    turn(store.session("s1"), root, "More", other=f"other {SECRET}")
    slow = tmp_path / "bin" / "git"
    ready, go = tmp_path / "ready", tmp_path / "go"
    os.mkfifo(ready)
    os.mkfifo(go)
    git_program = shutil.which("git")
    write(slow, f'#!/bin/sh\necho $$ > {ready}\nread word < {go}\nexec {git_program} "$@"\n', executable=True)
    path = f"{slow.parent}:{os.environ['PATH']}"
    killed = subprocess.Popen(
        [sys.executable, "-m", "snapstore", "forget", "other", "--yes"],
        cwd=root,
        env={**os.environ, "PATH": path, "SNAPSTORE_DAEMON": "0"},  # a warm process would finish the work
    )
    orphan = int(ready.read_text())
    killed.kill()
    killed.wait()
    with pytest.raises(Busy, match="still at work"):
        forget(store, "key")
    snap(root, "gc")
    assert Path(store.shadow.objects.folder, purge.WORK).exists()
    watching = os.pidfd_open(orphan)
    go.write_text("on\n")
    select.select([watching], [], [])
    os.close(watching)
    forget(store, "key", "other")
    assert_gone(store)


def test_turns_begin_while_packs_are_made_and_go_before(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing takes long where there is much, and an agent that is asked something meanwhile waits for nobody."""
    _forgettable(root, store)
    before = all_refs(store)

    def pack(*arguments: Any) -> list[str]:
        snap(root, "turn", "begin", "-m", "Meanwhile", "--session", "s2", SNAPSTORE_LOCK_TIMEOUT="0")
        return pack_builder.without_git(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Busy, match="a turn is open in session s2"):
        patch.setattr(forgetting, "_QUICK", 0)
        patch.setattr(forgetting, "_packing", lambda _: pack)
        forget(store, "key")
    assert {name: oid for name, oid in all_refs(store).items() if "s2" not in name and "notes" not in name} == {
        name: oid for name, oid in before.items() if "notes" not in name
    }
    assert not Path(store.shadow.objects.folder, purge.WORK).exists()
    write(root / "more", "1")
    snap(root, "turn", "end", "--session", "s2")
    assert [commit["subject"] for commit in line(store, "s2")][-1] == "Meanwhile"
    assert_whole(store)
    forget(store, "key")
    assert_gone(store)
    assert [commit["subject"] for commit in line(store, "s2")][-1] == "Meanwhile"


def test_it_gives_way_to_turns_a_few_times_and_then_comes_to_its_end(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forgettable(root, store)
    asked: list[int] = []

    def pack(*arguments: Any) -> list[str]:
        asked.append(len(asked))
        if len(asked) <= 3:
            command = ["sh", "-c", f"echo {len(asked)} > more; echo {SECRET} {len(asked)} > key"]
            snap(root, "run", "-q", "-m", f"Meanwhile {len(asked)}", "--session", "s2", "--", *command)
        else:
            snap(root, "turn", "begin", "-m", "Waits", "--session", "s2", status=11, SNAPSTORE_LOCK_TIMEOUT="0")
        return pack_builder.without_git(*arguments)

    monkeypatch.setattr(forgetting, "_QUICK", 0)
    monkeypatch.setattr(forgetting, "_packing", lambda _: pack)
    forgotten = forget(store, "key")
    assert len(asked) == 4 and forgotten.never == store.header.never_capture == ["/key"]
    told = [commit["subject"] for commit in line(store, "s2")]
    assert [subject for subject in told if subject.startswith("Meanwhile")] == [f"Meanwhile {n}" for n in (1, 2, 3)]
    assert_gone(store)
    assert_cache_adds_up(store)


def test_whoever_only_looks_meanwhile_is_in_nobodys_way(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forgettable(root, store)

    def pack(*arguments: Any) -> list[str]:
        for command in ("log", "status", "tree", "branches", "du"):
            snap(root, command, SNAPSTORE_LOCK_TIMEOUT="0")
        return pack_builder.without_git(*arguments)

    monkeypatch.setattr(forgetting, "_QUICK", 0)
    monkeypatch.setattr(forgetting, "_packing", lambda _: pack)
    forget(store, "key")
    assert_gone(store)
    assert_cache_adds_up(store)


def test_packs_are_made_once(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _forgettable(root, store)
    calls: list[object] = []

    def pack(*arguments: Any) -> list[str]:
        calls.append(arguments)
        return pack_builder.without_git(*arguments)

    monkeypatch.setattr(forgetting, "_packing", lambda _: pack)
    forget(store, "key")
    assert len(calls) == 1
    assert_gone(store)


def _below(folder: str) -> list[Path]:
    return sorted(Path(folder).rglob("*"))
