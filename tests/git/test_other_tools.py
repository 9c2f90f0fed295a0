"""Every kind of store opens in dulwich, GitPython, pygit2 and plain git, and is readable with each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import git as gitpython
import pygit2
import pytest
from commands import snap
from dulwich.repo import Repo
from helpers import all_refs, git, git_in, write

from snapstore import Session, Store
from snapstore.git.maintenance.fold import FOLD_AT
from snapstore.git.refs import Refs
from snapstore.timeline.maintenance import gc
from snapstore.timeline.moves.branches import Branches

NOTES = "refs/notes/turns"


def turns(root: Path, count: int, first: int = 0) -> None:
    with Store.open(root, create=True) as store:
        session = store.session("s")
        for number in range(first, first + count):
            take(session, root, number)


def take(session: Session, root: Path, number: int) -> bytes:
    turn = session.begin(f"Turn {number}")
    write(root / "a/text", "".join(f"line {line} {number if line == number % 20 else ''}\n" for line in range(20)))
    write(root / f"b/file{number}", f"{number}\n")
    return turn.end(scan=True)


def new(root: Path) -> None:
    turns(root, 3)


def folded(root: Path) -> None:
    turns(root, FOLD_AT + 8)


def moved(root: Path) -> None:
    """Branches, an archive, a safety ref, checkpoints, revert."""
    turns(root, 5)
    with Store.open(root) as store:
        session = store.session("s")
        session.move(session.plan_undo(2))
        take(session, root, 5)
        write(root / "a/text", "by hand\n")
        session.move(session.plan_undo(1, policy="force"))
        Branches(session).checkpoint("here", bytes.fromhex(all_refs(store)["refs/heads/s/main"]))


def packed_by_git(root: Path) -> None:
    turns(root, 6)
    with Store.open(root) as store:
        git(store.shadow.git_dir, "tag", "-a", "-m", "a tag", "mark", "HEAD")
        gc.collect(store)
        git(store.shadow.git_dir, "pack-refs", "--all")
    turns(root, 2, 6)


def packed_without_git(root: Path) -> None:
    turns(root, 6)
    with Store.open(root) as store:
        gc.collect(store, git="")


def many_refs(root: Path) -> None:
    """So many that they are written at once, with a tag among them, and one of them gone again."""
    turns(root, 2)
    with Store.open(root) as store, store.changing():
        git(store.shadow.git_dir, "tag", "-a", "-m", "a tag", "mark", "HEAD")
        git(store.shadow.git_dir, "pack-refs", "--all")
        tip = bytes.fromhex(all_refs(store)["refs/heads/s/main"])
        refs = Refs(store.shadow.git_dir)
        refs.update_all([(f"refs/snapstore/archive/s/b{number}", None, tip) for number in range(100)])
        refs.update("refs/snapstore/archive/s/b7", tip, None)


def borrowed(root: Path) -> None:
    git_in(root, "init", "--quiet")
    for number in range(3):
        write(root / "theirs", f"{number}\n" * 50)
        git_in(root, "add", "-A")
        git_in(root, "commit", "--quiet", "-m", f"theirs {number}")
    git_in(root, "repack", "-adq")
    turns(root, 3)


def large(root: Path) -> None:
    (root / "large").write_bytes(os.urandom(1 << 20) * 17)
    turns(root, 2)


def forgotten(root: Path) -> None:
    write(root / "secret", "a secret\n")
    turns(root, 3)
    snap(root, "forget", "secret", "--yes")


KINDS: dict[str, Callable[[Path], None]] = {
    made.__name__: made
    for made in (*(new, folded, moved, packed_by_git, packed_without_git, many_refs, borrowed, large, forgotten),)
}


@pytest.fixture(params=KINDS)
def git_dir(root: Path, request: pytest.FixtureRequest) -> str:
    KINDS[request.param](root)
    with Store.open(root) as store:
        return store.shadow.git_dir


def noted(git_dir: str) -> dict[str, str]:
    """The commit of each record with the blob that holds it, as git lists them."""
    rows = git(git_dir, "notes", "--ref", NOTES, "list").decode().splitlines()
    return {row.split()[1]: row.split()[0] for row in rows}


def commits_of(git_dir: str) -> set[str]:
    return set(git(git_dir, "rev-list", "--all").decode().split())


def test_each_library_reads_all_of_it(git_dir: str) -> None:
    refs, records, commits = all_refs(git_dir), noted(git_dir), commits_of(git_dir)
    assert len(records) >= 2
    with Repo(git_dir) as repo:
        found = {name.decode(): oid.decode() for name, oid in repo.refs.as_dict(b"refs").items()}
        assert {f"refs/{name}": oid for name, oid in found.items()} == refs
        tips = [repo.object_store.peel(oid.encode())[1].id for oid in refs.values()]
        assert {entry.commit.id.decode() for entry in repo.get_walker(include=tips)} == commits
        for commit, blob in records.items():
            assert repo.notes.get_note(commit.encode(), NOTES.encode()) == repo[blob.encode()].data
    with gitpython.Repo(git_dir) as other:
        assert {ref.path for ref in other.references} >= {name for name in refs if name.startswith("refs/heads/")}
        assert {commit.hexsha for commit in other.iter_commits("--all")} == commits
        for commit, blob in records.items():
            assert (
                other.git.notes("--ref", NOTES, "show", commit)
                == git(git_dir, "cat-file", "blob", blob).decode().strip()
            )
    third = pygit2.Repository(git_dir)
    assert {name: str(third.references[name].resolve().target) for name in third.references} == refs
    seen: set[str] = set()
    for oid in refs.values():
        if isinstance(third[oid], pygit2.Commit):
            seen.update(str(commit.id) for commit in third.walk(oid))
    assert seen == commits
    for commit, blob in records.items():
        assert third.lookup_note(commit, NOTES).message == git(git_dir, "cat-file", "blob", blob).decode()
    third.free()


def test_ordinary_git_works_on_it(git_dir: str, tmp_path: Path) -> None:
    refs, commits = all_refs(git_dir), commits_of(git_dir)
    assert not [
        row for row in git(git_dir, "fsck", "--strict", "--full").decode().splitlines() if "dangling" not in row
    ]
    graph = git(git_dir, "log", "--graph", "--all", "--format=%H").decode()
    assert all(commit in graph for commit in commits)
    dulwich = subprocess.run(["dulwich", "log"], cwd=git_dir, capture_output=True, check=True)
    assert b"commit: " in dulwich.stdout
    blame = git(git_dir, "blame", "--porcelain", "refs/heads/s/main", "--", "a/text").decode()
    assert "author agent" in blame
    git_in(tmp_path, "clone", "--quiet", git_dir, "clone")
    assert git_in(tmp_path / "clone", "show", "origin/s/main:a/text").startswith(b"line 0")
    git(git_dir, "worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"), "refs/heads/s/main")
    assert (tmp_path / "tree/a/text").read_text().startswith("line 0")
    first = git(git_dir, "rev-list", "--max-parents=0", "refs/heads/s/main").decode().split()[0]
    git_in(tmp_path / "tree", "bisect", "start", "refs/heads/s/main", first)
    said = git_in(tmp_path / "tree", "bisect", "run", "test", "!", "-e", "b/file1").decode()
    assert "Turn 1" in said
    git_in(tmp_path / "tree", "bisect", "reset")
    git(git_dir, "worktree", "remove", "--force", str(tmp_path / "tree"))
    git(git_dir, "gc", "--quiet", "--prune=now")
    assert (all_refs(git_dir), commits_of(git_dir)) == (refs, commits)
