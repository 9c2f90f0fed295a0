"""The moves: undo of few and of many files, after few and after many turns, as a call and as a process; the tree."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from snapstore import Session, Store
from snapstore.git.objects import commits
from snapstore.git.objects.ids import COMMIT
from snapstore.git.repository import SNAPSTORE

FEW, MANY = 10, 10_000  # turns
REACH = {7000: 15.0, 60000: 30.0}


class Bench(Protocol):
    work: Path

    def add(self, work: str, size: int, ours: float, git: float, reach: float | None) -> None: ...
    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool) -> None: ...
    def forget(self) -> None: ...


Median = Callable[..., float]


class Git:
    """Two states of the same files in a repository of git's own, and the way between them."""

    def __init__(self, git_dir: Path, tree: Path) -> None:
        shutil.rmtree(git_dir, ignore_errors=True)
        self._base = ["git", f"--git-dir={git_dir}", f"--work-tree={tree}"]
        self._tree = tree
        subprocess.run(["git", "init", "-q", "--bare", str(git_dir)], check=True)
        self._states: list[str] = []

    def snapshot(self) -> None:
        self("add", "-A")
        self._states.append(self("commit-tree", self("write-tree"), "-m", "state"))
        self("update-ref", "refs/heads/main", self._states[-1])

    def refresh(self) -> None:
        """Others wrote the files meanwhile."""
        self("update-index", "-q", "--refresh")

    def undo(self) -> None:
        old, new = self._states[-1], self._states[-2]
        self("read-tree", "-m", "-u", old, new)
        self("update-ref", "refs/heads/main", new, old)

    def redo(self) -> None:
        new, old = self._states[-1], self._states[-2]
        self("read-tree", "-m", "-u", old, new)
        self("update-ref", "refs/heads/main", new)

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run([*self._base, *arguments], cwd=self._tree, check=True, capture_output=True, text=True)
        return done.stdout.strip()


def moves(bench: Bench, median: Median, tree: Path, size: int) -> None:
    """Undo of a turn of three files, and of one of two thousand; each undo is followed by a redo, unmeasured."""
    files = sorted(path for path in tree.rglob("*.*") if path.is_file())
    git = Git(bench.work / "moves.git", tree)
    bench.forget()
    with Store.open(tree, create=True) as store:
        session = store.session("bench")
        git.snapshot()
        _turns(session, files, FEW)
        git.snapshot()
        _turns(session, files, 1)
        git.snapshot()
        ours = _undo(session, median, 25)
        git.refresh()
        theirs = median(git.undo, git.redo, 15)
        git.redo()
        bench.add("undo of 3 files", size, ours, theirs, REACH.get(size))
        if size == 7000:
            _turns(session, files, 1, each=2000)
            git.snapshot()
            ours = _undo(session, median, 9)
            git.refresh()
            theirs = median(git.undo, git.redo, 9)
            git.redo()
            bench.note("undo of 2,000 files", size, ours, theirs, ours / theirs, "<= 1.5", ours / theirs <= 1.5)
            process(bench, median, session, tree, size)
    if size == 500:
        long_history(bench, median, tree, files)


def process(bench: Bench, median: Median, session: Session, tree: Path, size: int) -> None:
    command = [str(Path(sys.executable).with_name("snapstore"))]
    _turns(session, sorted(path for path in tree.rglob("*.*") if path.is_file()), 3)

    def run(*words: str) -> None:
        subprocess.run([*command, *words, "--session", "bench"], cwd=tree, check=True, capture_output=True)

    ours = median(lambda: run("undo"), lambda: run("redo", "--all"), 15)
    bare = median(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True), runs=15)
    bench.note("`undo` process, bare starts", size, ours, bare, ours / bare, "<= 10", ours / bare <= 10)


def long_history(bench: Bench, median: Median, tree: Path, files: list[Path]) -> None:
    """The same undo after ten turns and after ten thousand."""
    bench.forget()
    with Store.open(tree, create=True) as store:
        session = store.session("bench")
        _turns(session, files, FEW)
        few = _undo(session, median, 25)
        session.move(session.plan_redo(None))
        _turns(session, files, MANY - FEW)
        many = _undo(session, median, 25)
        bench.note("undo after 10,000 turns", len(files), many, few, many / few, "<= 1.5", many / few <= 1.5)
    far(bench, median, tree, len(files))


def far(bench: Bench, median: Median, tree: Path, size: int) -> None:
    """`goto` across all those turns against `undo` of one, and the first lines of `log`: each as a process."""
    command = [str(Path(sys.executable).with_name("snapstore"))]

    def run(*words: str) -> None:
        subprocess.run([*command, *words, "--session", "bench"], cwd=tree, check=True, capture_output=True)

    def first_line() -> None:
        log = subprocess.Popen([*command, "log", "--session", "bench"], cwd=tree, stdout=subprocess.PIPE)
        assert log.stdout is not None
        with log.stdout:
            assert log.stdout.readline()
        log.wait()

    last = str(MANY)
    one = median(lambda: run("undo", "-y"), lambda: run("goto", last, "-y"), 9)
    all_of_them = median(lambda: run("goto", str(FEW), "-y"), lambda: run("goto", last, "-y"), 5)
    bench.note(
        "`goto` across 10,000, in undos", size, all_of_them, one, all_of_them / one, "<= 10", all_of_them <= 10 * one
    )
    status, line = median(lambda: run("status"), runs=9), median(first_line, runs=9)
    bench.note("first line of `log`, in statuses", size, line, status, line / status, "<= 3", line <= 3 * status)


def tree_of_many(bench: Bench, median: Median) -> None:
    """`tree --all --json` of 10,000 turns in 500 branches, against `git log --graph --all --oneline`."""
    folder = bench.work / "many"
    folder.mkdir()
    bench.forget()
    with Store.open(folder, create=True, session="bench") as store:
        plant(store, 10_000, 500)
        git_dir = store.shadow.git_dir
    ours = [str(Path(sys.executable).with_name("snapstore")), "tree", "--all", "--json", "--session", "bench"]
    theirs = ["git", f"--git-dir={git_dir}", "log", "--graph", "--all", "--oneline"]

    def timed(command: list[str]) -> float:
        return median(lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL), runs=9)

    timed(ours)
    mine, git = timed(ours), timed(theirs)
    bench.note("`tree --all --json`", 10_000, mine, git, mine / git, "<= 3", mine / git <= 3)


def _undo(session: Session, median: Median, runs: int) -> float:
    def redo() -> None:
        session.move(session.plan_redo(None))

    time = median(lambda: session.move(session.plan_undo()), redo, runs)
    redo()
    return time


def _turns(session: Session, files: list[Path], count: int, each: int = 3) -> None:
    chance = random.Random(count)
    for number in range(count):
        turn = session.begin(f"turn {number}")
        chosen = chance.sample(files, each)
        turn.touch(*chosen)
        for path in chosen:
            with path.open("a") as file:
                file.write(f"# {chance.random()}\n")
        turn.end()


def plant(store: Store, turns: int, branches: int) -> None:
    """A large tree of turns without their files: each branch goes on from somewhere in the one before."""
    shadow, session = store.shadow, "bench"
    base = shadow.refs.read(f"refs/heads/{session}/main")
    assert base is not None
    tree, writer = shadow.commit(base).tree, shadow.objects.writer()
    author = commits.Identity("agent", "agent@snapstore")
    length, seq, line, rows = turns // branches, 0, [base], []
    for branch in range(branches):
        for _ in range(length):
            seq += 1
            trailers = {"Kind": "turn", "Session": session, "Turn": len(line), "Seq": seq, "Agent": "agent"}
            text = commits.message(f"Change number {seq} of the thing", [("M", b"src/module.py")], trailers)
            data = commits.encode(tree, [line[-1]], author, SNAPSTORE, 1_700_000_000 + 30 * seq, text)
            line.append(writer.add(COMMIT, data))
        rows.append(f"{line[-1].hex()} refs/heads/{session}/main{f'-{branch + 1}' if branch else ''}\n")
        line = line[: max(1, len(line) - (7 * branch) % (2 * length) - 3)]
    shadow.objects.release(shadow.objects.finish(writer))
    os.unlink(f"{shadow.git_dir}/refs/heads/{session}/main")
    with open(f"{shadow.git_dir}/packed-refs", "w") as file:
        file.write("# pack-refs with: peeled fully-peeled sorted \n" + "".join(sorted(rows, key=lambda row: row[41:])))
