"""gc and prune killed at any call of the system (TESTING 1): nothing is lost, the next command works (G-16, G-37)."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import DONE, Work, count, strike
from helpers import all_refs, assert_equal, assert_whole, git, needs_strace, on_disk, quick_folder, tip, turn, write

from snapstore import Store
from snapstore.timeline.maintenance import auto, gc
from snapstore.timeline.maintenance.prune import DAY
from snapstore.timeline.moves.branches import Branches

pytestmark = needs_strace

START = 1_700_000_000.0
CALLS = ("openat", "write", "pwrite64", "fsync", "rename", "unlink", "mkdir", "rmdir", "fchmod", "utimensat")
TORN = ("ENOSPC", "EIO")
DOINGS = ("gc with git", "gc by ourselves", "gc that forgets", "prune")


class Lab:
    """One store that has something to pack, to drop, to prune and to forget; copied for every run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.template = folder / "template"
        self.now = START
        self.runs = 0
        self.saved: dict[str, dict[bytes, tuple[bytes, bytes]]] = {}
        with Store.open(self._made_root(), create=True, home=str(self.template), clock=lambda: self.now) as store:
            session = store.session("s")
            for number in range(4):
                commit = turn(session, self.root, f"turn {number}", file=f"{number}\n" * 50, **{f"sub__{number}": "x"})
                self.saved[commit] = on_disk(self.root)
            for name in ("forgotten", "archived"):
                session.move(session.plan_undo(1))
                turn(session, self.root, name, file=name * 100)
                branch = str(store.shadow.refs.value("refs/snapstore/cursor/s")).rpartition("/")[2]
                session.move(session.plan_switch("main"))
                Branches(session).rename(branch, name)
                Branches(session).archive(name)
                if name == "forgotten":
                    self.now += 100 * DAY
                    auto.prune(store)
            self.now += 100 * DAY
            git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"nobody's")
            git(store.shadow.git_dir, "tag", "-a", "-m", "loose", "s/loose", tip(store, "s"))
        then = time.time() - 30 * DAY
        for path in self.template.rglob("objects/*/*"):
            os.utime(path, (then, then))

    def _made_root(self) -> Path:
        write(self.root / "file", "0")
        write(self.root / "sub/deep/file", "0")
        return self.root

    def copy(self) -> Path:
        self.runs += 1
        home = self.folder / f"home-{self.runs}"
        shutil.copytree(self.template, home, symlinks=True)
        return home

    def open(self, home: Path) -> Store:
        return Store.open(self.root, home=str(home), clock=lambda: self.now)

    def doing(self, what: str, home: Path) -> Callable[[], object]:
        def do() -> None:
            with self.open(home) as store:
                if what == "prune":
                    auto.prune(store)
                else:
                    by = "" if what == "gc by ourselves" else None
                    gc.collect(store, git=by, grace=0, pruned_grace=0 if what == "gc that forgets" else 10**9)

        return do

    def check(self, what: str, home: Path, old: dict[str, str], new: dict[str, str], struck: Work) -> None:
        """Nothing is lost, what happened is all or nothing, and the next one brings it to its end."""
        with self.open(home) as store:
            refs = all_refs(store)
            assert refs in (old, new), (what, struck)
            for commit, files in self.saved.items():
                assert_equal(store, commit, files)
            assert_whole(store)
            for path in Path(store.shadow.objects.pack_folder).iterdir():
                os.utime(path, (START, START))  # what might be a living git's is left alone for an hour
            self.doing(what, home)()
            store.shadow.objects.reload()
            assert {name for name in all_refs(store) if "notes" not in name} == {
                name for name in new if "notes" not in name
            }
            if what != "prune":
                names = {path.name for path in Path(store.shadow.objects.folder).iterdir()}
                assert names <= {"pack", "info"}, names
                packs = sorted(path.name for path in Path(store.shadow.objects.pack_folder).iterdir())
                assert len(packs) == 2, packs
            assert_whole(store)
            commit = store.session("s").begin("goes on").end()
            assert_equal(store, commit, on_disk(self.root))
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with quick_folder() as folder:
        yield Lab(folder)


@pytest.fixture(scope="module")
def ends(lab: Lab) -> dict[str, tuple[dict[str, str], dict[str, str], dict[str, int]]]:
    """For each doing, the refs before and after it, and how often it makes each call."""
    found = {}
    for what in DOINGS:
        home = lab.copy()
        with lab.open(home) as store:
            old = all_refs(store)
        lab.doing(what, home)()
        with lab.open(home) as store:
            new = all_refs(store)
        counted = count(lab.doing(what, lab.copy()), CALLS, lab.folder / "strace.log")
        found[what] = (old, new, counted)
    return found


Ends = dict[str, tuple[dict[str, str], dict[str, str], dict[str, int]]]


def run(lab: Lab, ends: Ends, what: str, call: str, number: int, how: str) -> Work:
    home = lab.copy()
    struck = strike(lab.doing(what, home), call, number, how)
    lab.check(what, home, ends[what][0], ends[what][1], struck)
    return struck


def chosen(total: int, most: int) -> list[int]:
    """Some of them, from the first to the last."""
    return sorted({1 + at * (total - 1) // max(most - 1, 1) for at in range(most)}) if total else []


@pytest.mark.parametrize("what", DOINGS)
def test_killed_here_and_there_it_loses_nothing(lab: Lab, ends: Ends, what: str) -> None:
    killed = 0
    for call in ("rename", "unlink", "fsync", "write"):
        for number in chosen(ends[what][2].get(call, 0), 3):
            killed += run(lab, ends, what, call, number, "signal=SIGKILL").status != DONE
    assert killed > 3


@pytest.mark.deep
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", DOINGS)
def test_killed_at_every_call_it_loses_nothing(lab: Lab, ends: Ends, what: str, call: str) -> None:
    for number in range(1, ends[what][2].get(call, 0) + 1):
        if run(lab, ends, what, call, number, "signal=SIGKILL").status == DONE:
            break  # no process makes that many


@pytest.mark.deep
@pytest.mark.parametrize("error", TORN)
@pytest.mark.parametrize("what", DOINGS)
def test_where_a_call_fails_it_loses_nothing(lab: Lab, ends: Ends, what: str, error: str) -> None:
    for call in ("write", "pwrite64", "fsync", "rename", "unlink", "openat"):
        for number in chosen(ends[what][2].get(call, 0), 12):
            run(lab, ends, what, call, number, f"error={error}")


def test_a_kill_between_the_packs_is_taken_up_by_the_next(lab: Lab, ends: Ends) -> None:
    """After each of its own unlinks: old and new side by side is the same twice, and no more."""
    what = "gc by ourselves"
    for number in chosen(ends[what][2]["unlink"], 5):
        assert run(lab, ends, what, "unlink", number, "signal=SIGKILL").status != DONE
