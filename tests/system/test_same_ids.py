"""The same turns and moves give the same trees and blobs, whichever version of the engine writes them."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from story import play

HERE = Path(__file__).resolve().parents[1] / "support"
BEFORE = "343013a881c75948f9b561680cd5e0a99eadf8e9"  # the last version with an object database of its own
RECORDED = "7a2d9b86614d463145b0c1f01cb32986e1719650"  # of the refs of that version, for the short story


def test_a_short_story_gives_the_recorded_ids(tmp_path: Path) -> None:
    rows = [f"{ref} {target}\n" for ref, target in sorted(play(tmp_path / "story", 80, 17).items())]
    assert hashlib.sha1("".join(rows).encode()).hexdigest() == RECORDED, "".join(rows)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_three_hundred_steps_give_the_ids_of_the_version_before(tmp_path: Path, seed: int) -> None:
    packed = subprocess.run(
        ["git", "-C", str(HERE.parents[1]), "archive", BEFORE, "snapstore"], capture_output=True, check=False
    )
    if packed.returncode != 0:
        pytest.skip(f"this clone has no commit {BEFORE}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tmp_path / "before", filter="data")
    told = subprocess.run(
        [sys.executable, "-P", str(HERE / "story.py"), str(tmp_path / "then"), "300", str(seed)],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "before")},
        capture_output=True,
        text=True,
        check=True,
    )
    before = dict(row.split(" ", 1) for row in told.stdout.splitlines())
    assert len(before) > 40
    assert play(tmp_path / "now", 300, seed) == before
