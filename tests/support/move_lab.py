"""A laboratory for moves that are killed, failed, interrupted and raced.

The struck move is of every kind: files written, removed, made executable, links, a folder that becomes a file and back,
folders made and emptied. The clock stands still in it, so that the new state is known beforehand, file by file and ref
by ref. Project and store are laid out anew for every strike.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faults
import pytest
from commands import PROGRAM
from faults import NOW, age_locks
from helpers import Files, all_refs, assert_whole, git, on_disk, quick_folder, remove, write
from test_faults_matrix import _journal_is_pending

from snapstore import Session, Store
from snapstore.base.platform import SYNC_AT_ONCE
from snapstore.store.handle import failed
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import FORCE, MERGE, Plan, Policy

LINES = [f"{number}\n" for number in range(20)]


def carry_out(session: Session, verb: str) -> None:
    """Carry out the move under test."""
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
    """Do what the turn under test does."""
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
    """Do what precedes the move under test."""
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
        self.refs = _refs_as_git_reads_them(git_dir)
        self.head = Path(git_dir, "HEAD").read_text()
        state = store / "state"
        self.documents = {
            str(path.relative_to(state)): path.read_text()
            for kind in ("ops", "sessions", "open")
            for path in state.glob(f"{kind}/**/*.json")
        }

    def key(self) -> tuple[object, ...]:
        return self.files, self.modes, self.folders, self.refs, self.head, self.documents


_READ_BY_GIT: dict[tuple[tuple[str, bytes], ...], dict[str, str]] = {}


def _refs_as_git_reads_them(git_dir: str) -> dict[str, str]:
    """Return all refs, and where a symbolic one leads. git is not asked twice about the same bytes."""
    places = [Path(git_dir, "packed-refs"), *sorted(Path(git_dir, "refs").rglob("*"))]
    written = tuple((str(path.relative_to(git_dir)), path.read_bytes()) for path in places if path.is_file())
    if written not in _READ_BY_GIT:
        refs = all_refs(git_dir)
        for name in refs:
            if name.startswith("refs/snapstore/cursor/"):
                refs[name] += " " + git(git_dir, "symbolic-ref", name, may_fail=True).decode().strip()
        _READ_BY_GIT[written] = refs
    return _READ_BY_GIT[written]


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

    def strike(self, call: str, number: int, how: str, *, forever: bool = False) -> faults.Work:
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
        """Return which of the two states files and refs are in; fail if neither."""
        found = Whole(self.home, self.root)
        if found.key() == self.before.key():
            return "old"
        assert found.key() == self.after.key(), {
            name: list(_differing(*(getattr(w, name) for w in (self.before, found, self.after))))
            for name in ("files", "modes", "folders", "refs", "head", "documents")
        }
        return "new"

    def next_command(self, *, program: bool) -> str:
        """Run any command: it must work and leave everything old or everything new."""
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
        """Assert that the store is intact and that every turn restores byte for byte."""
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


def some_of(points: list[tuple[str, int]], what: str) -> list[tuple[str, int]]:
    """Return all of them, or with STRIKES_PER_CALL=5 at most so many of each call; STRIKES_SEED chooses others."""
    most, chosen = int(os.environ.get("STRIKES_PER_CALL", len(points))), []
    chance = random.Random(f"{os.environ.get('STRIKES_SEED', '0')} {what}")
    for call in dict.fromkeys(name for name, _ in points):
        alike = [point for point in points if point[0] == call]
        chosen += sorted(chance.sample(alike, min(most, len(alike))))
    return chosen


def strike_all(lab: MoveLab, points: Iterable[tuple[str, int]], one: Callable[[str, int], None], what: str) -> None:
    failures = []
    for name, number in points:
        try:
            one(name, number)
        except Exception as error:
            failures.append(f"{what} at {name} {number} of {lab.calls[name]} in {lab.verb}: {error!r}"[:3000])
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures)


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
