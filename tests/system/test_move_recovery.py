"""Moves are on the disk before they are told, and those cut short are finished or taken back."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import faults
import pytest
import test_faults_disk
from commands import PROGRAM
from faults import age_locks
from helpers import assert_whole, git, needs_strace, on_disk, quick_folder, remove, write
from move_lab import CALLS, DEEP, NAMING, VERBS, MoveLab, Whole, at_call, laboratory, lay_out, project
from test_faults_locks import REFS

from snapstore import Session, Store

__all__ = ["project"]  # fixtures


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
            assert (b"Undone: " if side == "old" else b"Finished: ") in done.stdout
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
@pytest.mark.parametrize("verb", ["undo", "forced undo", "revert"])
def test_a_move_of_which_only_the_mark_is_missing_can_still_be_taken_back_S0_47(verb: str) -> None:
    """The record of the operation and the session's state are new already: they go back with files and refs."""
    with laboratory(verb) as lab:
        done = lab.strike("pwrite64", lab.calls["pwrite64"], "signal=SIGKILL")
        assert done.status == -signal.SIGKILL and lab.pending
        assert Whole(lab.home, lab.root).documents == lab.after.documents
        with Store.open(lab.root, home=str(lab.home), recover=False) as store:
            store.recover(back=True)
        assert lab.side() == "old"
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
