"""`branches`, `branch …`, `checkpoint`, `checkpoints` as a person or a program meets them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from commands import PROGRAM, a_turn, assert_record, snap, snap_json
from helpers import all_refs, git

from snapstore import Store
from snapstore.surface.records.branches import BranchesRecord, ChangeRecord, CheckpointsRecord, DeletePreviewRecord
from snapstore.surface.records.status import InitRecord
from snapstore.timeline.history.graph import Graph


@pytest.fixture
def tree(root: Path) -> Path:
    """main with turns 1 to 3, main-2 from turn 1, and main-3 from turn 1, where the session stands."""
    for number in (1, 2, 3):
        a_turn(root, f"Prompt {number}", f"{number}\n")
    snap(root, "undo", "2", "-y")
    a_turn(root, "Another way", "2b\n")
    snap(root, "undo")
    a_turn(root, "A third\x1b]0;way", "2c\n")
    return root


def names(root: Path, *options: str) -> list[str]:
    return [branch["name"] for branch in snap_json(root, "branches", "--json", *options)["branches"]]


def whole(root: Path) -> None:
    """S3-10, C18: nothing is lost to a gc by anyone, and both checks are green."""
    with Store.open(root) as store:
        git_dir = store.shadow.git_dir
    before = git(git_dir, "rev-list", "--all", "--count")
    git(git_dir, "gc", "-q", "--prune=now")
    assert git(git_dir, "rev-list", "--all", "--count") == before
    git(git_dir, "fsck", "--strict", "--no-dangling")
    snap(root, "check", "--read-data")


def test_branches_lists_leaves_with_turns_age_and_state(tree: Path) -> None:
    """S0-05, S0-06, S1-38"""
    rows = snap(tree, "branches").stdout.splitlines()
    assert rows[0].startswith("@ main-3   2 turns  ")
    assert "Branch from turn 1 · Another way" in rows[1]
    assert rows[2].startswith("  main ")
    assert "Prompt 3" in rows[2]
    assert "\x1b" not in "".join(rows)
    document = snap_json(tree, "branches", "--json")
    assert_record(BranchesRecord, document)
    assert [branch["state"] for branch in document["branches"]] == ["current", "listed", "listed"]
    assert (document["listed"], document["archived"], document["max_branches"]) == (3, 0, 20)


def test_a_rename_says_what_happened_where_you_are_and_how_to_go_back(tree: Path) -> None:
    out = snap(tree, "branch", "rename", "main-3", "login").stdout
    assert out.splitlines() == [
        "✓ Branch main-3 is now called login.",
        "You are at turn 2 on login; no file was touched.",
        "Undo this: `snapstore ops undo 3`",
    ]
    assert snap_json(tree, "status", "--json")["branch"] == "login"
    a_turn(tree, "Goes on", "3c\n")
    assert snap_json(tree, "status", "--json")["branch"] == "login"
    snap(tree, "ops", "undo", "3", "-y")
    assert names(tree)[0] == "main-3"
    assert snap_json(tree, "status", "--json")["cursor"]["prompt"] == "Goes on"
    whole(tree)


def test_switch_by_the_name_that_was_given(tree: Path) -> None:
    """S1-22, S1-38"""
    snap(tree, "branch", "rename", "main-2", "second")
    snap(tree, "switch", "second", "-y")
    assert (tree / "poem").read_text() == "2b\n"


def test_deleted_branches_come_back_by_ops_undo(tree: Path) -> None:
    """S1-50"""
    document = snap_json(tree, "branch", "delete", "main-2", "main", "--json")
    assert_record(ChangeRecord, document)
    assert names(tree, "--all") == ["main-3"]
    whole(tree)
    a_turn(tree, "On", "x\n")
    snap(tree, "ops", "undo", str(document["operation"]), "-y")
    assert sorted(names(tree)) == ["main", "main-2", "main-3"]
    snap(tree, "switch", "main", "-y")
    assert (tree / "poem").read_text() == "3\n"
    whole(tree)


def test_numbers_and_made_names_are_not_given_again(tree: Path) -> None:
    """S3-06"""
    with Store.open(tree) as store:
        seqs = [node.seq for node in Graph(store, "shell").by_seq()]
    snap(tree, "switch", "main", "-y")
    snap(tree, "branch", "delete", "main-3")  # the highest number was on it
    snap(tree, "undo")
    a_turn(tree, "Off", "y\n")
    assert names(tree) == ["main-4", "main-2", "main"]  # a name that may come back is not made again
    assert snap_json(tree, "log", "--json")["nodes"][-1]["seq"] == seqs[-1] + 1
    whole(tree)


def test_a_preview_changes_nothing(tree: Path) -> None:
    before = snap(tree, "git", "for-each-ref").stdout
    out = snap(tree, "branch", "delete", "main-2", "--preview").stdout
    assert "Would delete 1 branch, with 1 turn on no other branch:" in out
    document = snap_json(tree, "branch", "delete", "main-2", "--preview", "--json")
    assert_record(DeletePreviewRecord, document)
    assert snap(tree, "git", "for-each-ref").stdout == before


def test_a_filter_leaves_what_is_stood_on_or_pinned(tree: Path) -> None:
    """S1-51"""
    snap(tree, "checkpoint", "keep", "main:3")
    snap(tree, "branch", "archive", "main-2")
    assert "No branch to delete." in snap(tree, "branch", "delete", "--older", "1d").stdout
    with Store.open(tree) as store:
        refs = store.shadow.refs
        refs.update("refs/heads/shell/part", None, refs.read("refs/tags/shell/keep"))
    out = snap(tree, "branch", "delete", "--merged-into", "main").stdout
    assert "Deleted branch part." in out
    assert names(tree, "--all") == ["main-3", "main", "main-2"]


def ask(root: Path, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Runs a command on a terminal and types an answer."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments], cwd=root, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, answer)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    return process.wait(), shown.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="reads a terminal to its end as Linux gives it")
def test_a_person_is_asked_before_a_branch_goes(tree: Path) -> None:
    """S1-50"""
    status, shown = ask(tree, b"n\n", "branch", "delete", "main-2")
    assert status == 1
    assert "Delete 1 branch" in shown
    assert "Another way" in shown
    assert "Nothing was changed." in shown
    assert "main-2" in names(tree)
    assert ask(tree, b"y\n", "branch", "delete", "main-2")[0] == 0
    assert "main-2" not in names(tree)
    assert ask(tree, b"", "branch", "delete", "main", "--yes")[0] == 0
    assert names(tree) == ["main-3"]


def test_archived_listed_again_and_promoted(tree: Path) -> None:
    """S1-39, C19"""
    snap(tree, "branch", "archive", "main-2")
    assert names(tree) == ["main-3", "main"]
    assert "1 more is archived: `snapstore branches --all`" in snap(tree, "branches").stdout
    assert "archived" in snap(tree, "branches", "--all").stdout
    snap(tree, "branch", "unarchive", "main-2")
    out = snap(tree, "branch", "promote", "main-3").stdout
    assert "Branch main-3 is now main." in out
    assert "The previous main is archived branch archive-main." in out
    assert "already" in snap(tree, "branch", "merge", "main").stdout
    assert snap_json(tree, "status", "--json")["branch"] == "main"
    assert (tree / "poem").read_text() == "2c\n"
    whole(tree)


def test_checkpoints_are_pinned_listed_gone_to_and_removed(tree: Path) -> None:
    """S1-55, S3-04"""
    assert "No checkpoints yet." in snap(tree, "checkpoints").stdout
    assert "Checkpoint good is at turn 2" in snap(tree, "checkpoint", "good").stdout
    snap(tree, "checkpoint", "early", "1")
    assert "is already at turn 1" in snap(tree, "checkpoint", "early", "1").stdout
    document = snap_json(tree, "checkpoints", "--json")
    assert_record(CheckpointsRecord, document)
    assert [(item["name"], item["turn"]) for item in document["checkpoints"]] == [("early", 1), ("good", 2)]
    assert snap(tree, "checkpoints").stdout.splitlines()[1].startswith("@ good ")
    snap(tree, "goto", "early", "-y")
    assert (tree / "poem").read_text() == "1\n"
    snap(tree, "checkpoint", "good", "main:3", status=2)
    snap(tree, "checkpoint", "good", "main:3", "--force")
    snap(tree, "checkpoint", "early", "--delete")
    assert [item["name"] for item in snap_json(tree, "checkpoints", "--json")["checkpoints"]] == ["good"]
    snap(tree, "checkpoint", "early", "--delete", status=16)
    whole(tree)


REFUSED = [
    (["branch", "delete", "main-3"], 2, "usage"),
    (["branch", "archive", "main-3"], 2, "usage"),
    (["branch", "rename", "main", "main-2"], 2, "usage"),
    (["branch", "rename", "main", "--", "-rf"], 15, "unsafe"),
    (["branch", "rename", "main", "../x"], 15, "unsafe"),
    (["branch", "rename", "main", "x.lock"], 15, "unsafe"),
    (["branch", "rename", "main", "5"], 15, "unsafe"),
    (["branch", "rename", "main", "90s"], 15, "unsafe"),
    (["branch", "rename", "../main", "x"], 15, "unsafe"),
    (["branch", "delete", "nope"], 16, "unknown"),
    (["branch", "delete", "main", "nope"], 16, "unknown"),
    (["branch", "delete", "main", "main-3"], 2, "usage"),
    (["branch", "delete"], 2, "usage"),
    (["branch", "delete", "main", "--older", "3d"], 2, "usage"),
    (["branch", "delete", "main", "--all"], 2, "usage"),
    (["branch", "delete", "--older", "10x"], 2, "usage"),
    (["branch", "delete", "--older", "3"], 2, "usage"),
    (["branch", "delete", "--merged-into", "nope"], 16, "unknown"),
    (["branch", "unarchive", "main"], 2, "usage"),
    (["branch", "promote", "nope"], 16, "unknown"),
    (["branch"], 2, "usage"),
    (["checkpoint", "main"], 2, "usage"),
    (["checkpoint", "a b"], 15, "unsafe"),
    (["checkpoint", "good", "99"], 16, "unknown"),
    (["checkpoint", "good", "1", "--delete"], 2, "usage"),
    (["branches", "--session", "nobody"], 16, "unknown"),
    (["branch", "delete", "main-2", "--session", "nobody"], 16, "unknown"),
]


def test_a_refusal_has_its_name_and_writes_nothing(tree: Path) -> None:
    with Store.open(tree) as store:
        before = all_refs(store)
        for arguments, status, name in REFUSED:
            at = arguments.index("--") if "--" in arguments else len(arguments)
            document = snap_json(tree, *arguments[:at], "--json", *arguments[at:], status=status)
            assert document["error"] == name, arguments
            assert document["hint"]
        assert all_refs(store) == before


def test_the_warning_from_fifteen_on(tree: Path) -> None:
    """S0-49: by the turn that starts the branch, and in the list."""
    with Store.open(tree) as store:
        refs = store.shadow.refs
        for number in range(4, 15):
            refs.update(f"refs/heads/shell/b{number}", None, refs.read("refs/heads/shell/main"))
    assert snap(tree, "branches").stderr == ""
    snap(tree, "undo")
    snap(tree, "turn", "begin", "-m", "x")
    (tree / "poem").write_text("new\n")
    assert "15 branches" in snap(tree, "turn", "end").stderr
    assert "lists 15 branches; above 20 the oldest are archived" in snap(tree, "branches").stderr
    assert snap(tree, "branches", "--json").stdout.count("\n") == 1


def test_how_many_are_listed_is_set_by_init(root: Path) -> None:
    """C4, S0-48: from the start or later, and archived by the turn that starts a branch; nothing is refused."""
    document = snap_json(root, "init", "--max-branches", "2", "--json")
    assert_record(InitRecord, document)
    assert document["max_branches"] == 2
    a_turn(root, "1", "1\n")
    for way in ("2", "2b", "2c"):
        a_turn(root, way, f"{way}\n")
        snap(root, "undo")
    assert names(root) == ["main-3", "main-2"]
    assert names(root, "--all") == ["main-3", "main-2", "main"]
    assert snap_json(root, "branches", "--json")["max_branches"] == 2
    assert "2 is the limit" in snap(root, "branch", "unarchive", "main", status=2).stderr
    assert "at most 3 listed" in snap(root, "init", "--max-branches=3").stdout
    snap(root, "branch", "unarchive", "main")
    whole(root)


def test_no_limit_means_no_archive_and_no_warning(tree: Path) -> None:
    """C4, S0-49: 0 is none. The limit of files stays as it was set."""
    snap(tree, "init", "--max-file-size", "5MB")
    done = snap(tree, "init", "--max-branches", "0")
    assert "already.\n" in done.stdout
    assert "all listed" in done.stdout
    with Store.open(tree) as store:
        assert (store.header.max_file_size, store.header.max_branches) == (5_000_000, 0)
        refs = store.shadow.refs
        for number in range(4, 25):
            refs.update(f"refs/heads/shell/b{number}", None, refs.read("refs/heads/shell/main"))
    snap(tree, "undo")
    snap(tree, "turn", "begin", "-m", "x")
    (tree / "poem").write_text("new\n")
    assert snap(tree, "turn", "end").stderr == ""
    assert snap(tree, "branches").stderr == ""
    assert len(names(tree)) == 25
    assert "at most 20 listed" in snap(tree, "init", "--max-branches", "20").stdout
    assert "nothing to do" in snap(tree, "init", "--max-branches", "20").stdout


def test_two_programs_set_one_limit_each(root: Path) -> None:
    """C4: a store that was opened earlier does not write back what another has set since."""
    with Store.open(root, create=True) as store:
        snap(root, "init", "--max-branches", "7")
        store.configure(max_file_size=1000)
        assert store.header.max_branches == 7
    document = snap_json(root, "init", "--json")
    assert (document["max_file_size"], document["max_branches"]) == (1000, 7)


@pytest.mark.parametrize("number", ["many", "-1", "1.5", "", "9" * 10])
def test_a_limit_that_is_no_number_is_refused(tree: Path, number: str) -> None:
    """C4"""
    document = snap_json(tree, "init", "--max-branches", number, "--json", status=2)
    assert document["error"] == "usage"
    assert snap_json(tree, "branches", "--json")["max_branches"] == 20
