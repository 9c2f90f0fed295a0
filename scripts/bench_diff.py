"""The part of the benchmark for line differences: `scripts/bench diff`."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from bench_hook import own_command, place

from snapstore import Store

PACKAGES = 3800  # a lock file of 1.2 MB
CHANGED = 300  # packages: 1,000 lines
RUNS = 9


class Bench(Protocol):
    work: Path

    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool) -> None: ...
    def forget(self) -> None: ...


def diff(bench: Bench, median: Callable[..., float]) -> None:
    """`snapstore show` of a turn that updated a lock file, as a warm process and alone, against `git show`."""
    bench.forget()
    tree = bench.work / "locked"
    tree.mkdir()
    lock = tree / "package-lock.json"
    chance = random.Random(12)
    lock.write_text("".join(_package(number, 0) for number in range(PACKAGES)))
    with Store.open(tree, create=True) as store:
        git_dir = store.shadow.git_dir
        with store.session("bench").turn("Update the dependencies") as turn:
            updated = set(chance.sample(range(PACKAGES), CHANGED))
            lock.write_text("".join(_package(number, int(number in updated)) for number in range(PACKAGES)))
        assert turn.commit is not None
        commit = turn.commit.hex()
    counts = subprocess.run(
        ["git", "-C", git_dir, "show", "--numstat", "--format=", commit], check=True, capture_output=True, text=True
    ).stdout.split()
    for warm in (True, False):
        with place(warm) as environment:

            def ours(environment: dict[str, str] = environment) -> None:
                command = [*own_command(), "show", "--session", "bench"]
                subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)

            def theirs() -> None:
                subprocess.run(["git", "-C", git_dir, "show", commit], check=True, capture_output=True)

            took, git = median(ours, runs=RUNS), median(theirs, runs=RUNS)
        reach = ("<= 3", took / git <= 3) if warm else ("-", None)
        work = f"`show`, 1.2 MB lock file, {'warm' if warm else 'alone'}"
        bench.note(work, int(counts[0]), took, git, took / git, *reach)


def _package(number: int, version: int) -> str:
    chance = random.Random(number * 10 + version)
    return (
        f'    "node_modules/package-{number}": {{\n'
        f'      "version": "{chance.randrange(9)}.{chance.randrange(20)}.{chance.randrange(9)}",\n'
        f'      "resolved": "https://registry.example/package-{number}/-/package-{number}-{version}.tgz",\n'
        f'      "integrity": "sha512-{chance.getrandbits(352):088x}==",\n'
        f'      "engines": {{ "node": ">={12 + number % 9}" }}\n'
        "    },\n"
    )
