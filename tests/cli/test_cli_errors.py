"""Every refusal has its name, its exit status and a next step, and with --json nothing else reaches stdout."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import PROGRAM, a_turn, snap, snap_json, write

from snapstore import Store, Unsafe
from snapstore.surface.records.errors import ErrorRecord


def refused(folder: Path, name: str, status: int, *arguments: str, **environment: str) -> dict[str, object]:
    """Runs it twice: for a person (words on stderr, nothing on stdout) and for a program (one document on stdout)."""
    done = snap(folder, *arguments, status=status, **environment)
    message, hint = done.stderr.splitlines()[-2:]
    assert done.stdout == ""
    assert message.startswith("snapstore: ")
    document = snap_json(folder, "--json", *arguments, status=status, **environment)
    ErrorRecord.model_validate(document)
    assert document["error"] == name
    assert hint == document["hint"]
    assert hint.endswith((".", "`", ")"))
    return document


READING = [["status"], ["log"], ["show"], ["diff"], ["check"], ["git", "log"], ["turn", "end"], ["turn", "cancel"]]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_folder_without_a_store_is_refused(root: Path, arguments: list[str]) -> None:
    document = refused(root, "no-store", 13, *arguments)
    assert "snapstore init" in str(document["hint"])


@pytest.mark.parametrize("arguments", [["init"], ["turn", "begin"], ["run", "--", "true"]], ids=" ".join)
def test_the_home_folder_is_refused(nobodys_home: Path, arguments: list[str]) -> None:
    """G-16."""
    document = refused(nobodys_home, "unsafe", 15, *arguments)
    assert "home folder" in str(document["message"])
    assert not (nobodys_home / "stores").exists() or not any((nobodys_home / "stores").iterdir())


def test_the_whole_machine_is_refused(root: Path) -> None:
    """G-16."""
    refused(root, "unsafe", 15, "init", "/")
    refused(root, "unsafe", 15, "-C", "/", "run", "--", "true")


def test_a_folder_inside_a_watched_one_needs_a_word(root: Path) -> None:
    (root / "inner").mkdir()
    snap(root, "init")
    refused(root, "unsafe", 15, "init", "inner")
    assert snap_json(root, "init", "inner", "--anyway", "--json")["root"] == str(root / "inner")


def test_adopting_nothing_is_refused(root: Path) -> None:
    refused(root, "unknown", 16, "init", "--adopt")
    refused(root, "remote", 17, "init", "--from", "/somewhere")
    snap(root, "init")
    refused(root, "no-store", 13, "init", "--adopt")


@pytest.mark.parametrize("name", ["a/b", "..", "../x", ".hidden", "-x", "x.lock", "a b", "n" * 300, "\x1b[31m", "@{u}"])
def test_a_session_name_that_could_be_a_path_is_refused(root: Path, name: str) -> None:
    """S1-63."""
    for arguments in (["turn", "begin"], ["turn", "end"], ["log"], ["run"]):
        tail = ["--", "true"] if arguments == ["run"] else []
        if arguments in (["log"], ["turn", "end"]):
            snap(root, "init", "-q")
        document = refused(root, "unsafe", 15, *arguments, f"--session={name}", *tail)
        assert len(str(document["message"])) < 120
    assert snap_json(root, "status", "--json")["sessions"] == ["shell"]


def test_a_session_name_with_nul_is_refused_by_the_library(store: Store) -> None:
    """S1-63: no command line can hold one."""
    with pytest.raises(Unsafe):
        store.session("a\0b")


def test_an_unknown_session_or_turn_is_refused(root: Path) -> None:
    """S1-27."""
    a_turn(root)
    document = refused(root, "unknown", 16, "log", "--session", "nobody")
    assert "shell" in str(document["hint"])
    refused(root, "unknown", 16, "status", SNAPSTORE_SESSION="nobody")
    for address in ("7", "#99", "deadbeef", "nothing", "-5", "1e9", "10x", "9" * 30, "\x1b[31m", ""):
        refused(root, "unknown", 16, "show", "--", address)
    refused(root, "unknown", 16, "diff", "7")
    refused(root, "unknown", 16, "diff", "1", "7")


def test_a_file_in_the_place_of_a_turn_is_explained(root: Path) -> None:
    a_turn(root)
    assert "-- poem" in str(refused(root, "unknown", 16, "diff", "poem")["hint"])


def test_paths_outside_the_root_are_refused(root: Path) -> None:
    """G-09."""
    a_turn(root)
    refused(root, "unsafe", 15, "diff", "--", "../elsewhere")
    snap(root, "turn", "begin")
    (root / "link").symlink_to("/etc")
    for path in ("/etc/passwd", "../elsewhere", "link/passwd", ".git/config", "sub/.GIT/config"):
        refused(root, "unsafe", 15, "turn", "touch", path)


def test_no_open_turn_is_named_as_such(root: Path) -> None:
    snap(root, "init")
    for arguments in (["turn", "end"], ["turn", "cancel"], ["turn", "touch", "a"]):
        assert "turn begin" in str(refused(root, "unknown", 16, *arguments)["hint"])


USAGE = [
    ["--bogus"],
    ["bogus"],
    ["log", "--bogus"],
    ["log", "-n"],
    ["log", "-n", "x"],
    ["log", "-n", "-1"],
    ["log", "extra"],
    ["show", "1", "2"],
    ["diff", "1", "2", "3"],
    ["run"],
    ["run", "--"],
    ["run", "-m"],
    ["turn"],
    ["turn", "bogus"],
    ["turn", "touch"],
    ["turn", "end", "extra"],
    ["turn", "end", "--scan=yes"],
    ["init", "a", "b"],
    ["init", "--max-file-size", "large"],
    ["init", "--max-file-size", "-1"],
    ["init", "--max-file-size", "nan"],
    ["completion"],
    ["completion", "tcsh"],
    ["-C"],
    ["-C", "missing", "log"],
    ["log", "-C", "missing"],
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_a_request_that_makes_no_sense_is_explained(root: Path, arguments: list[str]) -> None:
    refused(root, "usage", 2, *arguments)


def test_json_alone_is_a_request_without_a_command(root: Path) -> None:
    assert snap_json(root, "--json", status=2)["error"] == "usage"


def test_a_turn_held_by_a_living_process_is_not_taken_over(root: Path) -> None:
    """C22."""
    holder = subprocess.Popen([*PROGRAM, "run", "--", "cat"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None and holder.stdout is not None
    holder.stdin.write(b"x\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == b"x\n"
    document = refused(root, "busy", 11, "turn", "begin")
    assert str(holder.pid) in str(document["message"])
    holder.communicate()
    assert holder.returncode == 0
    snap(root, "turn", "begin")


def test_a_newer_format_and_a_damaged_header_are_refused(root: Path) -> None:
    """S3-26."""
    snap(root, "init")
    with Store.open(root) as store:
        header = Path(store.state) / "format"
    good = header.read_text()
    header.write_text(json.dumps({**json.loads(good), "format": 99}))
    assert "Update snapstore" in str(refused(root, "corrupt", 14, "status")["hint"])
    header.write_text("{")
    refused(root, "corrupt", 14, "turn", "begin")
    header.write_text(good)
    snap(root, "status")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_store_of_another_user_is_refused(root: Path) -> None:
    snap(root, "init")
    with Store.open(root) as store:
        folder = store.folder
    os.chown(folder, 4242, 4242)
    refused(root, "unsafe", 15, "status")


def test_a_planted_setting_keeps_git_from_running(root: Path, tmp_path: Path) -> None:
    """G-34: nothing of it may run a program."""
    snap(root, "init")
    with Store.open(root) as store:
        config = Path(store.shadow.git_dir) / "config"
    config.write_text(config.read_text() + f"[core]\n\tfsmonitor = touch {tmp_path}/ran\n")
    refused(root, "unsafe", 15, "git", "status")
    assert not (tmp_path / "ran").exists()


def test_a_system_error_is_told_without_a_traceback(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    document = refused(root, "failed", 1, "init", SNAPSTORE_HOME=str(tmp_path / "file"))
    assert str(tmp_path / "file") in str(document["message"])


BROKEN = """
import sys
from snapstore.cli.context import Context
def broken(self): raise ZeroDivisionError("no \\x1b[31m such thing")
Context.reading = broken
from snapstore.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_mistake_of_ours_is_one_line_and_debug_shows_where(root: Path) -> None:
    def broken(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [PROGRAM[0], "-c", BROKEN, *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    done = broken("status")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "snapstore: unexpected: ZeroDivisionError: no \u241b[31m such thing",
        "Run again with --debug to see where it happened.",
    ]
    assert "Traceback" in broken("status", "--debug").stderr
    done = broken("status", "--json", "--debug")
    assert json.loads(done.stdout)["error"] == "failed"
    assert "Traceback" in done.stderr


def test_debug_also_shows_where_a_refusal_came_from(root: Path) -> None:
    assert "Traceback" not in snap(root, "status", status=13).stderr
    assert "Traceback" in snap(root, "status", "--debug", status=13).stderr


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    snap(root, "init")
    write(root, large="line\n" * 200_000)
    snap(root, "run", "-q", "--", "true")
    process = subprocess.Popen([*PROGRAM, "diff", "#0"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.parametrize("words", [["turn", "begin"], ["status"], ["status", "--json"], ["goto", "nope", "--json"]])
def test_an_answer_that_cannot_be_written_is_said_and_claims_nothing(root: Path, words: list[str]) -> None:
    """G-23: standard output on a full disk says nothing of what was done."""
    snap(root, "init")
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, *words], cwd=root, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr and "Nothing was recorded" not in done.stderr
    assert done.stderr.startswith("snapstore: ") and done.returncode in (1, 16)


def test_a_terminal_without_the_characters_gets_plain_ones(root: Path) -> None:
    snap(root, "run", "-q", "--", "sh", "-c", "echo 1 > a")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*PROGRAM, "undo"], cwd=root, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("* Undone 1 turn(s)") and "\\" not in done.stdout
