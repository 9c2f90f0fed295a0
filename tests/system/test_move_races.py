"""Edits, links and other moves that come between: nothing is lost and nothing mixed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import faults
import pytest
from commands import PROGRAM
from helpers import all_refs, assert_whole, needs_strace, on_disk, remove, write
from move_lab import DEEP, Whole, at_call, laboratory, project

from snapstore import Conflict, Session, SnapstoreError, Store
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import FORCE, Policy

__all__ = ["project"]  # fixtures


EDITED = ["text", "tool", "link", "place", "thing/a", "new/deep/er/file", "gone", "place/b/c", "deep/gone"]


@pytest.mark.parametrize(("call", "nth"), [("fsync", 3), ("write", 4)])
@pytest.mark.parametrize("path", EDITED)
def test_an_edit_between_check_and_rename_is_a_conflict_and_not_a_loss_S0_44_S0_46(
    root: Path, project: Session, monkeypatch: pytest.MonkeyPatch, path: str, call: str, nth: int
) -> None:
    """TESTING fault 7: somebody saves a file while the new contents are being written beside it."""
    old, refs, target = on_disk(root), all_refs(project.store), root / path
    saved: list[str] = []

    def save() -> None:
        saved.append(path)
        for above in target.relative_to(root).parents:
            if (root / above).is_file():
                remove(root / above)
        remove(target)
        write(target, "saved by a person")

    plan = project.plan_undo(2)
    assert not plan.conflicts
    with monkeypatch.context() as patch:
        at_call(patch, call, nth, save)
        with pytest.raises(Conflict):
            project.move(plan)
    found = on_disk(root)
    assert saved and found[os.fsencode(path)] == (b"100644", b"saved by a person")
    lost = {name for name in old if found.get(name) != old[name]}
    # A file where a folder now is was removed by that person, not by us.
    assert all(name == os.fsencode(path) or os.fsencode(path).startswith(name + b"/") for name in lost), lost
    assert all_refs(project.store) == refs
    assert not list(root.rglob(".snapstore-*"))
    assert_whole(project.store)


@needs_strace
def test_an_edit_in_a_real_process_s_pause_is_kept_S0_44() -> None:
    """The same from outside: the process is held before its first rename while a person saves."""
    with laboratory("undo") as lab:
        lab.reset()
        running = faults.begin(lab.work, "unlinkat", 1, "delay_enter=700000")
        end = time.monotonic() + 20
        while not list(lab.root.rglob(".snapstore-*")) and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(0.2)
        write(lab.root / "text", "saved by a person")
        assert running.wait().error["error"] == "conflict"
        assert on_disk(lab.root) == {**lab.before.files, b"text": (b"100644", b"saved by a person")}
        lab.assert_clean()


@pytest.mark.parametrize("call", ["open", "rename", "unlink", "fsync", "mkdir", "rmdir", "symlink"])
def test_a_link_swapped_in_during_a_move_leads_nowhere_G_09(
    root: Path, project: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    """TESTING hostile, on disk: a folder turns into a link to somebody's own files, at one call after another."""
    outside = tmp_path / "outside"
    for name in ("a", "b/c", "keep", "gone", "er/file", "deep/er/file", "other"):
        write(outside / name, "theirs")
    theirs = on_disk(outside)
    for nth, folder in itertools.product((1, 2, 4, 7), ("deep", "thing", "new")):
        plan = project.plan_undo(2)

        def swap(folder: str = folder) -> None:
            if (root / folder).is_dir() and not (root / folder).is_symlink():
                os.rename(root / folder, tmp_path / "aside")
                os.symlink("../outside", root / folder)

        with monkeypatch.context() as patch:
            at_call(patch, call, nth, swap)
            with contextlib.suppress(SnapstoreError):
                project.move(plan)
        assert on_disk(outside) == theirs, (nth, folder)
        if (root / folder).is_symlink():
            remove(root / folder)
            os.rename(tmp_path / "aside", root / folder)
        remove(tmp_path / "aside")
        with Store.open(root) as store:
            session = store.session("s")
            session.move(session.plan_goto("main", exact=True, policy=Policy(FORCE)))
        assert on_disk(outside) == theirs


@pytest.mark.parametrize(
    ("hands", "rounds"), [(2, 3), pytest.param(2, 40, marks=DEEP), pytest.param(8, 15, marks=DEEP)]
)
def test_several_undo_at_once_and_never_mix_G_08(root: Path, project: Session, hands: int, rounds: int) -> None:
    """TESTING faults 7 and 9: one undoes, the others are refused or undo one more; files and cursor agree."""
    states = {}
    for turn in range(4):
        project.move(project.plan_goto(f"main:{turn}" if turn else "0", exact=True))
        states[turn] = on_disk(root)
    command = [*PROGRAM, "undo", "--json", "-y"]
    for _ in range(rounds):
        project.move(project.plan_goto("main:3", exact=True))
        running = [
            subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(hands)
        ]
        undone = 0
        for process in running:
            out, err = process.communicate(timeout=120)
            assert process.returncode in (0, 10, 11), (process.returncode, out, err)
            assert b"Traceback" not in err
            undone += json.loads(out).get("turns_undone", 0)
        assert 1 <= undone <= 3
        with Store.open(root) as store:
            graph = Graph(store, "s")
            assert graph.turn_of(graph.cursor) == 3 - undone
            assert on_disk(root) == states[3 - undone]
            assert_whole(store)


@needs_strace
def test_a_move_stopped_in_the_middle_is_waited_for_not_mended_G_08(monkeypatch: pytest.MonkeyPatch) -> None:
    """TESTING fault 5: Ctrl-Z in the middle. It holds the lock: others are told so, and it goes on when it may."""
    with laboratory("undo") as lab:
        lab.reset()
        mover = faults.begin(lab.work, "renameat", 2, "signal=SIGSTOP")
        end = time.monotonic() + 20
        while time.monotonic() < end and not (lab.pending and all(mover.state() in "tT" for _ in _moments(10))):
            time.sleep(0.01)  # a tracer stops it for an instant only
        try:
            half = Whole(lab.home, lab.root).key()
            monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "0.3")
            for command in (["status"], ["undo", "-y"], ["recover", "--back"]):
                done = lab.snap(*command)
                assert done.returncode == 11, done
                assert str(mover.pid).encode() in done.stderr
            assert Whole(lab.home, lab.root).key() == half
        finally:
            os.kill(mover.pid, signal.SIGCONT)
            mover.wait()
        assert mover.status == faults.DONE
        assert lab.side() == "new"
        lab.assert_all_there()


def _moments(count: int) -> Iterator[None]:
    for _ in range(count):
        time.sleep(0.02)
        yield
