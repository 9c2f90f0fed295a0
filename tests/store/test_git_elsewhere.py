"""A repository of the user's whose folder is not called `.git`, and lies below the root: never captured, never written
(P-04)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import assert_whole, bit_by_bit, git_in, in_commit, line, write

from snapstore import Store
from snapstore.worktree.ignore.policy import CapturePolicy


def separate(root: Path) -> Path:
    (root / "deep").mkdir(exist_ok=True)
    git_in(root, "init", "--quiet", "--separate-git-dir", str(root / "deep/gitdata"))
    return root / "deep/gitdata"


def bare(root: Path) -> Path:
    """As people keep many worktrees: a bare repository beside them."""
    git_in(root, "init", "--quiet", "--bare", ".bare")
    (root / ".git").write_text("gitdir: ./.bare\n")
    return root / ".bare"


def link(root: Path) -> Path:
    git_in(root, "init", "--quiet")
    (root / ".git").rename(root / "gitdata")
    os.symlink("gitdata", root / ".git")
    return root / "gitdata"


@pytest.mark.parametrize("made", [separate, bare, link])
def test_the_users_repository_is_not_moved_back_by_another_name(root: Path, made: Callable[[Path], Path]) -> None:
    """P-04, G-29: the commit that a turn made is still there after its undo."""
    folder = made(root)
    write(root / "deep/a", "1\n")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        with session.turn("Commit") as turn:
            write(root / "deep/a", "2\n")
            tree = git_in(root, "--git-dir", str(folder), "hash-object", "-t", "tree", "-w", "--stdin").decode().strip()
            commit = git_in(root, "--git-dir", str(folder), "commit-tree", "-m", "by the agent", tree).decode().strip()
            git_in(root, "--git-dir", str(folder), "update-ref", "refs/heads/new", commit)
        assert turn.commit is not None
        assert in_commit(store, turn.commit.hex()).keys() == {b"deep/a"}
        assert line(store, "s")[-1]["record"]["left_out"] == []
        before = bit_by_bit(folder)
        for plan in (session.plan_undo, session.plan_redo, lambda: session.plan_goto("0", exact=True)):
            session.move(plan())
            assert bit_by_bit(folder) == before
        assert (root / "deep/a").read_text() == "1\n"
        assert_whole(store)
    assert git_in(root, "--git-dir", str(folder), "log", "--format=%s", "new").decode() == "by the agent\n"
    assert snap_json(root, "status", "--json")["left_out"] == []


def test_what_was_recorded_of_it_before_stays_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a store from before it was left alone: said, and on a screen not file by file."""
    folder = separate(root)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "policy", CapturePolicy(b""))
        with Store.open(root, create=True) as store, store.session("s").turn("Objects"):
            write(root / "a", "1\n")
            for number in range(30):
                write(folder / f"objects/aa/{number:038}", "x")
    before = bit_by_bit(folder)
    assert len(snap_json(root, "undo", "--preview", "--session", "s", "--json")["notes"]) == 30
    said = snap(root, "undo", "--session", "s").stdout
    assert "Files reverted: a\n" in said and 0 < said.count("never captured") < 30
    assert bit_by_bit(folder) == before


def test_a_git_file_that_leads_nowhere_hides_nothing(root: Path) -> None:
    """Only what is a git folder is one."""
    write(root / "src/a", "1\n")
    (root / ".git").write_text("gitdir: src\n")
    with Store.open(root, create=True) as store:
        assert in_commit(store, line(store, "shell")[0]["commit"]).keys() == {b"src/a"}
