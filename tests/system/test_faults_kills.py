"""Processes killed at random moments while others go on: whoever is left finds everything whole (G-37, S0-47)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import assert_equal, assert_whole, in_commit, line, on_disk, tip, write

from snapstore import Store

WORKER = """
import os, sys
from snapstore import Store
root, name = sys.argv[1], sys.argv[2]
own = f"{root}/{name}"
os.makedirs(own, exist_ok=True)
number = int(sys.argv[3]) * 1000
while True:
    number += 1
    with Store.open(root) as store:
        session = store.session(name)
        session.begin(f"{name} {number}")
        session.touch([f"{own}/one", f"{own}/two"])
        for file in ("one", "two"):
            with open(f"{own}/{file}.new", "w") as out:
                out.write(f"{name} {number}")
            os.rename(f"{own}/{file}.new", f"{own}/{file}")
        session.end(scan=number % 4 == 0)
    print(number, flush=True)
"""


def killed_over_and_over(root: Path, store: Store, kills: int, seed: int) -> None:
    write(root / "file", "never touched")
    dice = random.Random(seed)
    names = ["w0", "w1", "w2"]
    started = 0
    workers: dict[str, subprocess.Popen[bytes]] = {}

    def start(name: str) -> None:
        nonlocal started
        started += 1
        command = [sys.executable, "-c", WORKER, str(root), name, str(started)]
        workers[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    for name in names:
        start(name)
    for _ in range(kills):
        name = dice.choice(names)
        victim = workers[name]
        assert victim.stdout is not None
        for _ in range(dice.randrange(1, 4)):  # let it get somewhere first
            assert victim.stdout.readline(), victim.stderr and victim.stderr.read().decode()
        try:
            victim.wait(dice.random() * 0.05)
        except subprocess.TimeoutExpired:
            pass
        victim.send_signal(dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        victim.communicate()
        start(name)
    for victim in workers.values():
        victim.kill()
        _, said = victim.communicate()
        assert b"Traceback" not in said, said.decode()

    with Store.open(root) as after:
        for name in names:
            numbers = [int(commit["trailers"]["Seq"]) for commit in line(after, name)]
            assert numbers == list(range(len(numbers)))
            for commit in line(after, name):
                if commit["trailers"]["Kind"] == "turn" and commit["record"]["status"] == "done":
                    files = in_commit(after, commit["commit"])
                    assert files[f"{name}/one".encode()][1].decode() == commit["subject"]
                    assert files[f"{name}/two".encode()][1].decode() == commit["subject"]
            after.session(name).begin("the last").end()
            assert_equal(after, tip(after, name), on_disk(root))
        assert_whole(after)
    store.close()


def test_workers_killed_at_random_leave_a_whole_store_G_37(root: Path, store: Store) -> None:
    killed_over_and_over(root, store, kills=5, seed=1)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_workers_killed_at_random_over_and_over_G_37(root: Path, store: Store, seed: int) -> None:
    killed_over_and_over(root, store, kills=40, seed=seed)
