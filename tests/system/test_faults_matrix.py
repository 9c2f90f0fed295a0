"""Killed, or failed, at the Nth call of each kind: the store is exactly old or exactly new, and work goes on.

The faults meet one step of a turn's life, done in a fork (faults.py). The clock stands still in it, so that the commits
of a step have the same ids in every run: the new state is known beforehand, ref by ref.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faults
import pytest
from faults import NOW
from helpers import (
    all_refs,
    assert_equal,
    assert_whole,
    difference,
    git,
    in_commit,
    line,
    needs_strace,
    on_disk,
    quick_folder,
    tip,
    write,
)

from snapstore import Store
from snapstore.git.maintenance.fold import FOLD_AT
from snapstore.store.handle import failed
from snapstore.store.state import Documents
from snapstore.timeline.maintenance.check import Check

pytestmark = needs_strace


def take(store: Store, root: Path, step: str) -> None:
    """The step that is struck."""
    session = store.session("s")
    if step == "begin":
        session.begin("the next turn")
    elif step == "begin another":
        store.session("t").begin("a new session")
    elif step == "touch":
        session.touch([root / "named", root / "also/named"])
    elif step in ("end", "end folding"):
        session.end(replies=["done"])
    elif step == "end named":
        session.end(scan=False, replies=["done"])
    elif step == "cancel":
        session.cancel()
    elif step == "configure":
        store.configure(max_file_size=12345)


class State:
    """What a store says, as one comparable value."""

    def __init__(self, home: Path, root: Path) -> None:
        with Store.open(root, home=str(home)) as store:
            self.refs = all_refs(store)
            self.head = Path(store.shadow.git_dir, "HEAD").read_text()
            self.open = {turn.session: json.dumps(_plain(turn), sort_keys=True) for turn in store.open_turns()}
            self.limit = Documents(store.state).header().max_file_size

    def key(self) -> tuple[object, ...]:
        return self.refs, self.head, self.open, self.limit


def _plain(turn: Any) -> dict[str, object]:
    return {name: getattr(turn, name) for name in turn.__slots__}


class Lab:
    """One prepared store, copied for every run; the root is never written by a step."""

    def __init__(self, folder: Path, step: str) -> None:
        self.root = folder / "project"
        self.step = step
        self.template = folder / "template"
        self.runs = 0
        self.folder = folder
        self.saved: dict[str, dict[bytes, tuple[bytes, bytes]]] = {}
        self._prepare()
        self.old = State(self.template, self.root)
        home = self.copy()
        self.work(home)()  # and all that it needs is loaded
        self.new = State(home, self.root)
        assert self.old.key() != self.new.key(), "the step changes nothing: there is nothing to test"
        self.calls = faults.count(self.work(self.copy()), [*WRITES, *READS], folder / "calls")

    def _prepare(self) -> None:
        write(self.root / "file", "0")
        write(self.root / "sub/deep/file", "0")
        write(self.root / ".gitignore", "*.ignored\n")
        with Store.open(self.root, create=True, home=str(self.template), clock=lambda: NOW) as store:
            session = store.session("s")
            for number in range(3):
                turn = session.begin(f"turn {number}")
                write(self.root / "file", f"turn {number}")
                write(self.root / f"made/by/{number}", str(number))
                self.saved[turn.end().hex()] = on_disk(self.root)
            if self.step == "end folding":  # one more pack, and the small ones are put together
                packs = Path(store.shadow.git_dir, "objects/pack")
                while len(list(packs.glob("*.pack"))) < FOLD_AT - 1:
                    turn = session.begin("one more")
                    write(self.root / "file", f"pack {len(list(packs.glob('*.pack')))}")
                    self.saved[turn.end().hex()] = on_disk(self.root)
            if self.step not in ("begin", "configure"):
                turn = session.begin("the struck turn")
                if self.step == "end named":
                    turn.touch(self.root / "named", self.root / "sub/deep/file")
            write(self.root / "file", "changed in the turn")
            write(self.root / "named", "new")
            write(self.root / "sub/deep/file", "changed")
            (self.root / "made/by/0").unlink()
        for folder, _, names in os.walk(self.root):  # no longer young: a scan reads what changed, not the clock
            for name in [folder, *(os.path.join(folder, name) for name in names)]:
                os.utime(name, (NOW - 1000, NOW - 1000))

    def copy(self) -> Path:
        self.runs += 1
        home = self.folder / f"run{self.runs}"
        shutil.copytree(self.template, home, symlinks=True)
        return home

    def work(self, home: Path) -> Callable[[], None]:
        def act() -> None:
            with Store.open(self.root, home=str(home), clock=lambda: NOW) as store:
                try:
                    take(store, self.root, self.step)
                except OSError as error:
                    raise failed(error) from error  # as the command line does it

        return act

    def strike(self, syscall: str, number: int, how: str, *, forever: bool = False) -> tuple[Path, faults.Work]:
        """Run the step with a fault at its Nth call."""
        home = self.copy()
        done = faults.strike(self.work(home), syscall, number, how, forever=forever)
        faults.age_locks(home)
        return home, done

    def assert_old_or_new(self, home: Path) -> str:
        """The next command works with no help; refs, HEAD and open turns agree, as a whole."""
        said: list[str] = []
        with Store.open(self.root, home=str(home), say=said.append) as store:
            problems = Check(store).run().problems
            assert not problems, problems
        state = State(home, self.root)
        assert state.key() in (self.old.key(), self.new.key()), {
            name: (getattr(self.old, name), getattr(state, name), getattr(self.new, name))
            for name in ("refs", "head", "open", "limit")
            if getattr(state, name) not in (getattr(self.old, name), getattr(self.new, name))
            or getattr(self.old, name) != getattr(self.new, name)
        }
        return "new" if state.key() == self.new.key() else "old"

    def assert_honest(self, home: Path) -> None:
        """A file of the user's could not be read, and the step succeeded without it: then it says so by name."""
        with Store.open(self.root, home=str(home)) as store:
            problems = Check(store).run().problems
            assert not problems, problems
            if self.step not in ("begin", "begin another", "end"):
                return
            session = "t" if self.step == "begin another" else "s"
            named = {item["path"] for commit in line(store, session) for item in commit["record"].get("left_out", [])}
            wrong = difference(on_disk(self.root), in_commit(store, tip(store, session)))
            unsaid = [path for path in wrong if not any(f"{os.fsdecode(path)}/".startswith(f"{n}/") for n in named)]
            assert not unsaid, f"not in the tree as on disk, and nobody was told: {unsaid} (told: {named})"

    def assert_goes_on(self, home: Path) -> None:
        """Every earlier turn is there to the byte, the step can be taken again where it did not happen, and the next
        turn records the disk."""
        with Store.open(self.root, home=str(home)) as store:
            session = store.session("s")
            if self.step.startswith("end") and "s" in State(home, self.root).open:
                session.end()
            session.begin("afterwards")
            session.end()
            expected = {path: entry for path, entry in on_disk(self.root).items() if not path.endswith(b".ignored")}
            assert_equal(store, tip(store, "s"), expected)
            for commit, files in self.saved.items():
                assert_equal(store, commit, files)
            assert_whole(store)
            numbers = git(
                store.shadow.git_dir, "log", "--format=%(trailers:key=Snapstore-Seq,valueonly)", tip(store, "s")
            )
            sequence = [int(number) for number in numbers.split()]
            assert sequence == sorted(sequence, reverse=True)
            assert len(set(sequence)) == len(sequence)


@contextmanager
def laboratory(step: str) -> Iterator[Lab]:
    with quick_folder() as folder:
        yield Lab(folder, step)


STEPS = ["begin", "begin another", "touch", "end", "end named", "cancel", "configure"]
WRITES = ["rename", "unlink", "fsync", "write", "pwrite64", "mkdir", "link", "ftruncate", "fchmod", "flock"]
READS = ["openat", "read", "pread64", "newfstatat", "getdents64", "lseek", "readlink", "close"]


def kill_everywhere(step: str, syscalls: list[str], every: int = 1) -> None:
    with laboratory(step) as lab:
        failures = []
        for syscall in syscalls:
            for number in range(1, lab.calls.get(syscall, 0) + 1, every):
                try:
                    home, done = lab.strike(syscall, number, "signal=SIGKILL")
                    assert done.status == -signal.SIGKILL, done
                    lab.assert_old_or_new(home)
                    lab.assert_goes_on(home)
                    shutil.rmtree(home)
                except Exception as error:
                    failures.append(f"killed at {syscall} {number} of {lab.calls[syscall]} in {step}: {error!r}")
        assert not failures, "\n".join(failures)


@pytest.mark.parametrize("syscall", ["rename", "unlink", "fsync", "pwrite64", "write"])
@pytest.mark.parametrize("step", ["begin", "touch", "end", "end named"])
def test_killed_at_any_call_it_is_old_or_new_and_goes_on_S0_47(step: str, syscall: str) -> None:
    kill_everywhere(step, [syscall] if syscall != "write" else ["write", "mkdir", "link", "ftruncate"])


def test_killed_while_packs_are_put_together_nothing_is_lost_S0_47() -> None:
    """The folded pack is in place before the first of its parts goes."""
    with laboratory("end folding") as lab:
        assert lab.calls["unlink"] > 2 * (FOLD_AT - 1)
    kill_everywhere("end folding", ["rename", "fsync"], every=2)
    kill_everywhere("end folding", ["unlink"], every=11)


@pytest.mark.deep
def test_killed_at_any_call_while_packs_are_put_together_nothing_is_lost_S0_47() -> None:
    kill_everywhere("end folding", [*WRITES, "openat"])


@pytest.mark.deep
@pytest.mark.parametrize("syscall", [*WRITES, "openat", "close"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_call_of_any_kind_it_is_old_or_new_S0_47(step: str, syscall: str) -> None:
    kill_everywhere(step, [syscall])


def interrupt_everywhere(step: str, syscalls: list[str]) -> None:
    with laboratory(step) as lab:
        failures = []
        for syscall in syscalls:
            for number in range(1, lab.calls.get(syscall, 0) + 1):
                try:
                    home, done = lab.strike(syscall, number, "signal=SIGINT")
                    assert done.status in (faults.DONE, faults.REFUSED, faults.INTERRUPTED), done
                    lab.assert_old_or_new(home)
                    lab.assert_goes_on(home)
                    shutil.rmtree(home)
                except Exception as error:
                    failures.append(f"Ctrl-C at {syscall} {number} of {lab.calls[syscall]} in {step}: {error!r}")
        assert not failures, "\n".join(failures)


@pytest.mark.parametrize("step", ["begin", "end"])
def test_interrupted_by_ctrl_c_at_any_call_it_is_old_or_new_and_goes_on_S0_47(step: str) -> None:
    """Python goes on unwinding after the signal: what it tidies up on the way out must not be needed any more."""
    interrupt_everywhere(step, ["rename", "fsync", "pwrite64", "unlink", "write"])


@pytest.mark.deep
@pytest.mark.parametrize("step", STEPS)
def test_interrupted_by_ctrl_c_at_every_call_of_every_kind_S0_47(step: str) -> None:
    interrupt_everywhere(step, [*WRITES, "openat", "close", "newfstatat", "read", "pread64"])


def fail_everywhere(step: str, syscalls: list[str], errors: list[str], forever: list[bool], every: int = 1) -> None:
    with laboratory(step) as lab:
        failures = []
        for syscall in syscalls:
            for number in range(1, lab.calls.get(syscall, 0) + 1, every):
                for error, always in itertools.product(errors, forever):
                    try:
                        _fail_once(lab, syscall, number, error, always)
                    except Exception as caught:
                        failures.append(f"{error} at {syscall} {number}{'+' if always else ''} in {step}: {caught!r}")
        assert not failures, "\n".join(failures)


def _fail_once(lab: Lab, syscall: str, number: int, error: str, always: bool) -> None:
    home, done = lab.strike(syscall, number, f"error={error}", forever=always)
    assert done.status in (faults.DONE, faults.REFUSED), done
    said = done.error if done.status == faults.REFUSED else {}
    assert not said or (said["message"] and said["hint"]), said
    before = _journal_is_pending(home)
    if done.status == faults.DONE and syscall in READS and State(home, lab.root).key() != lab.new.key():
        lab.assert_honest(home)
        lab.assert_goes_on(home)
        shutil.rmtree(home)
        return
    outcome = lab.assert_old_or_new(home)
    if done.status == faults.DONE:
        assert outcome == "new", "it said success"
    elif outcome == "new":
        # Refused, and yet it happened: only where the journal was in place and the next command finished the job,
        # and then the refusal said so.
        assert before, f"an error was reported for what had been done: {said}"
        assert said["error"] == "interrupted", said
    lab.assert_goes_on(home)
    shutil.rmtree(home)


def _journal_is_pending(home: Path) -> bool:
    state = next(path for path in home.iterdir() if not path.name.startswith(".")) / "state"
    return (state / "journal").exists() and (state / "journal").read_bytes().startswith(b"open")


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("step", ["begin", "touch", "end"])
def test_an_error_of_the_system_is_a_refusal_and_nothing_is_half_recorded_G_27(step: str, error: str) -> None:
    calls = ["rename", "fsync", "pwrite64", "write"] if error == "ENOSPC" else ["rename", "unlink", "fsync"]
    fail_everywhere(step, calls, [error], [False])


@pytest.mark.parametrize("step", ["begin", "end"])
def test_an_error_of_a_close_never_reports_as_failed_what_was_done_G_23(step: str) -> None:
    """What is synced is done, whatever the close of its descriptor says."""
    fail_everywhere(step, ["close"], ["EIO"], [False])


@pytest.mark.parametrize("error", ["ENOSPC", "EROFS", "EMFILE"])
def test_an_error_that_stays_is_a_refusal_and_nothing_is_half_recorded_G_27(error: str) -> None:
    calls = {"ENOSPC": ["write", "pwrite64"], "EROFS": ["rename", "unlink", "mkdir"], "EMFILE": ["openat"]}[error]
    fail_everywhere("end", calls, [error], [True], every=3 if error == "EMFILE" else 1)


@pytest.mark.deep
@pytest.mark.parametrize("syscall", WRITES)
@pytest.mark.parametrize("step", STEPS)
def test_every_error_of_every_writing_call_once_and_for_ever_G_27(step: str, syscall: str) -> None:
    fail_everywhere(step, [syscall], ["EIO", "ENOSPC", "EACCES", "EROFS", "EMFILE"], [False, True])


@pytest.mark.deep
@pytest.mark.parametrize("syscall", READS)
@pytest.mark.parametrize("step", STEPS)
def test_errors_of_every_reading_call_once_and_for_ever_G_27_G_30(step: str, syscall: str) -> None:
    """A user's file that cannot be read is left out by name; a store that cannot be read stops the step."""
    errors = ["EIO"] if syscall == "close" else ["EIO", "EACCES", "EMFILE"]
    fail_everywhere(step, [syscall], errors, [False], every=2)
    fail_everywhere(step, [syscall], ["EIO"], [True], every=5)
