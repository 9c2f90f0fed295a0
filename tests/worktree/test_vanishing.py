"""Files that go away, or turn into something else, between a look and the read that follows it.

The strike is made right before the Nth call of the system that a piece of work makes, for every N: a profiler sees each
call before it is made. Nothing is replaced by a stand-in, and nothing depends on luck.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from helpers import in_commit

from snapstore import Session, SnapstoreError, Store
from snapstore.cli.main import main
from snapstore.errors import Conflict, Failed
from snapstore.git.maintenance.fold import sweep
from snapstore.timeline.history.history import History
from snapstore.timeline.history.patches import patched

_LOOKING = frozenset(("open", "stat", "lstat", "fstat", "readlink", "scandir", "listdir", "read", "is_dir", "access"))


class _Before:
    """Calls `strike` right before the Nth look at the disk, and counts the looks."""

    def __init__(self, number: int, strike: Callable[[], None]) -> None:
        self._number = number
        self._strike = strike
        self.seen = 0

    def __enter__(self) -> _Before:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call" or called.__name__ not in _LOOKING:
            return
        if called.__module__ not in ("posix", "io", "_io") and type(called.__self__).__module__ != "posix":
            return
        self.seen += 1
        if self.seen == self._number:
            sys.setprofile(None)
            self._strike()
            sys.setprofile(self._see)


def _gone(victim: Path) -> None:
    victim.unlink()


def _folder(victim: Path) -> None:
    victim.unlink()
    victim.mkdir()


def _link(victim: Path) -> None:
    victim.unlink()
    victim.symlink_to("elsewhere")


def _fifo(victim: Path) -> None:
    victim.unlink()
    os.mkfifo(victim)


def _no_folder(victim: Path) -> None:
    shutil.rmtree(victim.parent)
    victim.parent.write_text("a file in the place of the folder")


STRIKES = {strike.__name__.strip("_"): strike for strike in (_gone, _folder, _link, _fifo, _no_folder)}


@pytest.fixture
def session(root: Path, store: Store) -> Session:
    """A turn that wrote a file in a folder, a link, and one more file."""
    session = store.session()
    (root / "folder").mkdir()
    with session.begin("Write them"):
        (root / "folder" / "victim.txt").write_text("written by the turn\n")
        (root / "other.txt").write_text("written by the turn\n")
    return session


def _put_back(victim: Path, text: str) -> None:
    """The file as it is before each strike, whatever the last one left there."""
    if victim.parent.is_file():
        victim.parent.unlink()
    victim.parent.mkdir(exist_ok=True)
    if victim.is_symlink() or victim.exists():
        shutil.rmtree(victim) if victim.is_dir() and not victim.is_symlink() else victim.unlink()
    victim.write_text(text)


def _looks(work: Callable[[], object], victim: Path, text: str) -> int:
    _put_back(victim, text)
    work()  # once, so that every module is loaded
    with _Before(0, lambda: None) as counted:
        work()
    return counted.seen


def _numbers(count: int, sample: int, deep: bool) -> list[int]:
    """Every look, or a sample of them with the first and last."""
    step = 1 if deep else max(1, count // sample)
    return sorted({*range(1, count + 1, step), count})


def _command(*words: str) -> Callable[[], object]:
    def run() -> None:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            assert main([*words]) == 0, words

    return run


READING = {
    "status": ["status", "--json"],
    "diff": ["diff", "--json"],
    "diff of a file": ["diff", "--", "folder/victim.txt"],
    "show": ["show", "@"],
    "log": ["log", "--stat"],
    "du": ["du", "--json"],
    "tree": ["tree", "--json"],
    "undo --preview": ["undo", "--preview", "--json"],
}


def _strike_reading(what: str, how: str, root: Path, monkeypatch: pytest.MonkeyPatch, deep: bool) -> int:
    monkeypatch.chdir(root)
    victim, work = root / "folder" / "victim.txt", _command(*READING[what])
    text = "edited by hand, and of another length\n"
    numbers = _numbers(_looks(work, victim, text), 12, deep)
    for number in numbers:
        _put_back(victim, text)
        with _Before(number, lambda: STRIKES[how](victim)):
            try:
                work()
            except Exception as error:
                raise AssertionError(f"{what}, {how} before look {number}: {error!r}") from error
    return len(numbers)


@pytest.mark.parametrize("what", READING)
def test_commands_that_look_do_not_fail_when_a_file_goes_away(
    what: str, root: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _strike_reading(what, "gone", root, monkeypatch, deep=False)


@pytest.mark.deep
@pytest.mark.parametrize("how", STRIKES)
@pytest.mark.parametrize("what", READING)
def test_commands_that_look_do_not_fail_when_a_file_goes_away_or_turns_into_something_else_at_any_look(
    what: str, how: str, root: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = _strike_reading(what, how, root, monkeypatch, deep=True)
    print(f"{what}, {how}: {count} looks")


def _strike_turns(how: str, named: bool, root: Path, session: Session, deep: bool) -> int:
    """Ends turns while the file goes away: each is recorded, and tells of the file or of its end."""
    victim, other = root / "folder" / "victim.txt", root / "other.txt"
    rounds = 0

    def begin() -> None:
        nonlocal rounds
        rounds += 1
        _put_back(victim, "put back\n")
        turn = session.begin(f"Round {rounds}")
        if named:
            turn.touch(victim, other)
        victim.write_text(f"round {rounds}\n")
        other.write_text(f"round {rounds}\n")

    begin()
    session.end()
    begin()
    with _Before(0, lambda: None) as counted:
        session.end()
    numbers = _numbers(counted.seen, 12, deep)
    for number in numbers:
        begin()
        with _Before(number, lambda: STRIKES[how](victim)):
            commit = session.end()
        found = in_commit(session.store, commit)
        assert found[b"other.txt"] == (b"100644", f"round {rounds}\n".encode())
        kept = [f"round {rounds}\n".encode(), b"put back\n", b"elsewhere"]
        assert found.get(b"folder/victim.txt", (b"", kept[0]))[1] in kept, number
    return len(numbers)


@pytest.mark.parametrize("named", [True, False], ids=["named", "scanned"])
@pytest.mark.parametrize("how", ["gone", "link"])
def test_turns_are_recorded_when_a_file_goes_away(how: str, named: bool, root: Path, session: Session) -> None:
    assert _strike_turns(how, named, root, session, deep=False)


@pytest.mark.deep
@pytest.mark.parametrize("named", [True, False], ids=["named", "scanned"])
@pytest.mark.parametrize("how", STRIKES)
def test_turns_are_recorded_when_a_file_goes_away_or_turns_into_something_else_at_any_look(
    how: str, named: bool, root: Path, session: Session
) -> None:
    print(f"{how}: {_strike_turns(how, named, root, session, deep=True)} looks")


LINES = "".join(f"line {number}\n" for number in range(9))
EDITED = LINES.replace("line 8", "the turn's last line")


def _strike_moves(how: str, policy: str, root: Path, session: Session, deep: bool) -> int:
    """Plans and moves while the file goes away: done, or refused as a conflict with nothing lost; never failed."""
    victim, other = root / "folder" / "victim.txt", root / "other.txt"
    for text in (LINES, EDITED):
        with session.begin("Write"):
            victim.write_text(text)
            other.write_text(text)
    by_hand = EDITED if policy == "refuse" else EDITED.replace("line 0", "the user's first line")

    def undo() -> None:
        session.move(session.plan_undo(policy=policy))

    def again() -> None:
        """Back at the tip, with the files as they were."""
        _put_back(victim, LINES)
        session.move(session.plan_redo())
        _put_back(victim, by_hand)

    _put_back(victim, by_hand)
    undo()
    again()
    with _Before(0, lambda: None) as counted:
        undo()
    numbers = _numbers(counted.seen, 12, deep)
    for number in numbers:
        again()
        try:
            with _Before(number, lambda: STRIKES[how](victim)):
                undo()
        except SnapstoreError as error:
            assert not isinstance(error, Failed), f"{how} before look {number}: {error!r}"
            assert isinstance(error, Conflict) or how != "gone", f"{how} before look {number}: {error!r}"
            assert other.read_text() == EDITED
            _put_back(victim, by_hand)
            undo()
        assert other.read_text() == LINES
    return len(numbers)


@pytest.mark.parametrize("how", ["gone", "fifo"])
@pytest.mark.parametrize("policy", ["refuse", "merge", "force"])
def test_moves_are_done_or_refused_when_a_file_goes_away(policy: str, how: str, root: Path, session: Session) -> None:
    assert _strike_moves(how, policy, root, session, deep=False)


@pytest.mark.deep
@pytest.mark.parametrize("how", STRIKES)
@pytest.mark.parametrize("policy", ["refuse", "merge", "force"])
def test_moves_are_done_or_refused_when_a_file_goes_away_or_turns_into_something_else_at_any_look(
    policy: str, how: str, root: Path, session: Session
) -> None:
    print(f"{how}: {_strike_moves(how, policy, root, session, deep=True)} looks")


def test_a_patch_tells_of_files_as_they_are_when_it_is_made(root: Path, session: Session) -> None:
    """Between the list of what changed and the patch: gone, gone as a new one, changed again, a folder now."""
    for name in ("folder/victim.txt", "other.txt", "new.txt", "turned.txt"):
        (root / name).write_text("first\n")
    history = History(session)
    changes = history.edits()
    assert len(changes) == 4
    (root / "folder" / "victim.txt").unlink()
    (root / "new.txt").unlink()
    (root / "other.txt").write_text("second\n")
    (root / "turned.txt").unlink()
    (root / "turned.txt").mkdir()
    files, lines = patched(history, changes)
    assert [(file.path, file.change, file.added, file.removed) for file in files] == [
        (b"folder/victim.txt", "D", 0, 1),
        (b"other.txt", "M", 1, 1),
    ]
    assert b"+second\n" in lines and b"deleted file mode 100644\n" in lines
    assert b"".join(history.patch(changes)) == b"".join(lines)


def test_a_folder_of_loose_objects_that_git_removes_does_not_stop_gc(store: Store) -> None:
    """`git prune` by hand removes the folders that it empties."""
    folder = Path(store.shadow.objects.folder, "2c")
    number = 1
    while True:
        folder.mkdir(exist_ok=True)
        with _Before(number, lambda: shutil.rmtree(folder, ignore_errors=True)) as struck:
            sweep(store.shadow.objects, time.time())
        if struck.seen < number:
            break
        number += 1
    assert number > 3
