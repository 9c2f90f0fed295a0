"""The first snapshot of a git checkout: blobs are taken over where that is right, else read; in one process or two."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from helpers import assert_equal, assert_whole, git_in, on_disk, tip, write

from snapstore import Store
from snapstore.base.platform import TICK_NS
from snapstore.worktree.scan import scan, two_processes


@pytest.fixture
def checkout(root: Path) -> Path:
    """A project with two hundred files in forty folders, committed and packed, and old enough to be believed."""
    git_in(root, "init", "-q")
    for number in range(200):
        write(root / f"part{number % 40}" / f"file{number}.txt", f"{number}\n" * (number + 1))
    write(root / "tool", "#!/bin/sh\n", executable=True)
    commit(root)
    return root


def commit(root: Path) -> None:
    git_in(root, "add", "-A")
    git_in(root, "commit", "-q", "-m", "all")
    git_in(root, "gc", "-q")
    settle(root)


def settle(root: Path) -> None:
    """The index is written once more, a clock tick after the files: none of them is racy then."""
    newest = max(os.lstat(path).st_mtime_ns for path in root.rglob("*") if ".git" not in path.parts)
    while time.time_ns() < newest + 3 * TICK_NS:
        os.sched_yield()
    write(root / "settled", str(newest))
    git_in(root, "add", "settled")


def baseline(root: Path) -> Store:
    store = Store.open(root, create=True)
    assert_equal(store, tip(store, "shell"), on_disk(root))
    assert_whole(store)
    return store


def borrowed(store: Store) -> list[str]:
    folder = Path(store.shadow.objects.pack_folder)
    return [path.name for path in folder.glob("*.pack") if path.stat().st_nlink > 1]


def stored(store: Store) -> int:
    """Objects that the store had to write itself."""
    return sum(pack.count() for pack in store.shadow.objects.packs() if os.stat(f"{pack.base}.pack").st_nlink == 1)


@pytest.fixture(params=["one process", "two processes"])
def processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Large trees are looked at by two processes; here the small ones are too."""
    if request.param == "two processes":
        monkeypatch.setattr(scan, "WORTH_IT", 1)
        monkeypatch.setattr(scan, "SPREAD", 4)
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return str(request.param)


def test_a_clean_checkout_is_borrowed_whole_and_turns_go_on(checkout: Path, processes: str) -> None:
    write(checkout / "part3" / "dirty.txt", "new\n")
    write(checkout / "part3" / "file3.txt", "edited\n")
    write(checkout / "part7" / ".gitignore", "*.log\n")
    write(checkout / "part7" / "x.log", "ignored\n")
    os.unlink(checkout / "part7" / "x.log")
    (checkout / "part9" / "file9.txt").unlink()
    with baseline(checkout) as store:
        assert len(borrowed(store)) == 1
        assert stored(store) < 20  # the new files, the folders above them, the commit
        with store.session("s").turn("more"):
            write(checkout / "part3" / "file43.txt", "more\n")
            write(checkout / "part50" / "deep" / "down", "new\n")
            (checkout / "part5" / "file5.txt").unlink()
        assert_equal(store, tip(store, "s"), on_disk(checkout))
        assert_whole(store)


def test_a_helper_process_that_is_killed_costs_only_time(
    checkout: Path, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fork

    def struck() -> int:
        pid = real()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return pid

    monkeypatch.setattr(two_processes.os, "fork", struck)
    with baseline(checkout) as store, store.session("s").turn("go on"):
        write(checkout / "part1" / "file1.txt", "changed\n")
    with Store.open(checkout) as store:
        assert_equal(store, tip(store, "s"), on_disk(checkout))


def test_a_filter_that_is_gone_and_kept_the_size_is_not_believed_G_34(root: Path) -> None:
    """Checked out under `filter=`, then the attribute went: the file looks clean, and is not its blob."""
    git_in(root, "init", "-q")
    git_in(root, "config", "filter.turn.clean", "tr a-z b-za")
    git_in(root, "config", "filter.turn.smudge", "tr b-za a-z")
    write(root / "a.txt", "hello\n")
    commit(root)
    git_in(root, "commit", "-q", "-m", "settled")
    git_in(root, "branch", "plain")
    write(root / ".gitattributes", "*.txt filter=turn\n")
    git_in(root, "add", ".gitattributes")
    git_in(root, "commit", "-q", "-m", "attributes")
    (root / "a.txt").unlink()
    git_in(root, "checkout", "-q", "--", "a.txt")
    settle(root)
    git_in(root, "commit", "-q", "-m", "settled again")
    git_in(root, "checkout", "-q", "plain")
    settle(root)
    assert (root / "a.txt").read_text() == "gdkkn\n"
    baseline(root).close()


def test_a_pointer_of_the_size_of_its_file_is_not_believed_G_34(root: Path) -> None:
    """git-lfs sits in many people's configuration; only files as small as its pointers are read for that."""
    git_in(root, "init", "-q")
    git_in(root, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    write(root / "small", "x" * 130)
    write(root / "large", "x" * 5000)
    commit(root)
    with baseline(root) as store:
        assert len(borrowed(store)) == 1


def test_a_damaged_pack_of_the_user_is_not_borrowed(checkout: Path) -> None:
    """The file on disk is the only good copy then, and it is the one that is stored."""
    (pack,) = (checkout / ".git" / "objects" / "pack").glob("*.pack")
    os.chmod(pack, 0o644)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    with baseline(checkout) as store:
        assert borrowed(store) == []


def test_a_pack_that_is_not_only_ours_to_write_is_not_borrowed(checkout: Path) -> None:
    (pack,) = (checkout / ".git" / "objects" / "pack").glob("*.pack")
    os.chmod(pack, 0o666)
    with baseline(checkout) as store:
        assert borrowed(store) == []


def test_loose_objects_are_borrowed_one_by_one(root: Path) -> None:
    git_in(root, "init", "-q")
    for number in range(20):
        write(root / f"file{number}", f"{number}\n" * 100)
    git_in(root, "add", "-A")
    git_in(root, "-c", "gc.auto=0", "commit", "-q", "-m", "loose")
    settle(root)
    with baseline(root) as store:
        linked = [path for path in Path(store.shadow.objects.folder).glob("??/*") if path.stat().st_nlink > 1]
        assert len(linked) >= 15


def test_the_store_outlives_the_whole_repository_it_borrowed_from_G_17(checkout: Path) -> None:
    with baseline(checkout) as store:
        before = on_disk(checkout)
        git_in(checkout, "checkout", "-q", "--orphan", "other")
        git_in(checkout, "rm", "-rq", "--cached", ".")
        git_in(checkout, "reflog", "expire", "--expire=now", "--all")
        git_in(checkout, "gc", "-q", "--prune=now")
        assert_equal(store, tip(store, "shell"), before)
        assert_whole(store)
