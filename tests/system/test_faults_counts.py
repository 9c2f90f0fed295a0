"""Strikes made by the kernel's filters meet the calls that strace counts, and do what strace does."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import call_filter
import faults
import pytest
from helpers import needs_strace
from move_lab import CALLS, READS, laboratory

pytestmark = [
    needs_strace,
    pytest.mark.skipif(not call_filter.known(CALLS), reason="the numbers of this machine's system calls are not known"),
]


def test_a_filter_counts_what_strace_counts() -> None:
    with laboratory("undo") as lab:
        lab.reset()
        done = faults.Filtered(lab.work, [*CALLS, *READS], lambda _call, _made: 0)
        assert (done.status, done.made) == (faults.DONE, lab.calls)


def test_a_kill_comes_before_the_call(tmp_path: Path) -> None:
    def work() -> None:
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()

    done = faults.strike(work, "mkdir", 2, "signal=SIGKILL")
    assert done.status == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_is_met_once_or_for_ever(tmp_path: Path) -> None:
    def work() -> None:
        for name in ("a", "b", "c"):
            try:
                (tmp_path / name).mkdir()
            except PermissionError:
                (tmp_path / f"{name}!").touch()

    assert faults.strike(work, "mkdir", 2, "error=EACCES").status == faults.DONE
    assert sorted(os.listdir(tmp_path)) == ["a", "b!", "c"]
    for name in os.listdir(tmp_path):
        (tmp_path / name).unlink() if "!" in name else (tmp_path / name).rmdir()
    assert faults.strike(work, "mkdir", 2, "error=EACCES", forever=True).status == faults.DONE
    assert sorted(os.listdir(tmp_path)) == ["a", "b!", "c!"]


def test_programs_that_the_work_starts_are_filtered_too(tmp_path: Path) -> None:
    """Each counts for itself, as under strace."""

    def work() -> None:
        for name in ("one", "two"):
            subprocess.run(["mkdir", str(tmp_path / name)], check=True)
        os.mkdir(tmp_path / "three")

    done = faults.Filtered(work, ["mkdir"], lambda _call, _made: 0)
    assert (done.status, done.made) == (faults.DONE, {"mkdir": 3})
    assert faults.strike(work, "mkdir", 2, "signal=SIGKILL").status == faults.BROKEN, (
        "none makes two; the folders exist"
    )
