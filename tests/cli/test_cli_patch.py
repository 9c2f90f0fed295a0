"""Moves hunk by hunk: `--patch` asks as git does, `--hunk` takes ids, and the result is a turn like any other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from commands import PROGRAM, snap, snap_json
from helpers import bit_by_bit

LINES = [f"{number}\n" for number in range(1, 31)]


def changed(*numbers: int) -> str:
    return "".join(f"turn {number}\n" if number in numbers else line for number, line in enumerate(LINES, 1))


@pytest.fixture
def told(root: Path) -> Path:
    (root / "a.py").write_text("".join(LINES))
    snap(root, "init")
    snap(root, "turn", "begin", "-m", "Three places")
    (root / "a.py").write_text(changed(3, 5, 25))
    (root / "b.py").write_text("b\n")
    snap(root, "turn", "end")
    return root


def answered(root: Path, *arguments: str, answers: str, editor: str = "") -> str:
    environment = {**os.environ, "VISUAL": editor} if editor else None
    done = subprocess.run(
        [*PROGRAM, *arguments], cwd=root, input=answers, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("answers", "left", "b"),
    [
        ("y\nn\nn\n", (25,), True),
        ("n\ny\ny\n", (3, 5), False),
        ("a\nn\n", (), True),
        ("d\ny\n", (3, 5, 25), False),
        ("s\nn\ny\nn\nn\n", (3, 25), True),
        ("?\nx\ny\nq\n", (25,), True),
        ("y\n", (25,), True),
    ],
)
def test_each_hunk_is_asked_for_G_38(told: Path, answers: str, left: tuple[int, ...], b: bool) -> None:
    said = answered(told, "revert", "1", "-p", answers=answers)
    assert (told / "a.py").read_text() == changed(*left) and (told / "b.py").exists() == b
    assert "✓ Reverted part of turn 1: Three places" in said
    assert ("y  revert this hunk" in said) == ("?" in answers)
    snap(told, "undo")
    assert (told / "a.py").read_text() == changed(3, 5, 25) and (told / "b.py").exists()


def test_undo_restore_and_apply_take_hunks_too(told: Path) -> None:
    answered(told, "undo", "-p", answers="n\ny\nn\n")
    assert (told / "a.py").read_text() == changed(3, 5)
    answered(told, "restore", "1", "-p", "--", "a.py", answers="y\n")
    assert (told / "a.py").read_text() == changed(3, 5, 25)
    (told / "a.py").write_text(changed(3, 5, 25, 28))
    said = answered(told, "restore", "0", "-p", "--", "a.py", answers="n\ny\n")
    assert (told / "a.py").read_text() == changed(3, 5), "what is on disk is what the hunks lead from"
    assert "What was on disk is saved. Get it back:" in said
    answered(told, "apply", "1", "-p", answers="y\n")
    assert (told / "a.py").read_text() == changed(3, 5, 25)


def test_nothing_chosen_is_nothing_done(told: Path) -> None:
    before = bit_by_bit(told)
    said = answered(told, "revert", "1", "-p", answers="q\n")
    assert "✓" not in said and "Nothing to revert" in said and bit_by_bit(told) == before


def test_a_program_reads_the_hunks_and_chooses_by_id(told: Path) -> None:
    found = snap_json(told, "revert", "1", "--patch", "--preview", "--json")["hunks"]
    assert [(hunk["path"], hunk["start"]) for hunk in found] == [("a.py", 1), ("a.py", 22), ("b.py", 1)]
    assert found[1]["lines"] == [" 22", " 23", " 24", "-turn 25", "+25", " 26", " 27", " 28"]
    shown = snap(told, "revert", "1", "--patch", "--preview").stdout
    assert f"hunk {found[1]['id']} of a.py" in shown and "  the whole file is removed" in shown
    done = snap_json(told, "revert", "1", "--hunk", found[1]["id"], "--hunk", found[2]["id"], "--json")
    assert (done["written"], done["removed"]) == (["a.py"], ["b.py"])
    assert (told / "a.py").read_text() == changed(3, 5)
    again = snap_json(told, "revert", "1", "--hunk", found[1]["id"], "--json", status=10)
    assert again["stale"] is True and "there is no hunk" in again["message"]


def test_a_hunk_is_edited_in_the_editor(told: Path) -> None:
    answered(told, "revert", "1", "-p", answers="n\ne\nn\n", editor="sed -i s/^+25/+twenty-five/")
    assert (told / "a.py").read_text() == changed(3, 5).replace("25\n", "twenty-five\n")
    snap(told, "undo")
    said = answered(told, "revert", "1", "-p", answers="n\ne\nn\nn\n", editor="sed -i s/^.24/-24/;s/^.23/.other/")
    assert "the edited hunk does not apply" in said and (told / "a.py").read_text() == changed(3, 5, 25)
    said = answered(told, "revert", "1", "-p", answers="n\ne\nn\nn\n", editor="false")
    assert "The editor failed" in said and (told / "a.py").read_text() == changed(3, 5, 25)
    said = answered(told, "revert", "1", "-p", answers="n\ne\nn\n", editor="truncate -s 0")
    assert "Nothing to revert" in said and (told / "a.py").read_text() == changed(3, 5, 25)


WRONG = [
    ["undo", "2", "--patch"],
    ["undo", "--patch", "--exact"],
    ["undo", "--files-only", "--hunk", "1"],
    ["revert", "1", "--patch", "--json"],
]


@pytest.mark.parametrize("arguments", WRONG)
def test_what_makes_no_sense_is_refused(told: Path, arguments: list[str]) -> None:
    before = bit_by_bit(told)
    snap(told, *arguments, status=2)
    assert bit_by_bit(told) == before
