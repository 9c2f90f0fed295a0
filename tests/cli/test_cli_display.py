"""What reaches a terminal: colour where a person looks, and nothing of hostile text that could act on it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import PROGRAM, a_turn, snap, snap_json, write
from terminal_text import COLOUR, HARMFUL, HOSTILE, on_terminal

from snapstore import Store
from snapstore.base.text import size_text


def hostile_turn(root: Path) -> None:
    """A turn in which every text that can be hostile is."""
    snap(root, "turn", "begin", "-m", f"{HOSTILE}\nsecond {HOSTILE}", "--agent", HOSTILE)
    (root / HOSTILE.replace("/", "_")).write_text(f"{HOSTILE}\n")
    (root / "new\nline").write_text("1\n")
    (root / "large\x1b[2J").write_text("x" * 5000)
    snap(root, "turn", "end", "-m", HOSTILE)


COMMANDS = [
    ["init"],
    ["status"],
    ["log"],
    ["log", "--stat"],
    ["show", "1"],
    ["turn", "begin"],
    ["run", "--", "touch", HOSTILE + "2"],
    ["check"],
    ["show", HOSTILE],
    ["log", "--session", HOSTILE],
    ["turn", "touch", f"../{HOSTILE}"],
    ["-C", HOSTILE, "log"],
    [HOSTILE],
    ["log", f"--{HOSTILE}"],
    ["run", "--", HOSTILE],
    ["init", HOSTILE],
    ["init", "--adopt", "--from", HOSTILE],
    ["init", "--max-file-size", HOSTILE],
]


@pytest.mark.parametrize(
    "arguments", COMMANDS, ids=lambda arguments: " ".join(arguments)[:20].encode("unicode_escape").decode()
)
def test_hostile_text_never_acts_on_a_terminal(root: Path, arguments: list[str]) -> None:
    """G-36: names and prompts with anything in them are listed safely."""
    snap(root, "init", "--max-file-size", "1kB")
    hostile_turn(root)
    (root / f"edit{HOSTILE}").write_text("1")
    if arguments[:2] == ["turn", "touch"]:
        snap(root, "turn", "begin")
    seen = on_terminal(root, *arguments)
    assert seen
    found = HARMFUL.search(COLOUR.sub("", seen))
    assert not found, repr(seen[max(found.start() - 60, 0) : found.end() + 20])
    done = subprocess.run([*PROGRAM, *arguments], cwd=root, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if arguments[0] != "show":  # whose patch is exact in a pipe, so that it can be applied
        piped = (done.stdout + done.stderr).decode()
        found = HARMFUL.search(piped)
        assert not found, repr(piped[max(found.start() - 60, 0) : found.end() + 20])


def test_hostile_text_is_whole_in_json(root: Path) -> None:
    """A program gets the text as it was, in ASCII."""
    hostile_turn(root)
    done = snap(root, "show", "1", "--json")
    assert done.stdout.isascii()
    assert not HARMFUL.search(done.stdout)
    node = json.loads(done.stdout)
    assert node["prompt"] == f"{HOSTILE}\nsecond {HOSTILE}"
    assert node["replies"] == [HOSTILE]
    assert HOSTILE in [file["path"] for file in node["files"]]


def test_a_prompt_that_is_not_utf8_is_kept_and_shown(root: Path) -> None:
    snap(root, "turn", "begin", "-m", "caf\udce9")
    snap(root, "turn", "end", "-m", "th\udce9")
    assert "caf\ufffd" in snap(root, "log").stdout
    shown = snap_json(root, "show", "--json")
    assert (shown["prompt"], shown["replies"]) == ("caf\udce9", ["th\udce9"])


def test_a_name_that_is_not_utf8_goes_through_every_command(root: Path) -> None:
    """G-36: with surrogate escapes, and again in base64."""
    snap(root, "init")
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_text("1\n")
    assert snap_json(root, "status", "--json")["edits"] == ["caf\udce9"]
    assert snap_json(root, "diff", "--json")["files"][0]["path_b64"] == "Y2Fm6Q=="
    snap(root, "turn", "begin")
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_text("2\n")
    snap(root, "turn", "touch", "--after", "caf\udce9")
    ended = snap_json(root, "turn", "end", "--json")
    assert (ended["files"][0]["path"], ended["files"][0]["path_b64"]) == ("caf\udce9", "Y2Fm6Q==")
    for arguments in (["log", "--stat"], ["show"]):
        assert '"caf\\351"' in snap(root, *arguments).stdout
    for arguments in (["log"], ["show"]):
        assert "Y2Fm6Q==" in json.dumps(snap_json(root, *arguments, "--json"))
    assert "caf" in snap(root, "diff", "0", "--", "caf\udce9").stdout


def test_colour_is_for_terminals_only(root: Path) -> None:
    a_turn(root)
    for arguments in (["log", "--stat"], ["status"], ["show"]):
        assert "\x1b" not in snap(root, *arguments).stdout
        assert "\x1b[" in on_terminal(root, *arguments)
        assert "\x1b" not in on_terminal(root, *arguments, NO_COLOR="1")
        assert "\x1b" not in on_terminal(root, *arguments, TERM="dumb")


def test_an_error_is_coloured_on_a_terminal_only(root: Path) -> None:
    assert "\x1b[31msnapstore:\x1b[0m no store watches over" in on_terminal(root, "log")
    assert "\x1b" not in snap(root, "log", status=13).stderr


def test_on_a_terminal_the_log_shows_what_fits_and_says_how_to_see_more(root: Path) -> None:
    with Store.open(root, create=True) as store:
        for number in range(30):
            with store.session("shell").turn(f"Prompt {number}"):
                pass
    seen = on_terminal(root, "log", lines=20)
    assert seen.count("Prompt ") == 16
    assert "Prompt 29" in seen
    assert "snapstore log -n 0" in seen
    assert on_terminal(root, "log", "-n", "0", lines=20).count("Prompt ") == 30
    assert snap(root, "log").stdout.count("Prompt ") == 30


def test_long_prompts_are_cut_to_the_width_of_the_terminal(root: Path) -> None:
    a_turn(root, "word " * 100)
    for arguments in (["log"], ["status"]):
        lines = COLOUR.sub("", on_terminal(root, *arguments, columns=70)).splitlines()
        assert [len(line) <= 70 for line in lines if "word" in line] == [True]


def test_a_patch_on_a_terminal_shows_control_characters_instead_of_obeying(root: Path) -> None:
    snap(root, "init")
    write(root, evil="\x1b[2J\x1b]0;owned\x07\u202e\n")
    seen = on_terminal(root, "diff")
    assert "+\u241b[2J\u241b]0;owned\u2407\ufffd" in seen
    assert on_terminal(root, "diff", "--", "nothing") == "\x1b[2mNo differences.\x1b[0m\n"


def test_a_terminal_without_unicode_still_gets_every_line(root: Path) -> None:
    snap(root, "turn", "begin", "-m", "naïve 日本")
    snap(root, "turn", "end")
    assert "na\\xefve" in snap(root, "log", PYTHONIOENCODING="ascii").stdout


def test_sizes_read_as_people_say_them() -> None:
    sizes = (0, 1, 999, 1000, 9_949, 999_499, 5_000_000)
    told = ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "9.9 kB", "999 kB", "5.0 MB"]
    assert [size_text(size) for size in sizes] == told


def test_the_start_is_not_told_as_a_turn(root: Path) -> None:
    write(root, a="1", b="2")
    snap(root, "init")
    shown = snap(root, "show", "0").stdout
    assert shown.startswith("Baseline") and shown.endswith("\n\nWhere the session began.\n")


def test_a_text_too_large_to_compare_is_not_called_binary(root: Path) -> None:
    snap(root, "init")
    snap(root, "turn", "begin")
    write(root, big="line\n" * 1_000_000, blob="\0\1")
    snap(root, "turn", "end")
    for words in (["show", "1"], ["log", "--stat"]):
        rows = {line.split()[1]: line.split()[2:] for line in snap(root, *words).stdout.splitlines() if "  A  " in line}
        assert rows == {"big": ["too", "large", "to", "compare"], "blob": ["binary"]}
    for document in (snap_json(root, "show", "1", "--json"), snap_json(root, "diff", "0", "1", "--json")):
        kinds = {file["path"]: (file["binary"], file["large"], file["added"]) for file in document["files"]}
        assert kinds == {"big": (False, True, None), "blob": (True, False, None)}


def test_a_first_snapshot_shows_progress_only_after_a_second_and_only_to_people(root: Path) -> None:
    """The bar is drawn by a real first snapshot whose second has been made to pass at once."""
    for number in range(600):
        (root / f"file{number}").write_text(str(number))
    code = (
        "import snapstore.cli.progress as p, sys; p.PATIENCE = 0; from snapstore.cli.main import main; sys.exit(main())"
    )
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [PROGRAM[0], "-c", code, "init", "--json"],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    assert process.stdout is not None
    document = json.loads(process.stdout.read())
    process.stdout.close()
    assert process.wait() == 0
    assert document["files"] == 600
    assert b"Taking the first snapshot" in os.read(ours, 65536)
    os.close(ours)
