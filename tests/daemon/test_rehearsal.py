"""What the warm process plays before it serves: it works, and leaves no trace in the process or on disk."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from warm import runtime_folder

from snapstore.cli.warm import rehearsal
from snapstore.daemon import client


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the sockets, in a runtime folder of its own."""
    with runtime_folder() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        (runtime / "snapstore").mkdir(mode=0o700, exist_ok=True)
        yield runtime / "snapstore"


def _state() -> tuple[object, ...]:
    signals = [signal.getsignal(number) for number in signal.valid_signals()]
    streams = sys.stdin, sys.stdout, sys.stderr
    here = dict(os.environ), os.getcwd(), os.listdir("/dev/fd"), threading.active_count()
    return *here, *streams, *signals, client.installation()


def test_every_step_of_the_rehearsal_succeeds(tmp_path: Path) -> None:
    with rehearsal._aside(str(tmp_path)):
        rehearsal._play()  # raises where a command fails
    assert (tmp_path / "root/file.txt").read_text() == "three\n"
    assert list((tmp_path / "stores").iterdir())


def test_a_rehearsal_leaves_nothing_behind(folder: Path) -> None:
    before = _state()
    rehearsal.rehearse()
    assert _state() == before
    assert list(folder.iterdir()) == []


def test_a_failing_rehearsal_does_no_harm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "main", lambda words: 1)
    before = _state()
    rehearsal.rehearse()
    assert _state() == before
    assert list(folder.iterdir()) == []


def test_what_a_killed_rehearsal_left_is_removed(folder: Path) -> None:
    left = folder / f"{client.socket_name()}.rehearsal"
    (left / "root").mkdir(parents=True)
    rehearsal.rehearse()
    assert not left.exists()


def test_without_a_private_folder_nothing_is_played(folder: Path) -> None:
    folder.chmod(0o755)
    rehearsal.rehearse()
    assert list(folder.iterdir()) == []
