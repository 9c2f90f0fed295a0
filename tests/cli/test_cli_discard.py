"""Throwing away what changed since the last turn, and restoring files without naming a turn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import bit_by_bit, on_disk


@pytest.fixture
def told(root: Path) -> Path:
    """One turn; since then an edit, a new file, a missing file, and a file that git ignores."""
    (root / ".gitignore").write_text("*.log\n")
    (root / "a").write_text("a\n")
    snap(root, "init")
    snap(root, "turn", "begin", "-m", "One")
    (root / "b").write_text("b\n")
    (root / "c").write_text("c\n")
    snap(root, "turn", "end")
    (root / "a").write_text("mine\n")
    (root / "sub").mkdir()
    (root / "sub/new").write_text("new\n")
    (root / "b").unlink()
    (root / "x.log").write_text("ignored\n")
    return root


def read(root: Path) -> dict[str, str]:
    return {path.decode(): data.decode() for path, (_, data) in on_disk(root).items()}


def test_discard_is_shown_saved_and_can_be_undone_M_18(told: Path) -> None:
    before = read(told)
    assert "`snapstore discard` throws it away, after saving it." in snap(told, "status").stdout
    seen = bit_by_bit(told)
    preview = snap(told, "discard", "--preview").stdout
    assert preview.startswith("Would discard what changed in 3 files and end at turn 1 on main: One\n")
    assert "  remove     sub/new\n" in preview and bit_by_bit(told) == seen
    said = snap(told, "discard").stdout
    kept = {".gitignore": "*.log\n", "x.log": "ignored\n"}
    assert read(told) == {"a": "a\n", "b": "b\n", "c": "c\n", **kept}
    assert snap_json(told, "status", "--json")["edits"] == []
    assert "✓ Discarded what changed in 3 files\n" in said
    command = re.search(r"Get it back: `snapstore (restore \w+ -- .*)`", said)
    assert command is not None
    snap(told, "ops", "undo")
    assert read(told) == before
    assert snap(told, "discard").stdout.startswith("✓ Discarded")
    snap(told, *command[1].split())
    assert read(told)["a"] == "mine\n" and read(told)["sub/new"] == "new\n"


def test_discard_of_some_paths_leaves_the_others(told: Path) -> None:
    snap(told, "discard", "sub", "b")
    assert read(told) == {"a": "mine\n", "b": "b\n", "c": "c\n", ".gitignore": "*.log\n", "x.log": "ignored\n"}
    assert snap(told, "discard", "c").stdout == "Nothing to discard: nothing changed since the last turn.\n"
    assert snap_json(told, "log", "--json")["nodes"][-1]["turn"] == 1, (
        "nothing is recorded: the tree is the last turn's"
    )


def test_restore_without_a_turn_means_the_last_one_M_18(told: Path) -> None:
    assert snap_json(told, "restore", "b", "--json")["written"] == ["b"]
    (told / "b").unlink()
    refused = snap(told, "restore", ".", status=10).stderr
    assert "  a  changed by edits since turn" in refused and "      -mine\n      +a\n" in refused
    assert not (told / "b").exists(), "a refused move writes nothing"
    assert snap_json(told, "restore", ".", "--theirs", "a", "--json")["written"] == ["a", "b"]
    assert read(told)["sub/new"] == "new\n", "a restore removes no file that no turn knows"
    wrong = snap(told, "restore", "1", status=16).stderr
    assert "'1' is neither in the last turn nor here" in wrong and "`snapstore restore 1 -- PATH`" in wrong
    wrong = snap(told, "restore", "1", "--", "nowhere", status=16).stderr
    assert "'nowhere' is neither in turn 1 nor here" in wrong and "`snapstore log`" in wrong
    assert "which files?" in snap(told, "restore", status=2).stderr
