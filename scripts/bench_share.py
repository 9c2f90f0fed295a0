"""The part of the benchmark for remotes: `scripts/bench share`, with folders on this disk.

One turn is pushed and pulled in two ways, each against git's process: by the library on an open store, as the other
benchmarks measure, and by the command with a warm process, as people run it.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from bench_hook import place

from snapstore import Store
from snapstore.share.pull import pull
from snapstore.share.push import push
from snapstore.share.remotes import Remotes

ROUNDS = 15
FIRST = 5


class Bench(Protocol):
    work: Path

    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool) -> None: ...
    def forget(self) -> None: ...


def share(bench: Bench, tree: Path, size: int) -> None:
    """First push of a borrowed baseline, then turns one by one: pushed, and pulled on a second machine; each against
    `git push` and `git fetch` of the same commits between repositories that hold nothing else."""
    bench.forget()
    if not (tree / ".git").exists():
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"], ["repack", "-adq"]):
            subprocess.run(["git", "-c", "gc.auto=0", *words], cwd=tree, check=True, capture_output=True)
    with Store.open(tree, create=True, session="bench") as store, place(True) as environment:
        _Run(bench, tree, size, store, environment).all()


class _Run:
    def __init__(self, bench: Bench, tree: Path, size: int, store: Store, environment: dict[str, str]) -> None:
        self.bench, self.tree, self.size, self.store = bench, tree, size, store
        self.git_dir = store.shadow.git_dir
        self.ours, self.theirs = bench.work / "ours.git", bench.work / "theirs.git"
        self.environment = environment
        self.second = {**environment, "SNAPSTORE_HOME": str(bench.work / "second")}
        self.times: dict[str, list[float]] = {}

    def all(self) -> None:
        try:
            for at in range(FIRST):
                self.first(at)
            self.add("first push, borrowed baseline", "first push", "git first push", 1.0)
            self.clone()
            for at in range(2 * ROUNDS):
                self.round(at, "in process" if at % 2 else "warm command")
            for how in ("in process", "warm command"):
                self.add(f"push of one turn, {how}", f"push, {how}", "git push", 1.6)
                self.add(f"pull of one turn, {how}", f"pull, {how}", "git fetch", 1.6)
        finally:
            for folder in (self.ours, self.theirs, self.bench.work / "second", self.bench.work / "mirror.git"):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(self.bench.work / "checkout", ignore_errors=True)

    def first(self, at: int) -> None:
        for hub in (self.ours, self.theirs):
            shutil.rmtree(hub, ignore_errors=True)
            subprocess.run(["git", "init", "-q", "--bare", hub], check=True)
        if at == 0:
            self.snapstore("remote", "add", "origin", str(self.ours))
        os.sync()
        self.timed("first push", lambda: self.snapstore("push", "-q"))
        os.sync()
        self.timed("git first push", lambda: self.git_push())

    def clone(self) -> None:
        """The second machine, and a bare repository that git fetches into."""
        self.snapstore("clone", "-q", str(self.ours), str(self.bench.work / "checkout"), environment=self.second)
        self.mirror = self.bench.work / "mirror.git"
        subprocess.run(["git", "clone", "-q", "--mirror", self.theirs, self.mirror], check=True)

    def round(self, at: int, how: str) -> None:
        chance = random.Random(at)
        session = self.store.session("bench")
        files = sorted(path for path in self.tree.rglob("*.*") if path.is_file() and ".git" not in path.parts)
        with session.turn(f"turn {at}") as turn:
            chosen = chance.sample(files, 3)
            turn.touch(*chosen)
            for path in chosen:
                path.write_text(path.read_text() + f"# {chance.random()}\n")
        pair: list[Callable[[], None]] = [
            lambda: self.timed(f"push, {how}", lambda: self.push(how)),
            lambda: self.timed("git push", lambda: self.git_push()),
        ]
        for work in pair if at % 4 < 2 else reversed(pair):
            work()
        self.pull(how)
        fetch = ["git", f"--git-dir={self.mirror}", "fetch", "-q", "origin"]
        self.timed("git fetch", lambda: subprocess.run(fetch, check=True, capture_output=True))

    def push(self, how: str) -> None:
        if how == "in process":
            push(self.store, Remotes(self.store).find(None))
        else:
            self.snapstore("push", "-q")

    def pull(self, how: str) -> None:
        checkout = self.bench.work / "checkout"
        if how == "in process":
            with Store.open(checkout, home=self.second["SNAPSTORE_HOME"]) as store:
                self.timed(f"pull, {how}", lambda: pull(store, Remotes(store).find(None)))
        else:
            work = lambda: self.snapstore("pull", "-q", folder=checkout, environment=self.second)  # noqa: E731
            self.timed(f"pull, {how}", work)

    def git_push(self) -> None:
        command = ["git", f"--git-dir={self.git_dir}", "push", "-q", str(self.theirs), "refs/heads/bench/main"]
        subprocess.run(command, check=True, capture_output=True)

    def snapstore(self, *words: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> None:
        command = [str(Path(sys.executable).with_name("snapstore")), *words]
        done = subprocess.run(
            command, cwd=folder or self.tree, env=environment or self.environment, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.stderr.decode()}")

    def timed(self, name: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        self.times.setdefault(name, []).append((time.perf_counter() - start) * 1000)

    def add(self, work: str, ours: str, git: str, most: float) -> None:
        """Note how many times git's time ours is."""
        mine, other = statistics.median(self.times[ours]), statistics.median(self.times[git])
        self.bench.note(work, self.size, mine, other, mine / other, f"<= {most}", mine <= most * other)
