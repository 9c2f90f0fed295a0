"""The part of the benchmark for keeping a store small: `scripts/bench keep`."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from snapstore import Store

TURNS = 1000


class Bench(Protocol):
    work: Path

    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool) -> None: ...
    def forget(self) -> None: ...


def keep(bench: Bench, tree: Path, size: int) -> None:
    """A thousand turns of three named files, then `snapstore gc` as a process against `git repack -adF`, each on a
    store of its own; with git's help and without."""
    bench.forget()
    stores = bench.work / "stores"
    files = sorted(path for path in tree.rglob("*.*") if path.is_file() and ".git" not in path.parts)
    _record(tree, files)
    took: dict[str, float] = {}
    left: dict[str, int] = {}
    tidy = {**os.environ, "SNAPSTORE_HOME": str(bench.work / "kept")}
    nowhere = bench.work / "no-programs"
    nowhere.mkdir(exist_ok=True)
    for name in ("git", "ours", "alone"):
        home = bench.work / "kept"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(stores, home, symlinks=True)
        git_dir = next(home.glob("*/store.git"))
        command = [sys.executable, "-m", "snapstore", "gc", "-q"]
        environment = tidy if name != "alone" else {**tidy, "PATH": str(nowhere)}
        if name == "git":
            command = ["git", "-C", str(git_dir), "repack", "-adFq"]
        start = time.perf_counter()
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
        took[name] = (time.perf_counter() - start) * 1000
        left[name] = sum(path.stat().st_size for path in (git_dir / "objects").rglob("*") if path.is_file())
    work = f"gc of {TURNS:,} turns"
    for name, text in (("ours", work), ("alone", f"{work}, without git")):
        ratio = took[name] / took["git"]
        bench.note(text, size, took[name], took["git"], ratio, "<= 2", ratio <= 2)
        ratio = left[name] / left["git"]
        bench.note(f"{text}, KB", size, left[name] / 1024, left["git"] / 1024, ratio, "<= 1.2", ratio <= 1.2)


def _record(tree: Path, files: list[Path]) -> None:
    chance = random.Random(11)
    with Store.open(tree, create=True) as store:
        store.configure(gc_auto=False)
        session = store.session("bench")
        for number in range(TURNS):
            chosen = chance.sample(files, 3)
            session.begin(f"turn {number}")
            session.touch(chosen)
            for path in chosen:
                with path.open("a") as file:
                    file.write(f"# {chance.random()}\n")
            session.end()
