"""File systems that lack something we use: slower, or refused with a clear error, and never wrong.

What is lacking is injected with strace, into real commands on a real store: `renameat2`, `syncfs`, hard links, syncs of
folders, locks. A command that succeeds has done all of its work; one that is refused has changed nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import faults
import pytest
from helpers import all_refs, assert_whole, git, git_in, needs_strace, on_disk, quick_folder, write
from machines import Machine, bare
from test_reordering import Scene

from snapstore import Store
from snapstore.worktree.write import atomic_swap

pytestmark = needs_strace

VERBS = ["end", "undo", "redo of many", "gc", "init"]
LINKS = ("link", "linkat")


def lacking(calls: Iterable[str], error: str, *rules: str) -> list[str]:
    """The rules with which strace makes calls fail, always."""
    names = ",".join(calls)
    return [*rules, "-e", f"trace={names}", "-e", f"inject={names}:error={error}"]


def run_without(stage: Scene, calls: Iterable[str], error: str, *rules: str) -> faults.Struck:
    """The command, and what must hold however it ends."""
    stage.reset()
    done = faults.Struck(stage.work, *lacking(calls, error, *rules)).wait()
    assert done.status in (faults.DONE, faults.REFUSED), done
    if done.status == faults.REFUSED:
        assert done.error["message"], done
        assert done.error["hint"], done
        if stage.verb == "init":
            assert stage.look() is None
            return done
    if stage.verb != "gc":
        assert stage.side() == ("new" if done.status == faults.DONE else "old")
    with stage.opened() as store:
        assert_whole(store)
    return done


@pytest.mark.parametrize("error", ["EINVAL", pytest.param("ENOSYS", marks=pytest.mark.deep)])
@pytest.mark.parametrize("verb", ["undo", pytest.param("redo of many", marks=pytest.mark.deep)])
def test_without_exchange_a_move_works(verb: str, error: str) -> None:
    with quick_folder() as folder:
        stage = Scene(folder, verb)
        assert run_without(stage, ["renameat2"], error).status == faults.DONE
        assert run_without(stage, ["renameat2", *LINKS], error).status == faults.DONE


@pytest.mark.parametrize("calls", [("renameat2",), ("renameat2", *LINKS)])
def test_without_exchange_nothing_that_came_meanwhile_is_replaced(tmp_path: Path, calls: tuple[str, ...]) -> None:
    """Between the last look at an empty place and the new file in it, somebody saved a file there."""
    for name in ("new", "link", "there"):
        write(tmp_path / name, name)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("nowhere")

    def work() -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        assert not atomic_swap.place(folder, b"new", folder, b"there")
        assert not atomic_swap.place(folder, b"link", folder, b"there")
        assert not atomic_swap.place(folder, b"new", folder, b"link")
        assert atomic_swap.place(folder, b"new", folder, b"free")
        assert atomic_swap.place(folder, b"link", folder, b"free link")

    done = faults.Struck(work, *lacking(calls, "EINVAL")).wait()
    assert done.status == faults.DONE, done
    assert on_disk(tmp_path) == {
        b"free": (b"100644", b"new"),
        b"free link": (b"120000", b"nowhere"),
        b"there": (b"100644", b"there"),
    }


@pytest.mark.parametrize("error", ["ENOSYS", pytest.param("EPERM", marks=pytest.mark.deep)])
def test_without_a_sync_of_file_systems_a_large_move_works(error: str) -> None:
    with quick_folder() as folder:
        stage = Scene(folder, "redo of many")
        done = run_without(stage, ["syncfs"], error)
        assert done.status == faults.DONE, done


@pytest.mark.parametrize("verb", ["end", "undo", *(pytest.param(verb, marks=pytest.mark.deep) for verb in VERBS[2:])])
def test_without_syncs_of_folders_commands_work(verb: str) -> None:
    """Some network file systems refuse them. Then everything is synced instead."""
    with quick_folder() as folder:
        stage = Scene(folder, verb)
        states = (stage.template, stage.trace.seen())
        folders = {path for state in states for path, node in state.items() if node.kind == "d"}
        files = {path for state in states for path, node in state.items() if node.kind != "d"}
        rules = [word for path in sorted(folders - files) for word in ("-P", os.fsdecode(path))]
        log = folder / "calls"
        stage.reset()
        traced = [*rules, "-e", "trace=fsync", "-e", "inject=fsync:error=EINVAL"]
        done = faults.Struck(stage.work, *traced, log=str(log)).wait()
        assert "EINVAL" in log.read_text(), "no sync of a folder was refused"
        assert done.status == faults.DONE, done
        if verb != "gc":
            assert stage.side() == "new"
        with stage.opened() as store:
            assert_whole(store)


@pytest.mark.parametrize(
    "error", ["ENOLCK", *(pytest.param(e, marks=pytest.mark.deep) for e in ("ENOSYS", "EOPNOTSUPP"))]
)
@pytest.mark.parametrize(
    "verb", ["end", "init", *(pytest.param(verb, marks=pytest.mark.deep) for verb in ("undo", "gc"))]
)
def test_without_locks_everything_that_writes_is_refused(verb: str, error: str) -> None:
    with quick_folder() as folder:
        stage = Scene(folder, verb)
        done = run_without(stage, ["flock"], error)
        assert done.status == faults.REFUSED, done
        assert "lock" in done.error["message"], done
        assert "SNAPSTORE_HOME" in done.error["hint"], done


@pytest.mark.parametrize(
    "error", ["EPERM", *(pytest.param(e, marks=pytest.mark.deep) for e in ("EMLINK", "EXDEV", "EOPNOTSUPP"))]
)
def test_without_hard_links_a_store_is_made_of_a_checkout(root: Path, tmp_path: Path, error: str) -> None:
    write(root / "file", "tracked")
    write(root / "folder/other", "tracked too")
    git_in(root, "init", "-q")
    git_in(root, "add", ".")
    git_in(root, "-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "-qm", "first")

    def make() -> None:
        Store.open(root, create=True, home=str(tmp_path / "stores")).close()

    make()  # all that it needs is loaded
    shutil.rmtree(tmp_path / "stores")
    done = faults.Struck(make, *lacking(LINKS, error)).wait()
    assert done.status == faults.DONE, done
    shutil.rmtree(root / ".git")
    with Store.open(root, home=str(tmp_path / "stores")) as store:
        assert_whole(store)
        (root / "file").unlink()
        session = store.session("main")
        session.begin("gone").end()
    assert on_disk(root) == {b"folder/other": (b"100644", b"tracked too")}


@pytest.mark.parametrize(("calls", "error"), [(LINKS, "EPERM"), (["flock"], "ENOLCK")])
def test_a_push_into_a_folder_without_links_or_locks_is_done_or_refused(
    tmp_path: Path, calls: list[str], error: str
) -> None:
    """git, which writes there, needs neither; the store cannot take down without locks what was pushed, so the push is
    refused at its end, and the next one finds it all there."""
    hub = bare(tmp_path / "hub.git")
    machine = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    machine.turn("Add violets", poem="roses\nviolets\n")
    machine.push()
    machine.turn("Add a title", title="Poem\n")
    before = all_refs(hub)
    done = faults.Struck(machine.push, *lacking(calls, error)).wait()
    assert done.status in (faults.DONE, faults.REFUSED), done
    assert all_refs(hub) != before or done.status == faults.REFUSED
    assert not [str(path) for path in Path(hub).rglob("*.lock")]
    git(hub, "fsck", "--strict")
    machine.push()
    assert all_refs(hub) != before
