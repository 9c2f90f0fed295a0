"""Moves killed, failed, interrupted and raced at every call: files and refs are exactly old or exactly new, together.

The struck move is of every kind: files written, removed, made executable, links, a folder that becomes a file and back,
folders made and emptied. The clock stands still in it, so that the new state is known beforehand, file by file and ref
by ref. Project and store are laid out anew for every strike.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faults
import pytest
import test_faults_disk
from commands import PROGRAM
from faults import NOW, age_locks
from helpers import (
    Files,
    all_refs,
    assert_whole,
    git,
    needs_strace,
    on_disk,
    quick_folder,
    remove,
    write,
)
from test_faults_disk import in_private_mounts
from test_faults_locks import REFS
from test_faults_matrix import _journal_is_pending

from snapstore import Conflict, Failed, Session, SnapstoreError, Store
from snapstore.base.platform import SYNC_AT_ONCE
from snapstore.store.handle import failed
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import FORCE, MERGE, Plan, Policy

LINES = [f"{number}\n" for number in range(20)]


def carry_out(session: Session, verb: str) -> None:
    """The move that is struck."""
    try:
        act = prepared(session, verb)
    except OSError as error:
        raise failed(error) from error  # as the command line does it
    act()


def prepared(session: Session, verb: str) -> Callable[[], object]:
    names = Branches(session)
    if verb == "branch delete":
        return lambda: names.delete("main-2")
    if verb == "branch rename":
        return lambda: names.rename("main", "trunk")
    if verb == "checkpoint":
        tip = Graph(session.store, "s").tip
        return lambda: names.checkpoint("pinned", tip)
    plan = PLANS[verb](session)
    return lambda: session.move(plan)


PLANS: dict[str, Callable[[Session], Plan]] = {
    "undo": lambda s: s.plan_undo(2),
    "redo": lambda s: s.plan_redo(None),
    "goto": lambda s: s.plan_goto("main-2:2"),
    "switch": lambda s: s.plan_switch("main-2"),
    "revert": lambda s: s.plan_revert("2"),
    "apply": lambda s: s.plan_apply("main:2"),
    "restore": lambda s: s.plan_restore("1", [b"text", b"gone", b"tool", b"link", b"place", b"thing", b"new"]),
    "ops undo": lambda s: s.plan_ops_undo(),
    "forced undo": lambda s: s.plan_undo(2, policy=Policy(FORCE)),
    "merged undo": lambda s: s.plan_undo(2, policy=Policy(MERGE)),
    "exact goto": lambda s: s.plan_goto("1", exact=True),
    "redo of many": lambda s: s.plan_redo(),
    "undo beside an open turn": lambda s: s.plan_undo(2),
}
MOVES = ["undo", "redo", "goto", "switch", "revert", "apply", "restore", "ops undo"]
SAVING = ["forced undo", "merged undo", "exact goto"]
NAMING = ["branch delete", "branch rename", "checkpoint"]
SPECIAL = ["redo of many", "undo beside an open turn"]
VERBS = [*MOVES, *SAVING, *NAMING, *SPECIAL]
CALLS = [
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "fsync", "fdatasync", "syncfs", "openat"),
    *("write", "pwrite64", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "ftruncate", "fchmod"),
]

READS = ["read", "pread64", "newfstatat", "getdents64", "readlink", "readlinkat"]
DEEP = pytest.mark.deep


# The project that is moved through.


def first_state(root: Path) -> None:
    for name in ("keep", "deep/keep", "gone", "deep/gone", "place/a", "place/b/c", "thing"):
        write(root / name, name)
    write(root / "text", "".join(LINES))
    write(root / "tool", "#!/bin/sh\n")
    for name in ("gone", "text", "thing"):
        (root / name).chmod(0o600)  # private, as it must come back
    (root / "link").symlink_to("keep")
    (root / "empty").mkdir()


def every_kind(root: Path) -> None:
    """What the struck turn does."""
    (root / "text").write_text("".join(["changed\n", *LINES[1:]]))
    for name in ("gone", "deep/gone", "link", "place", "thing"):
        remove(root / name)
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("deep/keep")
    (root / "loose").symlink_to("nowhere")
    write(root / "place", "a file now")
    for name in ("thing/a", "thing/b/c", "new/deep/er/file", "new/other", "empty/filled"):
        write(root / name, f"new {name}")


def lay_out(root: Path, home: Path) -> dict[str, Files]:
    """Three turns on main, another future on main-2, and the disk after each. It stands at the tip of main."""
    saved: dict[str, Files] = {}
    first_state(root)
    with Store.open(root, create=True, home=str(home), session="s", clock=lambda: NOW) as store:
        store.header.user_name, store.header.user_email = "Ada", "ada@example.com"  # and no asking the system
        store.configure(max_file_size=store.header.max_file_size)
        session = store.session("s")
        session.take_baseline()

        def turn(prompt: str, work: Callable[[], object]) -> None:
            with session.turn(prompt) as taken:
                work()
            assert taken.commit is not None
            saved[taken.commit.hex()] = on_disk(root)

        turn("one", lambda: write(root / "one", "1"))
        turn("two", lambda: every_kind(root))
        turn("three", lambda: write(root / "text", "".join(["changed\n", *LINES[1:19], "third\n"])))
        session.move(session.plan_undo(2))
        turn("other two", lambda: (write(root / "other/file", "b"), write(root / "keep", "by the other future")))
        session.move(session.plan_switch("main"))
    return saved


def set_the_stage(session: Session, root: Path, verb: str) -> None:
    """What comes before the struck move."""
    if verb in ("redo", "ops undo"):
        session.move(session.plan_undo(2))
    elif verb == "redo of many":  # past the number from which the whole file system is synced
        with session.turn("many"):
            for number in range(SYNC_AT_ONCE + 6):
                write(root / f"many/{number % 3}/{number}", str(number))
        session.move(session.plan_undo())
    elif verb == "undo beside an open turn":
        session.store.session("t").begin("at work")
    elif verb == "apply":
        session.move(session.plan_switch("main-2"))
    elif verb == "forced undo":
        write(root / "text", "mine, and nowhere else")
        write(root / "thing/a", "mine as well")
    elif verb == "merged undo":
        write(root / "text", "".join(["changed\n", *LINES[1:10], "mine\n", *LINES[11:19], "third\n"]))
    elif verb == "exact goto":
        write(root / "mine", "made by hand")
        write(root / "keep", "edited by hand")


class Whole:
    """Files, folders, refs and documents, as one comparable value."""

    def __init__(self, home: Path, root: Path) -> None:
        self.files = on_disk(root)
        self.modes = {name: stat.S_IMODE(os.lstat(root / os.fsdecode(name)).st_mode) for name in self.files}
        self.folders = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}
        store = next(path for path in home.iterdir() if not path.name.startswith("."))
        git_dir = str(store / "store.git")
        self.refs = all_refs(git_dir)
        self.head = Path(git_dir, "HEAD").read_text()
        state = store / "state"
        self.documents = {
            str(path.relative_to(state)): path.read_text()
            for kind in ("ops", "sessions", "open")
            for path in state.glob(f"{kind}/**/*.json")
        }
        for name in self.refs:
            if name.startswith("refs/snapstore/cursor/"):
                self.refs[name] += " " + git(git_dir, "symbolic-ref", name, may_fail=True).decode().strip()

    def key(self) -> tuple[object, ...]:
        return self.files, self.modes, self.folders, self.refs, self.head, self.documents


class MoveLab:
    """One prepared project and store, both laid out anew for every run."""

    def __init__(self, folder: Path, verb: str) -> None:
        self.folder, self.verb = folder, verb
        self.root, self.files = folder / "project", folder / "files"
        self.home, self.template = folder / "stores", folder / "template"
        self.saved = lay_out(self.root, self.home)
        with self.opened() as store:
            set_the_stage(store.session("s"), self.root, verb)
        shutil.copytree(self.root, self.files, symlinks=True)
        shutil.copytree(self.home, self.template, symlinks=True)
        self.before = Whole(self.home, self.root)
        self.work()  # and all that it needs is loaded
        self.reset()
        self.calls = faults.count(self.work, [*CALLS, *READS], folder / "calls")
        self.after = Whole(self.home, self.root)
        assert self.before.key() != self.after.key(), "the step changes nothing: there is nothing to test"

    def opened(self) -> Store:
        return Store.open(self.root, home=str(self.home), clock=lambda: NOW)

    def work(self) -> None:
        with self.opened() as store:
            carry_out(store.session("s"), self.verb)

    def reset(self) -> None:
        for place, template in ((self.root, self.files), (self.home, self.template)):
            shutil.rmtree(place)
            shutil.copytree(template, place, symlinks=True)

    def strike(self, call: str, number: int, how: str, *, forever: bool = False) -> faults.Struck:
        self.reset()
        done = faults.strike(self.work, call, number, how, forever=forever)
        age_locks(self.home)
        return done

    @property
    def pending(self) -> bool:
        return _journal_is_pending(self.home)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "SNAPSTORE_HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}

    def snap(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*PROGRAM, *arguments],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def points(self, syscalls: Iterable[str] = CALLS) -> list[tuple[str, int]]:
        """The calls of the step that can be struck: all, or of a hundred alike every tenth."""
        found = [(name, range(1, self.calls.get(name, 0) + 1)) for name in syscalls]
        if self.verb == "redo of many":
            found = [(name, numbers[:: 1 + len(numbers) // 25]) for name, numbers in found]
        return [(name, number) for name, numbers in found for number in numbers]

    def side(self) -> str:
        """Which of the two states it is in: both files and refs, or it is neither."""
        found = Whole(self.home, self.root)
        if found.key() == self.before.key():
            return "old"
        assert found.key() == self.after.key(), {
            name: list(_differing(*(getattr(w, name) for w in (self.before, found, self.after))))
            for name in ("files", "modes", "folders", "refs", "head", "documents")
        }
        return "new"

    def next_command(self, *, program: bool) -> str:
        """Any command, with no help: it works, and afterwards all is old or all is new."""
        if program:
            done = self.snap("status", "--json")
            assert done.returncode == 0, done
            assert json.loads(done.stdout)["root"] == str(self.root)
        else:
            self.opened().close()
        side = self.side()
        self.assert_clean()
        return side

    def assert_clean(self) -> None:
        left = [str(path) for path in self.root.rglob(".snapstore-*")]
        assert not left, left

    def assert_all_there(self) -> None:
        """The store is whole, and every turn ever taken restores to the byte."""
        with self.opened() as store:
            assert_whole(store)
            session = store.session("s")
            for commit, files in self.saved.items():
                session.move(session.plan_goto(commit, exact=True))
                assert on_disk(self.root) == files, commit
            assert_whole(store)


def _differing(old: Any, found: Any, new: Any) -> Iterator[object]:
    if not isinstance(found, dict):
        yield found if found in (old, new) else {"old": old, "found": found, "new": new}
        return
    for name in sorted(old.keys() | found.keys() | new.keys()):
        states = old.get(name), found.get(name), new.get(name)
        if states[0] != states[2] or states[1] != states[0]:
            yield name, *states


@contextmanager
def laboratory(verb: str) -> Iterator[MoveLab]:
    with quick_folder() as folder:
        yield MoveLab(folder, verb)


def spread(points: list[Any], most: int, verb: str) -> list[Any]:
    """So many of them, evenly, beginning elsewhere for each verb."""
    step = max(1, len(points) // most)
    return points[sum(verb.encode()) % step :: step]


def strike_all(lab: MoveLab, points: Iterable[tuple[str, int]], one: Callable[[str, int], None], what: str) -> None:
    failures = []
    for name, number in points:
        try:
            one(name, number)
        except Exception as error:
            failures.append(f"{what} at {name} {number} of {lab.calls[name]} in {lab.verb}: {error!r}"[:3000])
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures)


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
        points = lab.points()
        points = points if most is None else spread(points, most, verb + error)
        what = f"{error}{' for ever' if forever else ''}"
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
            strike_all(lab, points, lambda name, number, error=error: fail_at(lab, name, number, error, False), error)


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


# 4. Durability by trace.


def normalized(text: str) -> str:
    """A trace in which every call names its files in full, wherever they were relative to a descriptor."""
    text = re.sub(r'renameat2?\(\w+<([^<>]*)>, "([^"]*)", \w+<([^<>]*)>, "([^"]*)"', r'rename("\1/\2", "\3/\4"', text)
    text = re.sub(r'symlinkat\("[^"]*", \w+<([^<>]*)>, "([^"]*)"', r'symlink("\1/\2"', text)
    text = re.sub(r'unlinkat\(\w+<([^<>]*)>, "([^"]*)", AT_REMOVEDIR', r'rmdir("\1/\2"', text)
    text = re.sub(r'(unlink|mkdir)at\(\w+<([^<>]*)>, "([^"]*)"', r'\1("\2/\3"', text)
    text = re.sub(r'openat\(\w+<([^<>]*)>, "([^/"][^"]*)"', r'openat(AT_FDCWD<\1>, "\1/\2"', text)
    return text.replace(r"\342\234\223", "success:")


def traced(folder: Path, *command: str) -> test_faults_disk.Trace:
    root, home = folder / "project", folder / "stores"
    lay_out(root, home)
    log = folder / "trace"
    under = [
        "strace",
        "--seccomp-bpf",
        "-f",
        "-y",
        "-s",
        "200",
        "-o",
        str(log),
        "-e",
        f"trace={','.join(CALLS)},writev",
    ]
    done = subprocess.run(
        [*under, *PROGRAM, *command],
        cwd=root,
        env={**os.environ, "SNAPSTORE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return test_faults_disk.Trace(normalized(log.read_text(errors="replace")), str(folder))


def until_told(trace: test_faults_disk.Trace) -> list[tuple[str, list[str]]]:
    end = next(at for at, (name, parts) in enumerate(trace.calls) if name == "write" and "success:" in parts[-1])
    return trace.calls[:end]


@needs_strace
@pytest.mark.parametrize(
    "command",
    [["undo", "2", "-y"], ["goto", "main-2:2", "-y"], ["goto", "1", "--exact", "-y"], ["revert", "2", "-y"]],
    ids=lambda command: command[0] + " exact" * ("--exact" in command),
)
def test_a_move_is_on_the_disk_before_it_is_told_S0_47_G_05(command: list[str]) -> None:
    """TESTING fault 4: new files before their rename, folders after, the journal before the first of them, refs after
    the last, and all of it before success is said."""
    with quick_folder() as folder:
        trace = traced(folder, *command)
        root = f"{folder}/project"
        assert [row for row in trace.run() if "/snapstore-merge-" not in row] == []  # scratch, gone before the move
        calls = until_told(trace)

        def at(kind: Iterable[str], where: str) -> list[int]:
            return [n for n, (name, parts) in enumerate(calls) if name in kind and re.search(where, "\0".join(parts))]

        synced_journal = max(at(["fsync"], r"/state/journal>"))
        moved = at(["rename", "unlink", "rmdir", "mkdir", "symlink"], f"{root}/")
        refs = [n for n in at(["rename"], r"\.lock\0") if re.search(r"/refs/|/HEAD", "\0".join(calls[n][1]))]
        assert moved and refs
        assert synced_journal < moved[0] <= moved[-1] < refs[0]
        for n in moved:
            name, parts = calls[n]
            path = parts[1] if name == "rename" else parts[0]
            if name == "symlink":  # a temporary: its rename counts
                continue
            folder_of = os.path.dirname(path)
            later = [p[0] for _, p in calls[n:] if _ == "fsync"]
            gone = [p[0] for k, p in calls[n:] if k == "rmdir"]
            while folder_of in gone and folder_of not in later:
                folder_of = os.path.dirname(folder_of)
            assert folder_of in later, f"{name} of {path}: {folder_of} was not synced afterwards"
        files_synced = max(at(["fsync"], f"<{root}"))
        assert files_synced < refs[0], "the refs moved before the files were safe"


def reopen_journal(home: Path) -> None:
    """As if the mark `done` had been lost: a disk may lie about what it has synced."""
    [journal] = home.glob("*/state/journal")
    with open(journal, "r+b") as file:
        assert file.read(4) == b"done"
        file.seek(0)
        file.write(b"open")


@needs_strace
@pytest.mark.parametrize("verb", VERBS)
def test_a_move_whose_end_was_not_synced_ends_the_same_again_G_05(verb: str) -> None:
    """TESTING fault 4: the journal comes back, is carried out once more, and changes nothing; edits made since stay."""
    with laboratory(verb) as lab:
        reopen_journal(lab.home)
        before = {path: os.lstat(path).st_ino for path in lab.root.rglob("*")}
        assert lab.next_command(program=False) == "new"
        assert {path: os.lstat(path).st_ino for path in lab.root.rglob("*")} == before
        if verb in NAMING:
            return
        reopen_journal(lab.home)
        remove(lab.root / "text")
        write(lab.root / "text", "edited since, by hand")
        expected = on_disk(lab.root)
        lab.opened().close()
        assert on_disk(lab.root) == expected
        lab.assert_all_there()


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_lock_files_that_somebody_left_stop_no_move_G_08(root: Path, project: Session, packed: bool) -> None:
    """TESTING fault 5: planted `*.lock` files."""
    git_dir = project.store.shadow.git_dir
    if packed:
        git(git_dir, "pack-refs", "--all", "--prune")
    for name in REFS:
        write(Path(git_dir, name), "left by a dead process\n")
        os.utime(Path(git_dir, name), (1, 1))
    end = on_disk(root)
    with Store.open(root) as store:
        session = store.session("s")
        session.move(session.plan_undo(2))
        session.move(session.plan_goto("main-2:2"))
        session.move(session.plan_switch("main"))
        assert on_disk(root) == end
        for name in REFS:
            Path(git_dir, name).unlink(missing_ok=True)
        assert_whole(store)


# 5. Recovery, both ways.


@contextmanager
def cut_short(verb: str, nth: int = 3) -> Iterator[MoveLab]:
    """A move killed right before its nth file gets its name."""
    with laboratory(verb) as lab:
        assert lab.strike("renameat", nth, "signal=SIGKILL").status == -signal.SIGKILL
        assert lab.pending
        assert on_disk(lab.root) not in (lab.before.files, lab.after.files), "nothing is half done"
        yield lab


@needs_strace
@pytest.mark.parametrize("verb", ["undo", pytest.param("revert", marks=DEEP), "exact goto"])
def test_recover_shows_a_move_that_was_cut_short_and_ends_it_either_way_S0_47(verb: str) -> None:
    """S0-47, G-05: looking changes nothing; `--back` is exactly old, `--finish` exactly new."""
    for option, side in (("--back", "old"), ("--finish", "new")):
        with cut_short(verb) as lab:
            half = Whole(lab.home, lab.root).key()
            shown = lab.snap("recover")
            assert shown.returncode == 0 and b"Interrupted:" in shown.stdout, shown
            assert b"deep/gone" in shown.stdout
            document = json.loads(lab.snap("recover", "--json").stdout)
            assert document["pending"] and {file["path"] for file in document["files"]} >= {"text", "place/a"}
            assert Whole(lab.home, lab.root).key() == half
            done = lab.snap("recover", option)
            assert done.returncode == 0, done
            assert (b"Taken back" if side == "old" else b"Finished") in done.stdout
            assert lab.side() == side
            lab.assert_clean()
            assert b"Nothing was interrupted" in lab.snap("recover").stdout
            lab.assert_all_there()


@needs_strace
@pytest.mark.parametrize("how", ["status", "recover --back", "recover --finish", "undo --json"])
def test_a_file_edited_after_the_kill_is_kept_and_named_S0_44_S0_47(how: str) -> None:
    """Neither old nor new: it is somebody's work, whichever way the move ends."""
    with cut_short("undo") as lab:
        mine = {b"text": b"edited after the kill", b"gone": b"made after the kill", b"new/other": b"mine too"}
        for path, data in mine.items():
            remove(lab.root / os.fsdecode(path))
            write(lab.root / os.fsdecode(path), data)
        done = lab.snap(*how.split())
        assert done.returncode == (0 if how != "undo --json" else done.returncode)
        said = (done.stdout if "recover" in how else done.stderr).decode()
        found = on_disk(lab.root)
        end = lab.before.files if "--back" in how else lab.after.files
        for path, data in mine.items():
            assert found[path][1] == data
            assert os.fsdecode(path) in said, said
        if not how.startswith("undo"):
            assert {path: found.get(path) for path in found.keys() | end.keys() if path not in mine} == {
                path: end.get(path) for path in found.keys() | end.keys() if path not in mine
            }
        lab.assert_clean()
        with lab.opened() as store:
            assert_whole(store)


@needs_strace
def test_a_journal_of_an_older_program_is_finished_too_S0_47() -> None:
    """Rows of three: path, old, new. An upgrade between the kill and the next command must not strand anybody."""
    with cut_short("undo") as lab:
        [path] = lab.home.glob("*/state/journal")
        data = path.read_bytes()
        body = json.loads(data[64 : 64 + int(data.split()[1])])
        older = json.dumps({**body, "tree": [row[:3] for row in body["tree"]]}).encode()
        checksum = hashlib.sha1(older).hexdigest().encode()
        path.write_bytes((b"open %d %s" % (len(older), checksum)).ljust(63) + b"\n" + older)
        assert lab.snap("status").returncode == 0
        assert on_disk(lab.root) == lab.after.files
        lab.assert_all_there()


@needs_strace
def test_a_recovery_that_is_killed_is_recovered_S0_47() -> None:
    """Killed in the move, killed again and again in the recoveries: the one that lives ends it."""
    with laboratory("undo") as lab:
        lab.strike("renameat", 2, "signal=SIGKILL")
        for name, number in (("unlinkat", 1), ("renameat", 1), ("fsync", 4), ("rename", 1)):
            done = faults.strike(lambda: lab.opened().close(), name, number, "signal=SIGKILL")
            assert done.status == -signal.SIGKILL, done
            age_locks(lab.home)
        assert lab.next_command(program=True) == "new"
        lab.assert_all_there()


def kill_on_the_way_back(lab: MoveLab, points: Iterable[tuple[str, int]]) -> None:
    def back() -> None:
        with Store.open(lab.root, home=str(lab.home), recover=False) as store:
            store.recover(back=True)

    for name, number in points:
        lab.strike("renameat", 4, "signal=SIGKILL")
        done = faults.strike(back, name, number, "signal=SIGKILL")
        age_locks(lab.home)
        assert done.status in (faults.DONE, -signal.SIGKILL), done
        lab.next_command(program=False)
        lab.assert_all_there()


@needs_strace
@pytest.mark.parametrize("verb", ["undo", "revert"])
def test_killed_on_the_way_back_it_ends_one_way_or_the_other_S0_47(verb: str) -> None:
    """Some is new, some old again: the next command still makes it exactly one of the two."""
    with laboratory(verb) as lab:
        kill_on_the_way_back(lab, [("renameat", 2), ("unlinkat", 3), ("pwrite64", 2), ("fsync", 9)])


@DEEP
@needs_strace
@pytest.mark.parametrize("verb", ["undo", "revert", "exact goto", "redo of many", "forced undo"])
def test_killed_anywhere_on_the_way_back_S0_47(verb: str) -> None:
    with laboratory(verb) as lab:
        calls = ["renameat", "unlinkat", "rename", "unlink", "pwrite64", "write", "fsync", "mkdirat", "symlinkat"]
        kill_on_the_way_back(lab, [(name, number) for name in calls for number in range(1, 30, 2)])


@needs_strace
def test_an_edit_during_a_recovery_is_kept_and_named_S0_44(monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_short("undo") as lab, monkeypatch.context() as patch:
        at_call(patch, "fsync", 1, lambda: write(lab.root / "text", "saved by a person"))
        said: list[str] = []
        Store.open(lab.root, home=str(lab.home), say=said.append).close()
        assert on_disk(lab.root) == {**lab.after.files, b"text": (b"100644", b"saved by a person")}
        assert any("text" in text for text in said), said
        lab.assert_clean()


# 6. Races.


@pytest.fixture
def project(root: Path) -> Iterator[Session]:
    home = Path(os.environ["SNAPSTORE_HOME"])
    lay_out(root, home)
    with Store.open(root) as store:
        yield store.session("s")


def at_call(patch: pytest.MonkeyPatch, call: str, nth: int, act: Callable[[], object]) -> None:
    """Does something right before the nth call of an `os` function."""
    real: Callable[..., Any] = getattr(os, call)
    calls = 0

    def struck(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            patch.setattr(os, call, real)
            act()
        return real(*arguments, **options)

    patch.setattr(os, call, struck)


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
