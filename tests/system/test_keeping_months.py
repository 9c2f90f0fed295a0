"""Months of work, made by a script: the store stays within what docs/storage.md promises (S1-64, S3-27, G-16)."""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from helpers import Files, assert_equal, assert_whole, on_disk, plain_environment, write

from snapstore import Store
from snapstore.store.disk_usage import folder_size
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.maintenance import auto
from snapstore.timeline.maintenance.prune import DAY

PAGE = (Path(__file__).parents[2] / "docs/storage.md").read_text()
MB = 1_000_000


class Months:
    """Turns of an agent on a small project, a few an hour, with a way back every so often."""

    def __init__(self, root: Path, home: Path) -> None:
        self.now = 1_700_000_000.0
        self.root = root
        self.dice = random.Random(7)
        self.words = [f"word{number}" for number in range(400)]
        self.texts = {f"src/part{number % 8}/file{number}.py": self.text() for number in range(60)}
        for name in self.texts:
            self.put(name)
        self.store = Store.open(root, create=True, home=str(home), clock=lambda: self.now)
        self.store.configure(max_branches=3)
        self.session = self.store.session("s")
        self.saved: dict[str, Files] = {}
        self.peak = 0
        self.collected = 0

    def text(self) -> list[str]:
        return [" ".join(self.dice.choices(self.words, k=8)) for _ in range(120)]

    def put(self, name: str) -> None:
        write(self.root / name, "\n".join(self.texts[name]))

    def read(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().split("\n") if path.exists() else self.text()

    def turn(self, number: int) -> None:
        names = self.dice.sample(sorted(self.texts), 3)
        self.session.begin(f"turn {number}: " + " ".join(self.dice.choices(self.words, k=12)))
        self.session.touch([self.root / name for name in names])
        for name in names:
            lines = self.read(name)
            lines[self.dice.randrange(len(lines))] = f"changed in turn {number}"
            write(self.root / name, "\n".join(lines))
        commit = self.session.end(replies=[" ".join(self.dice.choices(self.words, k=60))])
        if number % 25 == 0:
            self.saved[commit.hex()] = on_disk(self.root)

    def live(self, turns: int, days: float) -> None:
        for number in range(turns):
            self.now += days * DAY / turns
            self.turn(number)
            if number % 20 == 19:  # another way: the one before is a branch from then on
                self.session.move(self.session.plan_undo(2))
            self.keep()

    def keep(self) -> None:
        """What the end of a turn starts in the background, here and now."""
        self.peak = max(self.peak, folder_size(self.store.folder)) if self.dice.random() < 0.05 else self.peak
        if auto.is_due(self.store, auto._pack_sizes(self.store)):
            self.peak = max(self.peak, folder_size(self.store.folder))
            auto.run(self.store)
            self.collected += 1


def packed_size(store: Store, folder: Path) -> int:
    """What git makes of it at its best."""
    environment = plain_environment()
    subprocess.run(["git", "clone", "-q", "--mirror", store.shadow.git_dir, str(folder)], check=True, env=environment)
    subprocess.run(["git", "-C", str(folder), "repack", "-adFq"], check=True, env=environment)
    return folder_size(f"{folder}/objects")


@pytest.mark.parametrize(
    ("turns", "days", "unit"),
    [(150, 200, 1 << 18), pytest.param(3000, 300, 16 << 20, marks=pytest.mark.deep)],
)
def test_months_of_turns_stay_within_what_is_promised(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int, days: float, unit: int
) -> None:
    """The short one with a gc that pays from a quarter of a megabyte on, and a promise as much smaller."""
    monkeypatch.setattr(auto, "PAYS_FROM", unit)
    if turns < 1000:
        monkeypatch.setattr("snapstore.git.maintenance.fold.STEPS", (1 << 16, 1 << 21))
        monkeypatch.setattr("snapstore.git.maintenance.fold.FOLD_AT", 8)
    months = Months(root, tmp_path / "home")
    months.live(turns, days)
    store = months.store
    promise = re.search(r"twice its packed size plus (\d+) MB", " ".join(PAGE.split()))
    assert promise is not None
    allowed = 2 * packed_size(store, tmp_path / "mirror.git") + int(promise[1]) * MB * unit // (16 << 20)
    assert months.collected > 1
    assert months.peak < allowed, f"{months.peak:,} of {allowed:,} bytes"
    line = set(Graph(store, "s").line(store.shadow.refs.read("refs/snapstore/cursor/s") or b""))
    checked = [commit for commit in months.saved if bytes.fromhex(commit) in line]
    assert len(checked) > len(months.saved) // 2
    for commit in checked:
        assert_equal(store, commit, months.saved[commit])
    assert any(operation.kind == "auto prune" for operation in Operations(store).newest_first())
    assert_whole(store)
    store.close()


def test_a_big_binary_in_every_turn_is_seen_and_bounded(root: Path, store: Store) -> None:
    """TESTING: the store grows to 100 GB, one copy of a big binary a turn. It is told of, and `du` names it."""
    said: list[str] = []
    store.say = said.append
    store.configure(max_store_size=3 * MB)
    session = store.session("s")
    for _ in range(5):
        with session.turn("build"):
            write(root / "dist/app.bin", os.urandom(600_000))
    assert any("max_store_size" in text for text in said)
    from snapstore.store.disk_usage import DiskUse

    path, size, versions = DiskUse(store).measure().largest()[0]
    assert (path, versions) == (b"dist/app.bin", 5)
    assert size > 3 * MB - 1000
    end = time.monotonic() + 30
    while not os.path.exists(f"{store.state}/kept"):  # it was started; that it ends is shown elsewhere
        assert time.monotonic() < end
        time.sleep(0.02)
