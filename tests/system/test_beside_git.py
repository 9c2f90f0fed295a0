"""Eight processes on one project: turns, moves, gc, push and pull, another machine, and git run by hand on all of it.

Every turn that was reported as recorded is there in the end, to the byte, and no object is missing: neither for git's
fsck nor for our own check. A short run with a fixed seed in every test run; `--deep` runs it for ten minutes, or for as
many seconds as SNAPSTORE_BESIDE_GIT says, with another seed each time.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from besides import KINDS
from helpers import assert_whole, blobs, git
from machines import Machine, bare

# Locks are waited for, remotes move, there is nothing to undo. Never: damage, or a gc that gives up.
_REFUSALS = ("busy", "conflict", "remote", "unknown")


def test_nothing_is_lost_for_some_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(tmp_path, 10.0, 1)


@pytest.mark.deep
def test_nothing_is_lost_for_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = float(os.environ.get("SNAPSTORE_BESIDE_GIT", "600"))
    counts = _run(tmp_path, seconds, random.SystemRandom().randrange(1 << 32))
    with capsys.disabled():
        print(f"\nbeside git, {seconds:.0f} s: {counts}")


def _run(folder: Path, seconds: float, seed: int) -> dict[str, int]:
    hub = bare(folder / "hub.git")
    ada = Machine(folder, "ada").init(readme="all of it\n").remote(hub)
    ada.turn("Begin", begin="begun\n")
    ada.push()
    bob = Machine(folder, "bob")
    bob.clone(hub)
    here = str(Path(__file__).parents[1] / "support")
    environment = {**os.environ, "PYTHONPATH": here, "PYTHONDONTWRITEBYTECODE": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, f"{here}/besides.py", kind, str(seed), str(seconds), str(folder)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        for kind in KINDS
    ]
    try:
        for process in started:
            _, err = process.communicate(timeout=seconds + 300)
            assert process.returncode == 0, err.decode(errors="replace")
    finally:
        for process in started:
            process.kill()
            process.wait()
    said = {kind: _said(folder, kind) for kind in KINDS}
    counts = Counter(row["what"] for rows in said.values() for row in rows)
    wrong = [row for rows in said.values() for row in rows if _is_wrong(row)]
    for machine, kinds in ((ada, ("turns1", "turns2", "moves1")), (bob, ("bob1",))):
        with machine.open() as store:
            # What git wrote by hand may name what was removed since: commits that a `git prune` removed, or packs
            # that a repack replaced. Two gits do that to each other, too. Only fsck minds; every reader looks further.
            for name in ("info/commit-graph", "pack/multi-pack-index"):
                Path(store.shadow.objects.folder, name).unlink(missing_ok=True)
            assert_whole(store)
            for kind in kinds:
                _compare(store.shadow.git_dir, kind, [row for row in said[kind] if row["what"] == "turn"])
    git(hub, "fsck", "--strict", "--no-dangling")
    assert not wrong, f"seed {seed}: {wrong[:5]}"  # last: whether something is lost is known then
    assert counts["turn"] and counts["git"] and counts["gc"], counts
    return dict(counts)


def _said(folder: Path, kind: str) -> list[dict[str, Any]]:
    path = folder / f"{kind}.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _is_wrong(row: dict[str, Any]) -> bool:
    if row["what"] == "refused":
        return row["error"] not in _REFUSALS or "damaged" in row["message"]
    return row["what"] == "broken"


def _compare(git_dir: str, kind: str, turns: list[dict[str, Any]]) -> None:
    """Every turn is there, some ref leads to it, and its files have the bytes that they had."""
    reachable = set(git(git_dir, "rev-list", "--all").decode().split())
    assert not [row["commit"] for row in turns if row["commit"] not in reachable]
    for row in turns:
        listing = git(git_dir, "ls-tree", "-r", "-z", row["commit"], f"{kind}/").split(b"\0")
        rows = [line.partition(b"\t") for line in listing if line]
        ids = {name.decode(): head.split(b" ")[2] for head, _, name in rows}
        data = blobs(git_dir, list(ids.values()))
        found = {name: data[oid] for name, oid in ids.items()}
        assert found == {name: base64.b64decode(text) for name, text in row["files"].items()}, row["commit"]
