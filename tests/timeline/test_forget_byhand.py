"""`forget` in a store in which somebody has worked with git: what is theirs is not lost, and hides nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import snap, snap_json
from forgetting import SECRET, assert_gone, forget, forget_turn, holds
from helpers import all_refs, assert_whole, git, git_in, tip, turn, write

from snapstore import Store
from snapstore.errors import Busy
from snapstore.git.maintenance import pack_builder, running_git
from snapstore.timeline.forget import forget as forgetting


@pytest.fixture
def history(root: Path, store: Store) -> Store:
    turn(store.session("s1"), root, "One", key=f"KEY={SECRET}\n", a="1")
    turn(store.session("s1"), root, "Two", a="2")
    return store


# Work trees.


@pytest.mark.parametrize("how", [["--detach"], ["-b", "mine"]])
def test_refused_while_git_has_a_work_tree_here(root: Path, history: Store, tmp_path: Path, how: list[str]) -> None:
    """A commit on a detached HEAD and what is staged are known to the work tree alone: they would be purged."""
    there = tmp_path / "there"
    store, git_dir = history, history.shadow.git_dir
    git(git_dir, "worktree", "add", "-q", *how, str(there), "refs/heads/s1/main")
    write(there / "mine", "my own work")
    git_in(there, "add", "mine")
    git_in(there, "commit", "-qm", "Mine")
    write(there / "staged", "not yet committed")
    git_in(there, "add", "staged")
    before = all_refs(store)
    for dry_run in (True, False):
        with pytest.raises(Busy, match="work tree") as refused:
            forget(store, "key", dry_run=dry_run)
        assert str(there) in refused.value.message and "worktree remove" in refused.value.hint
        with pytest.raises(Busy, match="work tree"):
            forget_turn(store, tip(store, "s1"), dry_run=dry_run)
    assert all_refs(store) == before
    assert git_in(there, "show", "HEAD:mine") == b"my own work"
    assert git_in(there, "show", ":staged") == b"not yet committed"
    git(git_dir, "gc", "-q")
    git_in(there, "commit", "-qm", "All mine")
    if "--detach" in how:
        git_in(there, "switch", "-qc", "mine")
    git(git_dir, "worktree", "remove", str(there))
    forget(store, "key")
    assert git(git_dir, "show", "mine:mine") == b"my own work"
    assert git(git_dir, "show", "mine:staged") == b"not yet committed"
    assert_gone(store)


def test_a_work_tree_that_is_gone_is_said_with_what_to_do(root: Path, history: Store, tmp_path: Path) -> None:
    """Its HEAD would be a bad object, and git's own gc would fail for good."""
    git_dir = history.shadow.git_dir
    git(git_dir, "worktree", "add", "-q", "--detach", str(tmp_path / "there"), "refs/heads/s1/main")
    shutil.rmtree(tmp_path / "there")
    history.close()
    said = snap_json(root, "forget", "key", "--yes", "--json", status=11)
    assert "worktree prune" in said["hint"] and said["work_tree"] == str(tmp_path / "there")
    git(git_dir, "worktree", "prune")
    snap_json(root, "forget", "key", "--yes", "--json")
    with Store.open(root) as store:
        assert_gone(store)
    git(git_dir, "gc", "-q")


def test_refused_while_something_is_staged_in_the_store_itself(root: Path, history: Store, tmp_path: Path) -> None:
    git_dir = history.shadow.git_dir
    write(tmp_path / "there" / "mine", "my own work")
    git(git_dir, "--work-tree", str(tmp_path / "there"), "add", "mine")
    with pytest.raises(Busy, match="staged"):
        forget(history, "key")
    assert git(git_dir, "show", ":mine") == b"my own work"
    Path(git_dir, "index").unlink()
    forget(history, "key")
    assert_gone(history)


def test_a_detached_head_moves_with_the_commits_that_only_it_leads_to(root: Path, history: Store) -> None:
    git_dir = history.shadow.git_dir
    main = git(git_dir, "rev-parse", "refs/heads/s1/main").decode().strip()
    mine = git(git_dir, "commit-tree", f"{main}^{{tree}}", "-p", main, "-m", "Mine").decode().strip()
    git(git_dir, "update-ref", "--no-deref", "HEAD", mine)
    forget(history, "key")
    assert git(git_dir, "log", "-1", "--format=%s", "HEAD") == b"Mine\n"
    assert git(git_dir, "ls-tree", "--name-only", "HEAD") == b"a\n"
    assert holds(history, SECRET) == []
    git(git_dir, "fsck", "--strict", "--no-dangling")


# Tags and notes.


def test_tags_of_anything_move_with_what_they_tell(root: Path, history: Store) -> None:
    """Of a commit, of a tag, of a tree, of a file that stays."""
    git_dir, main = history.shadow.git_dir, "refs/heads/s1/main"
    git(git_dir, "tag", "-a", "-m", f"Release with {SECRET}", "of-commit", main)
    git(git_dir, "tag", "-a", "-m", f"Again {SECRET}", "of-tag", "of-commit")
    git(git_dir, "tag", "of-tree", f"{main}^{{tree}}")
    git(git_dir, "tag", "-a", "-m", f"{SECRET}", "of-tree-told", f"{main}^{{tree}}")
    git(git_dir, "tag", "-a", "-m", "a", "of-a", f"{main}:a")
    names = set(all_refs(history)) - {"refs/snapstore/disk"}
    assert forget(history, "key").lost_refs == []
    assert set(all_refs(history)) - {"refs/snapstore/disk"} == names
    assert git(git_dir, "rev-parse", "of-tag^{commit}") == git(git_dir, "rev-parse", main)
    assert git(git_dir, "tag", "-l", "--format=%(contents:subject)", "of-commit") == b"Release with [forgotten]\n"
    assert git(git_dir, "ls-tree", "--name-only", "of-tree-told") == b"a\n"
    assert git(git_dir, "cat-file", "blob", "of-a") == b"2"
    assert_gone(history)


def test_a_tag_of_the_very_content_goes_and_is_named(root: Path, history: Store) -> None:
    git_dir = history.shadow.git_dir
    git(git_dir, "tag", "blob", "refs/heads/s1/main:key")
    git(git_dir, "tag", "-a", "-m", "x", "told", "blob")
    history.close()
    wanted = ["refs/tags/blob", "refs/tags/told"]
    assert sorted(snap_json(root, "forget", "key", "--dry-run", "--json")["lost_refs"]) == wanted
    said = snap(root, "forget", "key", "--yes").stdout
    assert all(f"{name} points to nothing else" in said for name in wanted)
    with Store.open(root) as store:
        assert not set(wanted) & set(all_refs(store))
        assert_gone(store)


def test_notes_of_people_stay_with_their_commits(root: Path, history: Store) -> None:
    git_dir, main = history.shadow.git_dir, "refs/heads/s1/main"
    git(git_dir, "notes", "add", "-m", f"First {SECRET}", main)
    git(git_dir, "notes", "append", "-m", "Second", main)
    git(git_dir, "notes", "--ref=review", "add", "-m", "Fine", f"{main}~2")
    untouched = all_refs(history)["refs/notes/review"]
    forget(history, "key")
    assert git(git_dir, "notes", "show", main) == b"First [forgotten]\n\nSecond\n"
    assert git(git_dir, "rev-list", "--count", "refs/notes/commits") == b"2\n"
    assert all_refs(history)["refs/notes/review"] == untouched  # the first snapshot is as it was
    assert_gone(history)
    forget_turn(history, tip(history, "s1"))
    assert git(git_dir, "notes", "list") == b""
    assert_whole(history)


# A git at work.


@pytest.mark.parametrize("how", ["by name", "in its folder", "by the environment"])
def test_refused_while_somebodys_git_is_at_work(root: Path, history: Store, how: str) -> None:
    """It has the old packs open, and a `git gc` would write what it found in them into a new one, after all."""
    git_dir = history.shadow.git_dir
    command = ["git", "--git-dir", git_dir] if how == "by name" else ["git"]
    environment = {**os.environ, "GIT_DIR": git_dir} if how == "by the environment" else None
    folder = git_dir if how == "in its folder" else None
    before = all_refs(history)
    with subprocess.Popen(
        [*command, "cat-file", "--batch"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reading:
        assert reading.stdin is not None and reading.stdout is not None
        reading.stdin.write(b"refs/heads/s1/main\n")
        reading.stdin.flush()
        assert reading.stdout.readline()
        with pytest.raises(Busy, match=f"process {reading.pid}"):
            forget(history, "key")
    assert all_refs(history) == before
    forget(history, "key")
    assert_gone(history)


def test_a_git_that_came_while_packs_were_made_stops_it_before_anything_is_changed(
    root: Path, history: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_refs(history)
    came: list[subprocess.Popen[bytes]] = []

    def pack(*arguments: Any) -> list[str]:
        command = ["git", "--git-dir", history.shadow.git_dir, "cat-file", "--batch"]
        came.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        return pack_builder.without_git(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Busy, match="at work"):
        patch.setattr(forgetting, "_packing", lambda _: pack)
        forget(history, "key")
    came[0].communicate()
    assert all_refs(history) == before
    assert history.header.never_capture == []
    assert_whole(history)
    forget(history, "key")
    assert_gone(history)


def test_where_processes_are_not_listed_its_files_tell(history: Store) -> None:
    git_dir = history.shadow.git_dir
    pid_file, half = Path(git_dir, "gc.pid"), Path(git_dir, "objects/pack/tmp_pack_x1")
    assert running_git._by_its_files(git_dir) is None
    pid_file.write_text(f"{os.getpid()} {socket.gethostname()}")
    assert running_git._by_its_files(git_dir) == f"process {os.getpid()}"
    pid_file.write_text(f"999999999 {socket.gethostname()}")
    assert running_git._by_its_files(git_dir) is None
    half.write_bytes(b"PACK")
    assert running_git._by_its_files(git_dir) == "it writes tmp_pack_x1"
    os.utime(half, (1, 1))
    assert running_git._by_its_files(git_dir) is None


def test_a_head_that_somebody_detached_is_no_damage(root: Path, store: Store) -> None:
    commit = turn(store.session("s"), root, "One", a="1")
    git(store.shadow.git_dir, "update-ref", "--no-deref", "HEAD", commit)
    assert "intact" in snap(root, "check").stdout
    Path(store.shadow.git_dir, "HEAD").write_text("1" * 40 + "\n")
    assert "HEAD" in snap(root, "check", status=14).stdout
