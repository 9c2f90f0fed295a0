"""Moves killed, interrupted and failed at every call: files and refs are exactly old or exactly new, together."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faults
import pytest
from commands import PROGRAM
from helpers import all_refs, needs_strace, write
from move_lab import (
    DEEP,
    READS,
    VERBS,
    MoveLab,
    carry_out,
    laboratory,
    lay_out,
    set_the_stage,
    some_of,
    spread,
    strike_all,
)
from test_faults_disk import in_private_mounts

from snapstore import Failed, Store

# 1. Kills.


def kill_everywhere(verb: str, most: int | None = None) -> None:
    with laboratory(verb) as lab:
        points = lab.points()
        if most is not None:
            # mostly in the middle of it: while files and refs are moved
            late = [point for point in points if point[0] not in ("openat", "write")]
            points = spread(late, most - 1, verb) + spread(lab.points(["openat", "write"]), 1, verb)[:1]
        ends: dict[str, int] = {}

        def kill(name: str, number: int) -> None:
            done = lab.strike(name, number, "signal=SIGKILL")
            if done.status == faults.DONE:  # none fired: as files grow older, they are not read again
                assert lab.side() == "new"
                return
            assert done.status == -signal.SIGKILL, done
            side = lab.next_command(program=number % 4 == 0)
            ends[side] = ends.get(side, 0) + 1
            lab.assert_all_there()

        strike_all(lab, points, kill, "killed")
        assert most is not None or ends.keys() == {"old", "new"}


@needs_strace
@pytest.mark.parametrize("verb", VERBS)
def test_killed_in_a_move_it_is_old_or_new_and_every_turn_restores_S0_47_G_05(verb: str) -> None:
    """TESTING fault 1, a sample."""
    kill_everywhere(verb, 6 if verb in ("undo", "exact goto", "revert") else 4)


@DEEP
@needs_strace
@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_every_call_of_a_move_S0_47_G_05(verb: str) -> None:
    """TESTING fault 1, the whole matrix."""
    kill_everywhere(verb)


@pytest.mark.parametrize("verb", ["revert", "apply", "restore", "exact goto"])
def test_the_next_command_of_any_kind_can_tell_of_the_move(verb: str, root: Path) -> None:
    lay_out(root, Path(os.environ["SNAPSTORE_HOME"]))
    with Store.open(root) as store:
        set_the_stage(store.session("s"), root, verb)
        carry_out(store.session("s"), verb)
    for command in (["status"], ["log"], ["show", "@"]):
        done = subprocess.run([*PROGRAM, *command, "--json"], cwd=root, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout


# Ctrl-C.


def interrupt_everywhere(verb: str, choose: Callable[[MoveLab], list[tuple[str, int]]]) -> None:
    with laboratory(verb) as lab:

        def interrupt(name: str, number: int) -> None:
            done = lab.strike(name, number, "signal=SIGINT")
            assert done.status in (faults.DONE, faults.REFUSED, faults.INTERRUPTED), done
            assert lab.next_command(program=False) == "new" or done.status != faults.DONE
            lab.assert_all_there()

        strike_all(lab, choose(lab), interrupt, "Ctrl-C")


@needs_strace
@pytest.mark.parametrize("verb", ["undo", "revert", "forced undo"])
def test_ctrl_c_in_a_move_takes_it_back_S0_47(verb: str) -> None:
    """TESTING fault 7, a sample."""
    interrupt_everywhere(verb, lambda lab: spread(lab.points(), 5, verb))


@needs_strace
@pytest.mark.parametrize("verb", ["revert", "forced undo", "exact goto"])
def test_ctrl_c_right_after_a_move_loses_nothing_S0_47(verb: str) -> None:
    """The move counts already: what it saved first, and what it recorded, must stay."""

    def last(lab: MoveLab) -> list[tuple[str, int]]:
        return [point for call in ("unlink", "openat", "write", "pwrite64") for point in lab.points([call])[-2:]]

    interrupt_everywhere(verb, last)


@DEEP
@needs_strace
@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_at_every_call_of_a_move_S0_47(verb: str) -> None:
    interrupt_everywhere(verb, MoveLab.points)


# 2. Errors.

ERRORS = ["EIO", "ENOSPC", "EACCES", "EROFS", "EMFILE"]


def fail_at(lab: MoveLab, name: str, number: int, error: str, forever: bool) -> None:
    done = lab.strike(name, number, f"error={error}", forever=forever)
    assert done.status in (faults.DONE, faults.REFUSED), done
    pending = lab.pending
    if done.status == faults.DONE:
        assert lab.side() == "new", "it said success"
    else:
        said = done.error
        assert said["message"] and said["hint"], said
        assert said["error"] == "interrupted" or not pending, said
        assert pending or lab.side() == "old", f"refused, and yet it happened: {said}"
    lab.next_command(program=False)
    if number % 5 == 1:
        lab.assert_all_there()


def fail_everywhere(verb: str, error: str, forever: bool, most: int | None = None) -> None:
    with laboratory(verb) as lab:
        what = f"{error}{' for ever' if forever else ''}"
        points = lab.points()
        points = some_of(points, verb + what) if most is None else spread(points, most, verb + error)
        strike_all(lab, points, lambda name, number: fail_at(lab, name, number, error, forever), what)


@needs_strace
@pytest.mark.parametrize(
    ("verb", "error", "forever"),
    [
        ("undo", "EIO", False),
        ("redo", "ENOSPC", True),
        ("exact goto", "EROFS", True),
        ("goto", "EMFILE", True),
        ("revert", "EACCES", False),
        ("forced undo", "ENOSPC", False),
    ],
)
def test_an_error_in_a_move_is_a_refusal_and_nothing_has_moved_G_27_S0_46(verb: str, error: str, forever: bool) -> None:
    """TESTING fault 2, a sample: exactly old at once, or written down and mended by the next command."""
    fail_everywhere(verb, error, forever, 4)


@needs_strace
@pytest.mark.parametrize("verb", ["undo", "revert", "forced undo", "exact goto"])
def test_an_error_after_a_move_took_effect_is_no_failure_G_23(verb: str) -> None:
    """What only saves time or space later must not make a move look failed that happened."""
    with laboratory(verb) as lab:
        points = lab.points(["unlink"])[-2:] + lab.points(["openat"])[-8::2]
        strike_all(lab, points, lambda name, number: fail_at(lab, name, number, "EACCES", False), "EACCES")


@DEEP
@needs_strace
@pytest.mark.parametrize("forever", [False, True], ids=["once", "for-ever"])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_error_at_every_call_of_a_move_G_27_S0_46(verb: str, error: str, forever: bool) -> None:
    """TESTING fault 2, the whole matrix."""
    fail_everywhere(verb, error, forever)


def test_a_journal_that_cannot_be_opened_is_a_plain_failure_G_23(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was written down, so nothing is left to finish, and nobody says so."""
    session = store.session("s")
    with session.turn("one"):
        write(root / "a", "1")
    plan, refs, real = session.plan_undo(), all_refs(store), os.open
    full: list[bool] = []

    def no_more(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        """From the journal on no file can be opened."""
        if full or (os.fsdecode(path).endswith("/state/journal") and flags & os.O_WRONLY):
            full.append(True)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, flags, *rest, **named)

    with monkeypatch.context() as patch, pytest.raises(Failed):
        patch.setattr(os, "open", no_more)
        session.move(plan)
    assert full and not store.journal.pending()
    assert (all_refs(store), (root / "a").read_text()) == (refs, "1")


def fail_to_read(verb: str, most: int | None = None) -> None:
    """S0-46: an error of our own is never taken for a state of the user's file."""
    with laboratory(verb) as lab:
        points = lab.points(READS)
        if most is not None:
            points = spread(points, most, verb) + spread(lab.points(["getdents64"]), 3, verb)
        for error in ("EIO", "EACCES"):
            some = some_of(points, verb + error)
            strike_all(lab, some, lambda name, number, error=error: fail_at(lab, name, number, error, False), error)


@needs_strace
@pytest.mark.parametrize("verb", ["undo", "exact goto", "forced undo"])
def test_an_error_of_a_reading_call_is_a_refusal_G_27_S0_46(verb: str) -> None:
    """TESTING fault 2, a sample."""
    fail_to_read(verb, 5)


@DEEP
@needs_strace
@pytest.mark.parametrize("verb", VERBS)
def test_an_error_of_every_reading_call_is_a_refusal_G_27_S0_46(verb: str) -> None:
    fail_to_read(verb)


# 3. A full disk.


@pytest.mark.parametrize("where", ["root", "store"])
def test_a_full_disk_stops_an_undo_and_nothing_has_changed_G_27(tmp_path: Path, where: str) -> None:
    """TESTING fault 3: page by page from none to enough; refused and as it was each time, until it is undone."""
    code = """
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import FORCE, Policy
root, home, where = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
full = str(root) if where == "root" else home
mount(full, "size=2m")
write(root / "a", os.urandom(9000))
write(root / "b", os.urandom(9000))
write(root / "folder/c", "c")
write(root / ".gitignore", "filler\\n")
store = Store.open(root, create=True, home=home, session="s")
session = store.session("s")
session.take_baseline()
old = on_disk(root)
with session.turn("first"):
    write(root / "a", os.urandom(5))
    os.unlink(root / "b")
    os.unlink(root / "folder/c")
    os.rmdir(root / "folder")
    write(root / "folder", "a file")
    write(root / "made/here", "new")
write(root / "a", "edited, so that it must be saved first")
new = on_disk(root)
refs = all_refs(store)
messages, pages, done = [], 0, False
while not done:
    fill(f"{full}/filler", 4096 * pages)
    seen = {path: entry for path, entry in on_disk(root).items() if path != b"filler"}
    assert seen == new, "not as it was"
    try:
        with Store.open(root, home=home) as again:
            again.session("s").move(again.session("s").plan_undo(policy=Policy(FORCE)))
            done = True
    except SnapstoreError as error:
        messages.append({"error": error.name, "message": error.message, "hint": error.hint, **error.details})
        if error.name == "interrupted":  # written down: mended as soon as there is room
            os.unlink(f"{full}/filler")
            Store.open(root, home=home).close()
            done = on_disk(root) == old
            assert done or on_disk(root) == new
        else:
            assert all_refs(store) == refs
    pages += 1
    assert pages < 100
Path(f"{full}/filler").unlink(missing_ok=True)
assert on_disk(root) == old, "undone"
with Store.open(root, home=home) as again:
    again.session("s").move(again.session("s").plan_ops_undo())
    assert on_disk(root) == new
    assert_whole(again)
    left = [name for name in os.listdir(again.shadow.git_dir + "/objects/pack") if not name.startswith("pack-")]
    left += [str(path) for path in root.rglob(".snapstore-*")]
print(json.dumps({"messages": messages, "left": left}))
"""
    said = in_private_mounts(code, tmp_path / "root", tmp_path / "stores", where)
    messages = said["messages"]
    assert isinstance(messages, list)
    assert len(messages) >= 2
    for message in messages:
        assert message["error"] in ("failed", "interrupted"), message
        assert "No space left" in json.dumps(message), message
    assert said["left"] == []


def test_a_disk_without_room_for_names_tells_what_is_written_down_each_time_G_23_G_27(tmp_path: Path) -> None:
    """A change of refs alone, and its recovery, with few inodes left: what is written down is never denied."""
    code = """
root, home = Path(sys.argv[1]), sys.argv[2]
mount(home, "size=8m,nr_inodes=300")
root.mkdir()
write(root / "a", "a")
store = Store.open(root, create=True, home=home, session="s")
session = store.session("s")
session.take_baseline()
tip = session.begin("first").end()
refs = all_refs(store)
store.close()
folder = Path(home) / "filler"
told, done, spare = [], False, 0


def recovered():
    try:
        Store.open(root, home=home).close()
        return ""
    except SnapstoreError as error:
        return error.name


while not done:
    folder.mkdir()
    taken = []
    try:
        while True:
            taken.append(folder / str(len(taken)))
            taken[-1].touch()
    except OSError:
        taken.pop()
    for path in taken[len(taken) - spare :]:
        path.unlink()
    try:
        with Store.open(root, home=home) as again:
            Branches(again.session("s")).checkpoint("pinned", tip)
        done = True
    except SnapstoreError as error:
        told.append([error.name, recovered()])
        shutil.rmtree(folder)
        done = error.name == "interrupted"
        with Store.open(root, home=home) as again:
            assert ("refs/tags/s/pinned" in all_refs(again)) == done, told
            assert done or all_refs(again) == refs
    spare += 1
    assert spare < 100
print(json.dumps({"told": told}))
"""
    told = in_private_mounts(_NAMES + code, tmp_path / "root", tmp_path / "stores")["told"]
    assert told[-1] == ["interrupted", "interrupted"], told
    assert {tuple(pair) for pair in told[:-1]} == {("failed", "")}, told


_NAMES = """
import shutil
from snapstore.timeline.moves.branches import Branches
"""


@pytest.mark.parametrize("where", ["root", "store"])
def test_a_disk_gone_read_only_stops_an_undo_and_nothing_has_changed_G_27(tmp_path: Path, where: str) -> None:
    """TESTING fault 3."""
    code = """
root, home, where = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
full = str(root) if where == "root" else home
mount(full, "size=2m")
write(root / "a", "old")
store = Store.open(root, create=True, home=home, session="s")
session = store.session("s")
with session.turn("first"):
    write(root / "a", "new")
    write(root / "made/here", "new")
new, refs = on_disk(root), all_refs(store)
subprocess.run(["mount", "-o", "remount,ro", full], check=True)
names = []
for _ in range(2):
    try:
        with Store.open(root, home=home) as again:
            again.session("s").move(again.session("s").plan_undo())
    except SnapstoreError as error:
        names.append(error.name)
    assert on_disk(root) == new and all_refs(store) == refs
subprocess.run(["mount", "-o", "remount,rw", full], check=True)
with Store.open(root, home=home) as again:
    again.session("s").move(again.session("s").plan_undo())
    assert on_disk(root) == {b"a": (b"100644", b"old")}
    assert_whole(again)
print(json.dumps({"names": names}))
"""
    assert in_private_mounts(code, tmp_path / "root", tmp_path / "stores", where)["names"] == ["failed"] * 2
