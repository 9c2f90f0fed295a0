"""Moves as a person or a program meets them: what they print, ask and refuse, and what is on disk afterwards."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agents import Claude
from commands import PROGRAM, assert_record, snap, snap_json
from garden import Garden
from helpers import bit_by_bit, child, on_disk
from terminal_text import COLOUR, HARMFUL, HOSTILE

from snapstore import Store
from snapstore.cli.paths import shell_word
from snapstore.surface.records.moves import MoveRecord, OperationsRecord, RecoveryRecord

LINES = "".join(f"{number}\n" for number in range(1, 21))


def turn(root: Path, prompt: str, **files: str | None) -> None:
    """A turn that writes files, or with None removes them. `__` stands for a dot."""
    snap(root, "turn", "begin", "-m", prompt, "--agent", "poet")
    for name, text in files.items():
        path = root / name.replace("__", ".")
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    snap(root, "turn", "end", "-m", f"Done: {prompt}")


def three_turns(root: Path) -> None:
    (root / "a.py").write_text("one\n")
    (root / "b.py").write_text(LINES)
    snap(root, "init")
    turn(root, "Add a login function", a__py="one\nlogin\n", new__txt="new\n")
    turn(root, "Fix the parser\nand more", b__py=LINES.replace("3\n", "three\n", 1))
    turn(root, "Write tests", tests__py="tests\n", new__txt=None)


def read(root: Path) -> dict[str, str]:
    return {path.decode(): data.decode() for path, (_, data) in on_disk(root).items()}


@pytest.fixture
def told(root: Path) -> Path:
    """A project with three turns."""
    three_turns(root)
    return root


# What is told.


def test_undo_says_what_was_undone_where_you_stand_and_how_to_go_back(told: Path) -> None:
    """S2-01, S2-05, S2-07, S2-19, C26, G-12: the words of S2, both counts, the place, the prompt, the way back."""
    done = snap(told, "undo", "2")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "✓ Undone 2 turn(s): turns 2 to 3",
        "  Files reverted: b.py, new.txt, tests.py",
        "  Removed: tests.py",
        "  Messages removed: 4",
        "Now at turn 1 on main: Add a login function",
        "Undone prompt: Fix the parser",
        "Redo: `snapstore redo 2` · Undo this move: `snapstore ops undo 1`",
    ]
    assert read(told) == {"a.py": "one\nlogin\n", "b.py": LINES, "new.txt": "new\n"}


def test_undo_redo_and_back_are_byte_identical(told: Path) -> None:
    """S0-01, S0-19, S1-08, S2-25, S1-56: and every command that is offered works as it stands."""
    after = on_disk(told)
    said = snap(told, "undo").stdout
    assert "Files reverted: new.txt, tests.py" in said
    assert "Redo: `snapstore redo`" in said
    assert snap(told, "redo").stdout.splitlines() == [
        "✓ Redone 1 turn(s): turn 3, Write tests",
        "  Files changed: new.txt, tests.py",
        "  Removed: new.txt",
        "Now at turn 3 on main: Write tests",
        "Undo this move: `snapstore ops undo 2`",
    ]
    assert on_disk(told) == after
    assert "Now at the start of main, before the first turn" in snap(told, "undo", "3").stdout
    assert read(told) == {"a.py": "one\n", "b.py": LINES}
    snap(told, "redo", "--all")
    assert on_disk(told) == after


def test_a_turn_that_changed_nothing_claims_nothing(told: Path) -> None:
    """G-23, G-26."""
    turn(told, "Just talk")
    (told / "b.py").write_text("mine\n")
    said = snap(told, "undo").stdout
    assert "✓ Undone 1 turn(s): turn 4, Just talk\n  Messages removed: 2\n" in said
    assert "Files" not in said
    assert (told / "b.py").read_text() == "mine\n"


def test_nothing_to_undo_or_redo_is_no_error(root: Path) -> None:
    """S2-13, S2-27: all zero, status 0."""
    snap(root, "init")
    assert snap(root, "undo").stdout == "Nothing to undo\n"
    assert snap(root, "undo", "5").stdout == "Nothing to undo\n"
    assert snap(root, "redo").stdout == "Nothing to redo\n"
    assert snap(root, "redo", "--all").stdout == "Nothing to redo\n"
    for verb in ("undo", "redo"):
        document = snap_json(root, verb, "--json")
        assert_record(MoveRecord, document)
        assert (document["turns_undone"], document["turns_redone"], document["messages_removed"]) == (0, 0, 0)
        assert (document["files_reverted"], document["snapshot_restored"], document["operation"]) == ([], None, None)
    assert snap(root, "ops").stdout.startswith("No operations yet")


def test_the_json_of_a_move(told: Path) -> None:
    """S2-12, S2-24."""
    document = snap_json(told, "undo", "2", "--json")
    assert_record(MoveRecord, document)
    assert (document["move"], document["turns_undone"], document["turns_redone"]) == ("undo", 2, 0)
    assert document["messages_removed"] == 4
    assert document["files_reverted"] == ["b.py", "new.txt", "tests.py"]
    assert (document["written"], document["removed"]) == (["b.py", "new.txt"], ["tests.py"])
    assert (document["kept"], document["skipped"], document["conflicts"]) == ([], [], [])
    assert (document["from"]["turn"], document["to"]["turn"], document["turn"]) == (3, 1, 1)
    assert document["snapshot_restored"] == document["to"]["commit"]
    assert document["prompt"] == "Fix the parser\nand more"
    assert (document["preview"], document["operation"], document["safety_ref"]) == (False, 1, None)


def test_every_kind_of_move_tells_in_its_own_words(told: Path) -> None:
    """S1-01, S1-12, S0-30, S3-14, S3-15, G-39."""

    def first(*words: str) -> str:
        return snap(told, *words).stdout.splitlines()[0]

    assert first("rewind", "1") == "✓ Undone 2 turn(s): turns 2 to 3"
    assert first("goto", "1") == "You are there already."
    turn(told, "Another way", c="c\n")
    assert first("switch", "main") == "✓ Switched to main: undone 1 turn(s) and redone 2 turn(s)"
    assert (told / "tests.py").exists() and not (told / "c").exists()
    said = snap(told, "switch", "main-2").stdout
    assert "✓ Switched to main-2: undone 2 turn(s) and redone 1 turn(s)" in said
    assert "Now at turn 2 on main-2: Another way" in said
    assert "Now at turn 3 on main: Write tests" in snap(told, "earlier").stdout
    assert "Now at turn 2 on main-2: Another way" in snap(told, "later", "1").stdout
    assert first("later") == "There is nothing later."
    assert first("earlier", "1d").startswith("✓ Undone 2 turn(s)")
    assert "Another way" in snap(told, "later", "1d").stdout
    assert first("apply", "main:2") == "✓ Applied turn 2: Fix the parser"
    assert first("apply", "main:2") == "Nothing to apply: its changes are here already."
    assert first("revert", "2") == "✓ Reverted turn 2: Another way"
    assert first("restore", "main:3", "--", "tests.py") == "✓ Restored tests.py from turn 3"
    assert first("restore", "main:3", "--", "tests.py").startswith("Nothing to restore")
    assert read(told) == {
        "a.py": "one\nlogin\n",
        "b.py": LINES.replace("3\n", "three\n", 1),
        "new.txt": "new\n",
        "tests.py": "tests\n",
    }


def test_earlier_and_later_by_time_bring_the_files_of_that_time(root: Path) -> None:
    """S3-16, S3-17: turns of 10:02, 10:04, 10:06 and, beside the second, 10:08; times count from where one stands."""
    garden = Garden(root)
    for name in ("1", "2", "3"):
        garden.turn(name, minutes=2)
    snap(root, "goto", "2", "-y")
    garden.turn("beside", minutes=2)
    for words, text in (
        ("earlier 3m", "2"),
        ("earlier 90s", "1"),
        ("later 4m", "3"),
        ("later 119s", "3"),
        ("later 120s", "beside"),
        ("earlier 2m", "3"),
        ("earlier 5m", None),
    ):
        snap(root, *words.split(), "-y")
        assert read(root).get("file") == text, words


def test_nothing_moves_unless_a_move_is_asked_for(told: Path, tmp_path: Path, git: Callable[..., str]) -> None:
    """S0-52: no other command, no agent's hook and no pull undoes or redoes anything, here with a turn undone."""
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    snap(told, "remote", "add", "origin", str(tmp_path / "hub.git"))
    turn(told, "Gone back from", gone__txt="gone\n")
    snap(told, "undo", "-y")
    (told / "b.py").write_text("mine\n")
    whole = on_disk(told)

    def cursor() -> object:
        with Store.open(told) as store:
            return store.shadow.refs.value("refs/snapstore/cursor/shell")

    there = cursor()
    commands = (
        *("status", "log", "show 2", "diff", "tree", "undolist", "sessions", "ops", "recover", "branches"),
        *("undo --preview", "redo --preview", "goto 1 --preview", "branch rename main first", "compare first first"),
        *("checkpoint pin 1", "checkpoints", "remote", "push", "pull", f"export {tmp_path}/all.bundle"),
        *("du", "stats", "check", "gc", "prune", "init", "connect claude", "config", "shell-init bash"),
        *("completion bash", "daemon status", "help", "version", "git log"),
    )
    for command in commands:
        snap(told, *command.split())
        assert (on_disk(told), cursor()) == (whole, there), command
    agent = Claude(told)
    for source in ("startup", "resume", "clear", "compact"):
        agent.start(source)
    agent.whole_turn("Hello", [])
    agent.end()
    assert (on_disk(told), cursor()) == (whole, there)


def test_files_or_conversation_alone(told: Path) -> None:
    """C6, S1-48, G-13."""
    after = on_disk(told)
    said = snap(told, "undo", "2", "--conversation-only").stdout
    assert said.startswith(
        "✓ Undone 2 turn(s), conversation only: turns 2 to 3\n  Messages removed: 4\nNote: Files were left as they are"
    )
    assert on_disk(told) == after
    snap(told, "redo", "2", "--conversation-only")
    said = snap(told, "undo", "--files-only").stdout
    assert "✓ Undone 1 turn(s), files only: turn 3, Write tests\n  Files reverted: new.txt, tests.py\n" in said
    assert "Messages removed" not in said and "Undone prompt" not in said and "Redo" not in said
    assert "Now at turn 3 on main: Write tests" in said
    assert not (told / "tests.py").exists()


def test_what_git_did_meanwhile_and_what_was_left_out_is_said(root: Path, git: Callable[..., str]) -> None:
    """G-29, G-30."""
    git(root, "init", "-q")
    snap(root, "init", "--max-file-size", "1kB")
    snap(root, "turn", "begin")
    (root / "a").write_text("1")
    (root / "large").write_text("x" * 5000)
    git(root, "add", "a")
    git(root, "commit", "-qm", "by the agent")
    snap(root, "turn", "end")
    said = snap(root, "undo").stdout
    changed = "Your own git repository changed in turn 1 (HEAD, the index, branches); that is not undone."
    assert f"\nNote: {changed}\n" in said
    assert re.search(r"^Note: .*large", said, re.M)
    assert git(root, "log", "--format=%s").strip() == "by the agent"


def test_a_move_that_cannot_be_told_about_was_done_all_the_same(told: Path) -> None:
    """G-23: a full disk under the output is not a failed undo."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, "undo"], cwd=told, stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False
        )
    assert done.returncode != 0
    assert b"undo succeeded, but its result could not be shown: No space left" in done.stderr
    assert b"no file was changed" not in done.stderr
    assert not (told / "tests.py").exists()
    assert snap(told, "redo").stdout.startswith("✓ Redone 1 turn(s)")


# Bad input.

BAD = ["0", "1e9", "10x", "", "-5", "1.5", "²", "٣", " 1", "9" * 30, "all"]


@pytest.mark.parametrize("number", BAD)
def test_what_is_no_number_of_turns_is_refused_and_nothing_touched(told: Path, number: str) -> None:
    before = bit_by_bit(told)
    for words in (["undo"], ["redo"], ["earlier"], ["later"], ["ops", "undo"]):
        done = snap(told, *words, "--", number, status=2)
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 2
        assert snap_json(told, *words, "--json", "--", number, status=2)["error"] == "usage"
    assert bit_by_bit(told) == before
    assert snap_json(told, "ops", "--json") == {"operations": []}


def test_a_dash_before_the_number_is_refused_too(told: Path) -> None:
    assert "-1" in snap(told, "undo", "-1", status=2).stderr
    assert "-r" in snap(told, "switch", "-rf", status=2).stderr


@pytest.mark.parametrize("step", ["0s", "s", "10w", "-3m", "1.5h", "3 m", "9" * 30 + "s"])
def test_what_is_no_time_is_refused(told: Path, step: str) -> None:
    assert "90s, 10m, 2h" in snap(told, "earlier", "--", step, status=2).stderr


def test_more_than_there_are_says_how_many_there_are_M_13(told: Path) -> None:
    document = snap_json(told, "undo", "4", "--json")
    assert (document["turns_undone"], document["notes"]) == (3, ["There were only 3 turns to undo."])
    assert "Note: There were only 3 turns to redo." in snap(told, "redo", str(10**17)).stdout
    snap(told, "undo")
    assert "Note: There was only 1 turn to redo." in snap(told, "redo", "2").stdout


EXCLUSIVE = [
    ["undo", "--merge", "--force"],
    ["undo", "--force", "--skip"],
    ["undo", "--merge=markers", "--skip"],
    ["undo", "--merge=both"],
    ["undo", "--merge="],
    ["undo", "--files-only", "--conversation-only"],
    ["undo", "--exact", "--conversation-only"],
    ["undo", "--preview", "--cancel"],
    ["undo", "--ours", "tests.py", "--theirs", "tests.py"],
    ["undo", "--ours", "b.py"],
    ["undo", "--theirs", "."],
    ["redo", "--all", "2"],
    ["restore"],
    ["restore", "1", "--"],
    ["restore", "1", "2", "--", "a.py"],
    ["goto"],
    ["switch"],
    ["ops", "bogus"],
    ["recover", "--finish", "--back"],
]


@pytest.mark.parametrize("arguments", EXCLUSIVE, ids=" ".join)
def test_a_request_that_makes_no_sense_is_explained(told: Path, arguments: list[str]) -> None:
    before = bit_by_bit(told)
    done = snap(told, *arguments, status=2)
    assert len(done.stderr.splitlines()) == 2 and done.stdout == ""
    assert snap_json(told, "--json", *arguments, status=2)["error"] == "usage"
    assert bit_by_bit(told) == before


def test_unknown_targets_and_unsafe_paths(told: Path) -> None:
    """S1-27, G-09."""
    assert snap(told, "goto", "9", status=16).stderr.startswith("snapstore: goto failed: there is no turn 9")
    assert snap(told, "switch", "nowhere", status=16).stderr.startswith("snapstore: switch failed: ")
    snap(told, "revert", "0", status=16)
    snap(told, "apply", "deadbeef", status=16)
    snap(told, "ops", "undo", "7", status=16)
    snap(told, "restore", "1", "--", "../elsewhere", status=15)
    snap(told, "undo", "--ours", "/etc/passwd", status=15)
    assert "undo failed: no store" in snap(told.parent, "undo", status=13).stderr


# Conflicts.


def edited(root: Path) -> None:
    """A person's edits on top of the turns: one that can be merged, one that cannot."""
    (root / "b.py").write_text((root / "b.py").read_text().replace("15\n", "fifteen\n"))
    (root / "tests.py").write_text("tests\nmine\n")


def test_a_conflict_shows_the_lines_that_differ_and_the_commands_that_resolve_it(told: Path) -> None:
    """S0-44, S0-45, S0-46, S2-20, C11, G-38: nothing is written, not even what could be merged."""
    edited(told)
    before = bit_by_bit(told)
    done = snap(told, "undo", "2", status=10)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[:5] == [
        "snapstore: undo failed: 1 file changed since: tests.py",
        "  tests.py  changed by edits since turn 3; the move would remove it",
        "      cannot be merged: deleted on one side, changed on the other",
        "      +mine",
        "Nothing was written. To resolve:",
    ]
    assert [line.split("  ")[1] for line in lines[5:]] == [
        "snapstore undo 2 --ours tests.py",
        "snapstore undo 2 --theirs tests.py",
        "snapstore tui",
    ]
    document = snap_json(told, "undo", "2", "--json", status=10)
    assert (document["error"], [item["path"] for item in document["conflicts"]]) == ("conflict", ["tests.py"])
    both = snap(told, "undo", "2", "--no-merge", status=10).stderr.splitlines()
    assert both[0] == "snapstore: undo failed: 2 files changed since: b.py, tests.py"
    assert both[2:6] == ["      -three", "      +3", "      -fifteen", "      +15"]
    assert not re.search(r"\b[0-9a-f]{8}\b", "\n".join(both))
    assert "  snapstore undo 2 --no-merge" not in "\n".join(both)
    assert bit_by_bit(told) == before


def test_the_command_offered_settles_it_and_loses_nothing(told: Path) -> None:
    """G-38, M-19: what merges cleanly is merged by the way, and named."""
    edited(told)
    offered = snap(told, "undo", "2", status=10).stderr.splitlines()[5].strip().partition("  ")[0]
    said = snap(told, *offered.split()[1:]).stdout
    assert "  Merged: b.py\n" in said
    assert "  Skipped, your version is kept: tests.py\n" in said
    assert (told / "b.py").read_text() == LINES.replace("15\n", "fifteen\n")
    assert (told / "tests.py").read_text() == "tests\nmine\n"


def test_an_edit_elsewhere_in_the_file_does_not_stop_an_undo_M_19(told: Path) -> None:
    """It is merged, saved first and named; `--no-merge` and the setting refuse."""
    (told / "b.py").write_text((told / "b.py").read_text().replace("15\n", "fifteen\n"))
    mine = (told / "b.py").read_text()
    assert "  merge      b.py  changed by edits since turn 3\n" in snap(told, "undo", "2", "--preview").stdout
    said = snap(told, "undo", "2").stdout
    assert "  Merged: b.py\n" in said
    assert (told / "b.py").read_text() == LINES.replace("15\n", "fifteen\n")
    command = re.search(r"Get it back: `snapstore (restore \w+ -- b.py)`", said)
    assert command is not None and "auto_merge = true" in snap(told, "config").stdout
    snap(told, "redo", "2")
    assert (told / "b.py").read_text() == mine
    snap(told, "config", "set", "auto_merge", "false")
    assert snap_json(told, "undo", "2", "--json", status=10)["conflicts"][0]["path"] == "b.py"
    assert snap_json(told, "undo", "2", "--merge", "--json")["merged"] == ["b.py"]


def test_a_missing_file_comes_back_without_a_flag_M_18(told: Path) -> None:
    (told / "b.py").unlink()
    (told / "a.py").unlink()
    assert snap_json(told, "restore", "3", "--json", "--", "b.py")["written"] == ["b.py"]
    assert (told / "b.py").read_text() == LINES.replace("3\n", "three\n", 1)
    (told / "b.py").unlink()
    assert snap_json(told, "undo", "3", "--json")["conflicts"] == []
    assert (told / "b.py").read_text() == LINES


def test_forced_files_are_saved_and_come_back_by_the_command_that_is_printed(told: Path) -> None:
    """C11: force must itself be undoable."""
    edited(told)
    mine = (told / "b.py").read_text()
    said = snap(told, "undo", "2", "--force").stdout
    assert "  Overwritten, your version is saved: b.py, tests.py\n" in said
    assert (told / "b.py").read_text() == LINES and not (told / "tests.py").exists()
    command = re.search(r"Get it back: `snapstore (restore \w+ -- b.py tests.py)`", said)
    assert command is not None
    snap(told, *command[1].split())
    assert (told / "b.py").read_text() == mine
    assert (told / "tests.py").read_text() == "tests\nmine\n"


def test_the_printed_command_works_from_a_folder_and_with_odd_names(root: Path) -> None:
    """G-36."""
    names = ["sub/plain", "it's $(here)", "tab\there", "caf\udce9"]
    (root / "sub").mkdir()
    snap(root, "init")
    turn(root, "Odd names", **dict.fromkeys(names, "agent\n"))
    for name in names:
        (root / name).write_text("mine\n")
    said = snap(root / "sub", "undo", "--force").stdout
    command = re.search(r"Get it back: `snapstore (.*)`", said)
    assert command is not None and not HARMFUL.search(said)
    bash = shutil.which("bash")
    assert bash is not None
    subprocess.run([bash, "-c", f"{' '.join(PROGRAM)} {command[1]}"], cwd=root / "sub", check=True, capture_output=True)
    assert {(root / name).read_text() for name in names} == {"mine\n"}


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b\\', "\x1b[31m", "é", "", "-x", "a\n'b'\\"])
def test_a_word_for_the_shell_is_read_back_by_it(name: str) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, "-c", f"printf %s {shell_word(name)}"], capture_output=True, check=True)
    assert done.stdout == name.encode()
    assert shell_word(name).isprintable()


def test_a_merge_that_clashes_is_refused_unless_markers_are_wanted(told: Path) -> None:
    (told / "b.py").write_text(LINES.replace("3\n", "drei\n", 1))
    done = snap(told, "undo", "2", "--merge", status=10)
    assert "cannot be merged: both sides changed the same lines" in done.stderr
    assert "  snapstore undo 2 --merge=markers  " in done.stderr
    assert "--merge " not in done.stderr
    said = snap(told, "undo", "2", "--merge=markers").stdout
    assert "  Merged, with conflict markers: b.py\n" in said
    assert "<<<<<<< " in (told / "b.py").read_text()


def test_options_given_are_part_of_the_command_that_is_offered(told: Path) -> None:
    edited(told)
    offered = snap(told, "goto", "1", "--theirs", "tests.py", "--files-only", "--no-merge", status=10).stderr
    assert "  snapstore goto 1 --files-only --theirs tests.py --merge  " in offered
    snap(told, "turn", "begin", "--session", "other")
    snap(told, "turn", "end", "--session", "other")
    refused = snap(told, "undo", "2", "--session", "shell", status=10).stderr
    assert "  snapstore undo 2 --session shell --ours tests.py  " in refused


def test_the_value_of_merge_comes_after_an_equals_sign_only(told: Path) -> None:
    """`--merge 2` merges two turns, in both parsers."""
    edited(told)
    said = snap(told, "undo", "--merge", "2", "--ours", "tests.py").stdout
    assert "✓ Undone 2 turn(s)" in said
    assert "Merge files" in snap(told, "undo", "--merge", "--help").stdout
    assert "'x' is not a number" in snap(told, "undo", "--merge", "--", "x", status=2).stderr


def test_already_as_wanted_is_said_and_not_counted(told: Path) -> None:
    (told / "tests.py").unlink()
    said = snap(told, "undo").stdout
    assert "  Files reverted: new.txt\n" in said
    assert "  Already in that state: tests.py\n" in said


# Previews.


def test_a_preview_lists_everything_and_changes_nothing(told: Path) -> None:
    edited(told)
    before, folder = bit_by_bit(told), Store.open(told).folder
    store = bit_by_bit(Path(folder))
    del store["state"]  # its time: merges are made in a folder there, gone again
    done = snap(told, "undo", "2", "--merge", "--preview")
    lines = done.stdout.splitlines()
    assert lines[0] == "Would undo 2 turns and end at turn 1 on main: Add a login function"
    assert lines[1].startswith("  conflict   tests.py  changed by edits since turn 3; deleted on one side")
    assert lines[2].startswith("  merge      b.py  changed by edits since turn 3")
    assert "  create     new.txt" in lines
    assert lines[-1] == "Nothing was changed."
    document = snap_json(told, "undo", "2", "--preview", "--json")
    assert_record(MoveRecord, document)
    assert document["preview"] is True
    assert {item["path"] for item in document["conflicts"]} == {"b.py", "tests.py"}
    assert bit_by_bit(told) == before
    after = bit_by_bit(Path(folder))
    del after["state"]
    assert after == store


# Open turns.


def test_an_open_turn_stands_in_the_way_unless_cancelled(told: Path) -> None:
    """C22, S1-46."""
    snap(told, "turn", "begin", "-m", "Half done")
    (told / "half").write_text("half\n")
    assert "--cancel" in snap(told, "undo", status=11).stderr
    assert (told / "half").exists()
    said = snap(told, "undo", "--cancel").stdout
    assert "Files reverted: half" in said
    assert not (told / "half").exists()
    assert "[undone, interrupted]" in snap(told, "log").stdout
    snap(told, "redo")
    assert (told / "half").read_text() == "half\n"


# The question.


def at_terminal(folder: Path, answer: bytes, *arguments: str) -> tuple[int, str]:
    """A person at a terminal who types an answer. Gives the exit status and what was on the screen."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, answer)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    finally:
        os.close(ours)
    return process.wait(timeout=60), COLOUR.sub("", seen.decode(errors="replace").replace("\r\n", "\n"))


def test_a_person_is_asked_and_can_say_no(told: Path) -> None:
    """S0-14, S0-43, S1-06, C8, C13."""
    before = bit_by_bit(told)
    status, seen = at_terminal(told, b"n\n", "undo", "2")
    assert status == 1
    assert "Undo 2 turns? This will revert changes to 3 files.\n" in seen
    assert "First undone: turn 2, Fix the parser\n" in seen
    assert "  remove     tests.py\n" in seen and "  create     new.txt\n" in seen and "  write      b.py\n" in seen
    assert "Continue? [y/N] " in seen and seen.endswith("Nothing was changed.\n")
    assert bit_by_bit(told) == before
    for answer in (b"\n", b"\x04", b"perhaps\n", b"\xff\n"):
        assert at_terminal(told, answer, "undo", "2")[0] == 1
    assert bit_by_bit(told) == before
    assert snap_json(told, "ops", "--json") == {"operations": []}


def test_a_person_is_asked_and_can_say_yes(told: Path) -> None:
    """C13."""
    for answer in (b"y\n", b"YES\n"):
        status, seen = at_terminal(told, answer, "undo", "2")
        assert status == 0 and "✓ Undone 2 turn(s)" in seen
        status, seen = at_terminal(told, answer, "redo", "--all")
        assert status == 0 and "Redo 2 turns? This will change 3 files." in seen


def test_ctrl_c_at_the_question_changes_nothing(told: Path) -> None:
    before = bit_by_bit(told)
    ours, theirs = os.openpty()
    process = subprocess.Popen([*PROGRAM, "undo", "2"], cwd=told, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    os.close(ours)
    assert bit_by_bit(told) == before


def test_a_small_move_that_removes_nothing_is_not_asked_about(told: Path) -> None:
    """C13: one turn, nothing removed, no conflict."""
    at_terminal(told, b"y\n", "undo")
    status, seen = at_terminal(told, b"", "undo")
    assert status == 0 and "[y/N]" not in seen
    status, seen = at_terminal(told, b"", "redo", "2", "--yes")
    assert status == 0 and "[y/N]" not in seen
    status, seen = at_terminal(told, b"", "undo", "2", "-y")
    assert status == 0 and "[y/N]" not in seen
    status, seen = at_terminal(told, b"", "redo", "2", "--json")
    assert status == 0 and json.loads(seen)["turns_redone"] == 2


def test_a_removal_or_a_settled_conflict_is_asked_about(told: Path) -> None:
    """C13."""
    status, seen = at_terminal(told, b"n\n", "undo")
    assert status == 1 and "Undo 1 turn? This will revert changes to 2 files." in seen
    edited(told)
    status, seen = at_terminal(told, b"n\n", "undo", "--skip")
    assert status == 1 and "  skip       tests.py  changed by edits since turn 3\n" in seen
    status, seen = at_terminal(told, b"n\n", "goto", "1", "--force")
    assert "Go to turn 1 on main? This will undo 2 turns and change 3 files.\n" in seen
    assert "  overwrite  b.py  changed by edits since turn 3; saved first\n" in seen


def test_what_is_refused_anyway_is_refused_before_anybody_is_asked(told: Path) -> None:
    edited(told)
    status, seen = at_terminal(told, b"", "undo", "2")
    assert status == 10 and "[y/N]" not in seen
    snap(told, "turn", "begin")
    status, seen = at_terminal(told, b"", "undo", "2", "--skip")
    assert status == 11 and "[y/N]" not in seen


def test_a_long_list_of_files_is_cut(root: Path) -> None:
    """S0-43."""
    snap(root, "init")
    turn(root, "Many", **{f"f{number:02}": "x" for number in range(20)})
    _, seen = at_terminal(root, b"n\n", "undo")
    assert "revert changes to 20 files." in seen
    assert "  … and 8 more\n" in seen and seen.count("remove ") == 12
    assert ", … and 8 more\n" in snap(root, "undo").stdout
    assert len(snap_json(root, "redo", "--json")["files_reverted"]) == 20


def test_hostile_text_never_acts_on_a_terminal(root: Path) -> None:
    """G-36."""
    snap(root, "init")
    turn(root, HOSTILE, **{HOSTILE.replace("/", "_"): "1\n", "new\nline": "1\n"})
    (root / "new\nline").write_text("2\n")
    for arguments in (["undo"], ["undo", "--preview"], ["undo", "--force"], ["ops"], ["goto", HOSTILE]):
        _, seen = at_terminal(root, b"n\n", *arguments)
        found = HARMFUL.search(seen.replace("\n", ""))
        assert not found, repr(seen)


# The operation log.


def test_ops_lists_every_move_and_what_was_taken_back(told: Path) -> None:
    snap(told, "undo", "2")
    snap(told, "redo")
    snap(told, "ops", "undo")
    rows = snap(told, "ops").stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["3", "2", "1"]
    assert rows[1].endswith("redo of 1 turn  [undone by 3]")
    assert rows[2].endswith("undo of 2 turns")
    assert snap(told, "ops", "list", "-n", "1").stdout.splitlines()[1:] == ["… more with `snapstore ops -n 0`"]
    document = snap_json(told, "ops", "-n", "2", "--json")
    assert_record(OperationsRecord, document)
    assert [(one["op"], one["undone_by"]) for one in document["operations"]] == [(3, None), (2, 3)]


def test_ops_undo_puts_files_and_place_back(told: Path) -> None:
    edited(told)
    before = on_disk(told)
    snap(told, "undo", "2", "--force")
    said = snap(told, "ops", "undo", "1").stdout
    assert said.splitlines()[0] == "✓ Undone operation 1 (undo of 2 turns)"
    assert "Now at turn 3 on main: Write tests" in said
    assert on_disk(told) == before
    assert snap(told, "ops", "undo").stdout.startswith("Nothing to undo")
    assert "Would undo operation 2 (ops undo 1) and end at" in snap(told, "ops", "undo", "2", "--preview").stdout


def test_ops_undo_goes_back_past_several(told: Path) -> None:
    before = on_disk(told)
    snap(told, "undo")
    snap(told, "restore", "1", "--", "b.py")
    said = snap(told, "ops", "undo", "1").stdout
    assert said.splitlines()[0] == "✓ Undone operation 1 (undo of 1 turn) and 1 after it"
    assert on_disk(told) == before


# Recovery.

KILLED = """
import os, sys
from snapstore import Store
from snapstore.git.refs import Refs
Refs.update = lambda *_: os._exit(9)  # after the files, before the refs
session = Store.open(sys.argv[1]).session()
session.move(session.plan_undo(2))
"""


def test_recover_shows_what_was_interrupted_and_leaves_the_choice(told: Path) -> None:
    after = on_disk(told)
    assert snap(told, "recover").stdout == "Nothing was interrupted.\n"
    document = snap_json(told, "recover", "--json")
    assert_record(RecoveryRecord, document)
    assert document["pending"] is False
    assert child(KILLED, told).returncode == 9
    seen = bit_by_bit(told)
    said = snap(told, "recover").stdout
    assert said.startswith("Interrupted: undo of 2 turns\n")
    assert "  remove  tests.py\n" in said and "  write   b.py\n" in said
    assert "It can be finished: `snapstore recover --finish`" in said
    document = snap_json(told, "recover", "--json")
    assert_record(RecoveryRecord, document)
    assert (document["pending"], document["what"], document["obstacles"]) == (True, "undo of 2 turns", [])
    assert bit_by_bit(told) == seen
    done = snap(told, "recover", "--back")
    assert (done.stdout, done.stderr) == ("✓ Undone: undo of 2 turns\n", "")
    assert on_disk(told) == after
    assert child(KILLED, told).returncode == 9
    document = snap_json(told, "recover", "--finish", "--json")
    assert_record(RecoveryRecord, document)
    assert (document["pending"], document["ended"]) == (False, "finished")
    assert read(told) == {"a.py": "one\nlogin\n", "b.py": LINES, "new.txt": "new\n"}
    assert snap(told, "status").stdout.count("turn 1") == 1


# The hot path.


def test_a_move_loads_nothing_it_does_not_need(told: Path) -> None:
    """No surface and no border: dulwich, with what it loads, is the engine and is needed."""
    code = (
        "import sys\nfrom snapstore.cli.main import main\nstatus = main(sys.argv[1:])\n"
        "heavy = {'pydantic', 'rich', 'textual', 'asyncio', 'fastapi', 'mcp'}\n"
        "sys.stderr.write(','.join(sorted(heavy & set(sys.modules))))\nsys.exit(status)\n"
    )
    for arguments in (["undo"], ["redo"], ["undo", "--preview"], ["goto", "1", "--skip"], ["ops"], ["recover"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=told, capture_output=True, text=True, check=True
        )
        assert done.stderr == "", arguments


def test_an_exact_preview_of_files_that_only_the_disk_has(told: Path) -> None:
    """What the move would save first is no damage."""
    (told / "b.py").write_text("by hand\n")
    assert "b.py" in snap(told, "undo", "--exact", "--preview").stdout


def test_an_exact_preview_where_a_file_that_only_the_disk_has_makes_room(told: Path) -> None:
    """The folder holds nothing else: what the move does, the preview must not refuse."""
    snap(told, "run", "--", "sh", "-c", "rm b.py; mkdir b.py; echo 1 > b.py/x")
    (told / "b.py/x").write_text("by hand\n")
    shown = snap_json(told, "undo", "--json", "--exact", "--preview")
    done = snap_json(told, "undo", "--json", "--exact", "-y")
    assert (shown["written"], shown["removed"]) == (done["written"], done["removed"]) == (["b.py"], ["b.py/x"])


@pytest.mark.parametrize("words", [["restore", "0", "-y", "--", ""], ["undo", "--theirs", ""], ["diff", "--", ""]])
def test_an_empty_word_is_not_the_whole_folder(told: Path, words: list[str]) -> None:
    """`restore 0 -- "$FILE"` in a script, where nobody has set FILE."""
    before = on_disk(told)
    assert "an empty argument names no file" in snap(told, *words, status=2).stderr
    assert on_disk(told) == before


def test_commands_to_type_act_on_the_same_project(told: Path, tmp_path: Path) -> None:
    """`-C DIR` is repeated: without it they would move another project's files."""
    said = snap(tmp_path, "-C", str(told), "undo").stdout
    assert f"`snapstore -C {told} redo`" in said and f"`snapstore -C {told} ops undo 1`" in said
