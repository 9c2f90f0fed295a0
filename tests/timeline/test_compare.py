"""Two branches side by side: where they parted, what each did since, what became of the files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import assert_record, snap, snap_json
from helpers import assert_whole, on_disk, write

from snapstore import Store
from snapstore.surface.records.branches import CompareRecord
from snapstore.timeline.history.compare import Comparison
from snapstore.timeline.history.history import History


def turn(root: Path, prompt: str, *, reply: str = "", **files: str | None) -> None:
    """A turn that writes files; None removes."""
    snap(root, "turn", "begin", "-m", prompt)
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
        else:
            write(root / name, text)
    snap(root, "turn", "end", *(["-m", reply] if reply else []))


@pytest.fixture
def two(root: Path) -> Path:
    """main and main-2, diverged after turn 1."""
    write(root / "both", "one\ntwo\n")
    write(root / "alike", "old\n")
    write(root / "gone", "gone\n")
    turn(root, "Start", start="1\n")
    turn(root, "Add a login function", reply="Added login().", both="one\ntwo\nthree\n", alike="new\n", gone=None)
    turn(root, "Test it", reply="All\x1b[31m green", mine="a\nb\n")
    snap(root, "undo", "2", "-y")
    turn(root, "Add a login class", both="zero\none\ntwo\n", alike="new\n", blob="\0\1")
    return root


def test_the_comparison_as_data(two: Path) -> None:
    """S1-40, S1-41, S1-42"""
    with Store.open(two) as store:
        found = Comparison(History(store.session()), "main", "main-2")
        assert (found.fork_turn, found.fork_prompt) == (1, "Start")
        assert [node.subject for node in found.a.turns] == ["Add a login function", "Test it"]
        assert [node.subject for node in found.b.turns] == ["Add a login class"]
        assert {path: outcome for path, _, _, outcome in found.rows()} == {
            b"alike": "same",
            b"blob": "only b",
            b"both": "different",
            b"gone": "only a",
            b"mine": "only a",
        }
        assert (found.a.counted(), found.b.counted()) == ((4, 2), (2, 1))
        assert found.a.message == "All\x1b[31m green"
        assert_whole(store)


def test_compare_in_json_is_one_record(two: Path) -> None:
    document = snap_json(two, "compare", "main", "main-2", "--json")
    assert_record(CompareRecord, document)
    assert document["parted_at"]["turn"] == 1
    assert [turn["turn"] for turn in document["a"]["turns_since"]] == [2, 3]
    assert (document["a"]["files_changed"], document["b"]["files_changed"]) == (4, 3)
    rows = {row["path"]: row for row in document["files"]}
    assert (rows["both"]["a"]["added"], rows["both"]["b"]["added"], rows["both"]["outcome"]) == (1, 1, "different")
    assert (rows["gone"]["a"]["change"], rows["gone"]["b"]) == ("D", None)
    assert rows["blob"]["b"]["binary"] is True
    assert "patch" not in document
    with_patch = snap_json(two, "compare", "main", "main-2", "--patch", "--json")
    assert_record(CompareRecord, with_patch)
    assert "+++ b/both" in with_patch["patch"]


def test_compare_shows_both_sides_and_lets_nothing_act_on_the_terminal(two: Path) -> None:
    out = snap(two, "compare", "main", "main-2").stdout
    assert out.startswith("main and main-2 diverged after turn 1")
    assert "Start" in out
    rows = out.splitlines()
    assert any("2  Add a login function" in row and "2  Add a login class" in row for row in rows)
    assert any(row.split() == ["both", "M", "+1", "M", "+1", "different"] for row in rows)
    assert any(row.split() == ["gone", "D", "-1", "·", "only", "main"] for row in rows)
    assert "\x1b" not in out


def test_the_patch_leads_from_one_side_to_the_other(two: Path) -> None:
    """Applied to A's files it gives B's."""
    patch = snap(two, "compare", "main", "main-2", "--patch").stdout
    with Store.open(two) as store:
        wanted = on_disk(two)
        wanted.pop(b"blob")  # binary files are named, not carried
        snap(two, "switch", "main", "-y")
        text = "".join(part for part in _parts(patch) if "Binary files" not in part)
        subprocess.run(["git", "apply", "-"], cwd=two, input=text, text=True, check=True)
        assert on_disk(two) == wanted
        assert_whole(store)


def _parts(patch: str) -> list[str]:
    return ["diff --git" + part for part in patch.split("diff --git")[1:]]


def test_turns_and_checkpoints_can_be_compared_too(two: Path) -> None:
    snap(two, "checkpoint", "good", "main:2")
    document = snap_json(two, "compare", "good", "@", "--json")
    assert (document["a"]["turn"], document["parted_at"]["turn"]) == (2, 1)
    document = snap_json(two, "compare", "main:2", "main", "--json")
    assert (document["parted_at"]["turn"], document["a"]["turns_since"]) == (2, [])
    assert "are the same node" in snap(two, "compare", "@", "main-2").stdout
    assert "Neither has changed a file" in snap(two, "compare", "@", "main-2").stdout


def test_every_file_with_stat(two: Path) -> None:
    snap(two, "switch", "main", "-y")
    turn(two, "Many", **{f"f{number:02}": "x\n" for number in range(30)})
    assert "`--stat` lists all" in snap(two, "compare", "main", "main-2").stdout
    assert "f29" in snap(two, "compare", "main", "main-2", "--stat").stdout


def test_what_cannot_be_compared_is_refused(two: Path) -> None:
    assert snap_json(two, "compare", "main", "nope", "--json", status=16)["error"] == "unknown"
    assert snap_json(two, "compare", "main", "--json", status=2)["error"] == "usage"
    assert snap_json(two, "compare", "main", "main-2", "--stat", "--patch", "--json", status=2)["error"] == "usage"
    snap(two, "turn", "begin", "--session", "s2")
    snap(two, "turn", "end", "--session", "s2")
    refusal = snap_json(two, "compare", "main", "s2/main", "--session", "shell", "--json", status=2)
    assert "snapstore diff" in refusal["hint"]
