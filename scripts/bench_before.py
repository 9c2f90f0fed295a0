"""The part of the benchmark for another checkout: `scripts/bench before --before CHECKOUT`.

One process per checkout works on a tree of its own, made alike. Both do each piece of work in turns, so that a busy
machine is equally busy for both. Two ratios are printed: by the clock, and by processor time (without the disk).
This file is also the program of those processes, so it imports nothing of ours but what both versions offer.
"""

from __future__ import annotations

import json
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

ROUNDS = {"first": 5, "turn": 25, "undo": 25, "undo many": 7}
MANY = 2000
AGE = 0.05  # seconds between the last write and the end of the turn: a file that has just changed is read twice
REACH = {"first": 1.2, "turn": 1.3, "undo": 1.3, "undo many": 1.0}
WORDS = {
    "first": "first snapshot, plain folder",
    "turn": "end of a turn, 3 named files",
    "undo": "undo of 3 files",
    "undo many": f"undo of {MANY:,} files",
}


class Bench(Protocol):
    work: Path

    def note(
        self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool | None
    ) -> None: ...


def compare(bench: Bench, make_tree: Callable[[Path, int], None], size: int, before: str) -> None:
    """Note how many times the other checkout's time ours is."""
    sides = [_Side(bench.work / name, python, make_tree, size) for name, python in _pythons(before)]
    try:
        for work in WORDS:
            if work == "undo many" and size != 7000:
                continue
            times: list[list[tuple[float, float]]] = [[], []]
            for number in range(ROUNDS[work]):
                for at in (0, 1) if number % 2 else (1, 0):
                    times[at].append(sides[at].do(work))
            for column, unit in enumerate(("clock", "processor")):
                ours, theirs = (statistics.median(row[column] for row in side) for side in times)
                reach = REACH[work] if unit == "clock" else None
                said = f"<= {reach}" if reach else "-"
                bench.note(
                    f"{WORDS[work]}, of before, {unit}",
                    size,
                    ours,
                    theirs,
                    ours / theirs,
                    said,
                    ours <= reach * theirs if reach else None,
                )
    finally:
        for side in sides:
            side.close()
            shutil.rmtree(side.folder)


def _pythons(before: str) -> list[tuple[str, str]]:
    return [("ours", sys.executable), ("before", f"{before}/.venv/bin/python")]


class _Side:
    """One checkout at work in a process of its own."""

    def __init__(self, folder: Path, python: str, make_tree: Callable[[Path, int], None], size: int) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "tree").mkdir()
        make_tree(folder / "tree", size)
        self._process = subprocess.Popen(
            [python, "-P", __file__, str(folder / "tree")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SNAPSTORE_HOME": str(folder / "stores")},
        )

    def do(self, work: str) -> tuple[float, float]:
        """Let it do a piece of work; return milliseconds by the clock and of the processor."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        clock, processor = json.loads(self._process.stdout.readline())
        return clock, processor

    def close(self) -> None:
        self._process.communicate()


class _Worker:
    """What runs in a checkout's own interpreter."""

    def __init__(self, tree: Path) -> None:
        from snapstore import Store

        self._open = lambda: Store.open(tree, create=True)
        self._home = Path(os.environ["SNAPSTORE_HOME"])
        self._files = sorted(path for path in tree.rglob("*.*") if path.is_file())
        self._chance = random.Random(1)
        self._store = None
        self._session = None
        self._undone = False

    def first(self) -> Callable[[], object]:
        shutil.rmtree(self._home, ignore_errors=True)
        os.sync()
        return lambda: self._open().close()

    def turn(self) -> Callable[[], object]:
        self._begin(3)
        time.sleep(AGE)
        return self._session.end

    def undo(self) -> Callable[[], object]:
        return self._undo(3)

    def undo_many(self) -> Callable[[], object]:
        return self._undo(MANY)

    def _undo(self, count: int) -> Callable[[], object]:
        """Undo a turn of this many files. A second undo comes after a redo."""
        if self._undone == count:
            self._session.move(self._session.plan_redo(None))
        else:
            self._begin(count)
            self._session.end()
        self._undone = count
        return lambda: self._session.move(self._session.plan_undo())

    def _begin(self, count: int) -> None:
        if self._store is None:
            self._store = self._open()
            self._session = self._store.session("bench")
        turn = self._session.begin("A turn")
        chosen = self._chance.sample(self._files, count)
        turn.touch(*chosen)
        for path in chosen:
            with path.open("a") as file:
                file.write(f"# {self._chance.random()}\n")


def serve(tree: Path) -> None:
    worker = _Worker(tree)
    for line in sys.stdin:
        work = getattr(worker, line.strip().replace(" ", "_"))()
        clock, processor = time.perf_counter(), time.process_time()
        work()
        print(json.dumps([(time.perf_counter() - clock) * 1000, (time.process_time() - processor) * 1000]), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
