"""Inside a user's git checkout: their repository is only read, their moves are noted, nested ones are folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import (
    assert_equal,
    assert_whole,
    bit_by_bit,
    git,
    git_in,
    in_commit,
    line,
    on_disk,
    plain_environment,
    record,
    touched,
    write,
)

from snapstore import Store


@pytest.fixture
def checkout(root: Path) -> Path:
    """A project with some history, two branches, something staged, something dirty, something stashed."""
    git_in(root, "init", "--quiet")
    for number in range(20):
        write(root / f"src/module_{number % 3}/file_{number}", f"content {number}\n" * 50)
    write(root / "run", "#!/bin/sh\n", executable=True)
    (root / "link").symlink_to("run")
    git_in(root, "add", ".")
    git_in(root, "commit", "--quiet", "-m", "first")
    git_in(root, "branch", "other")
    write(root / "src/module_0/file_0", "second\n")
    git_in(root, "commit", "--quiet", "-a", "-m", "second")
    write(root / "stashed", "x")
    git_in(root, "stash", "push", "--quiet", "--include-untracked")
    write(root / "staged", "staged\n")
    git_in(root, "add", "staged")
    write(root / "staged", "and changed since\n")
    write(root / "src/module_1/file_1", "dirty\n")
    write(root / "untracked", "untracked\n")
    return root


def without_change_times(seen: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """A hard link taken on a pack moves its inode's change time, and nothing else."""
    return {name: (mode, mtime, inode, data) for name, (mode, mtime, _, inode, data) in seen.items()}


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_the_user_s_git_folder_is_bit_identical_before_and_after_P_04(checkout: Path, packed: bool) -> None:
    if packed:
        git_in(checkout, "gc", "--quiet")
    before = without_change_times(bit_by_bit(checkout / ".git"))
    with Store.open(checkout, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(checkout))
        session = store.session("s")
        with session.turn("by scan"):
            write(checkout / "src/module_2/file_2", "changed\n")
            (checkout / "run").unlink()
        turn = session.begin("by name")
        turn.touch(checkout / "staged")
        write(checkout / "staged", "again\n")
        turn.end()
        session.begin("cancelled").cancel()
        assert_whole(store)
        git(store.shadow.git_dir, "gc", "--quiet", "--prune=now")
        git(store.shadow.git_dir, "repack", "-adf", "--quiet")
        session.begin("after the cleaning").end()
        assert_whole(store)
    assert without_change_times(bit_by_bit(checkout / ".git")) == before
    git_in(checkout, "fsck", "--strict")


def test_what_was_borrowed_survives_the_user_s_own_cleaning_P_04_G_17(checkout: Path) -> None:
    """After reset --hard, reflog expiry and gc --prune=now the user's repository has forgotten; the store has not."""
    git_in(checkout, "stash", "drop", "--quiet")
    git_in(checkout, "gc", "--quiet")
    with Store.open(checkout, create=True) as store:
        baseline, files = line(store, "shell")[0]["commit"], on_disk(checkout)
        git_in(checkout, "checkout", "--quiet", "--force", "--orphan", "nothing")
        git_in(checkout, "rm", "-rfq", "--cached", ".")
        git_in(checkout, "commit", "--quiet", "--allow-empty", "-m", "nothing")
        for branch in ("main", "other"):
            git_in(checkout, "branch", "-D", branch)
        git_in(checkout, "reflog", "expire", "--expire=now", "--all")
        git_in(checkout, "gc", "--quiet", "--prune=now")
        assert_equal(store, baseline, files)
        assert_whole(store)
    shutil.rmtree(checkout / ".git")
    with Store.open(checkout) as store:
        assert_equal(store, baseline, files)
        store.session("s").begin("no repository any more").end()
        assert_whole(store)


@pytest.mark.parametrize(
    "shape", ["worktree", "subfolder", "index v4", "split index", "sha256", "shallow", "alternates"]
)
def test_every_shape_of_checkout_is_captured_as_on_disk(checkout: Path, tmp_path: Path, shape: str) -> None:
    """Borrowed where right, else hashed, never wrong."""
    root = checkout
    if shape == "worktree":
        root = tmp_path / "linked"
        git_in(checkout, "worktree", "add", "--quiet", str(root), "other")
    elif shape == "index v4":
        git_in(checkout, "update-index", "--index-version", "4")
    elif shape == "split index":
        git_in(checkout, "update-index", "--split-index")
    elif shape == "sha256":
        root = tmp_path / "sha256"
        root.mkdir()
        git_in(root, "init", "--quiet", "--object-format=sha256")
        write(root / "a/b", "x")
        git_in(root, "add", ".")
        git_in(root, "commit", "--quiet", "-m", "x")
    elif shape in ("shallow", "alternates"):
        root = tmp_path / "clone"
        how = ["--depth=1", f"file://{checkout}"] if shape == "shallow" else ["--shared", str(checkout)]
        git_in(tmp_path, "clone", "--quiet", *how, str(root))
    write(root / "new", "new")
    start = root / "src/module_0" if shape == "subfolder" else root
    with Store.open(start, create=True) as store:
        assert store.root == os.fsencode(root)  # the top of the checkout, wherever one stands in it
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(root))
        with store.session("s").turn("go on") as turn:
            write(root / "new", "newer")
        assert turn.commit is not None
        assert touched(store, turn.commit) == {b"new": "M"}
        assert_equal(store, turn.commit, on_disk(root))
        assert_whole(store)


def test_a_sparse_checkout_is_captured_as_on_disk(checkout: Path) -> None:
    git_in(checkout, "stash", "drop", "--quiet")
    git_in(checkout, "reset", "--quiet", "--hard")
    git_in(checkout, "sparse-checkout", "set", "--cone", "src/module_1")
    assert not (checkout / "src/module_0").exists()
    with Store.open(checkout, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(checkout))


def test_files_whose_stat_lies_in_the_user_s_index_are_read(checkout: Path) -> None:
    """Same size, same times as far as the index tells, other bytes: assume-unchanged and skip-worktree hide nothing."""
    git_in(checkout, "update-index", "--assume-unchanged", "src/module_0/file_3")
    git_in(checkout, "update-index", "--skip-worktree", "src/module_2/file_5")
    for name in ("src/module_0/file_3", "src/module_2/file_5"):
        path = checkout / name
        seen = path.stat()
        path.write_text(path.read_text().swapcase())
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    with Store.open(checkout, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(checkout))


def test_a_merge_in_progress_is_captured_and_left_alone_P_04(checkout: Path) -> None:
    git_in(checkout, "stash", "drop", "--quiet")
    git_in(checkout, "reset", "--quiet", "--hard")
    git_in(checkout, "checkout", "--quiet", "other")
    write(checkout / "src/module_0/file_0", "conflicting\n")
    git_in(checkout, "commit", "--quiet", "-a", "-m", "theirs")
    git_in(checkout, "checkout", "--quiet", "main")
    git_in(checkout, "merge", "other", may_fail=True)
    before = without_change_times(bit_by_bit(checkout / ".git"))
    with Store.open(checkout, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(checkout))
        with store.session("s").turn("resolve") as turn:
            write(checkout / "src/module_0/file_0", "resolved\n")
        assert turn.commit is not None
        assert touched(store, turn.commit) == {b"src/module_0/file_0": "M"}
    assert without_change_times(bit_by_bit(checkout / ".git")) == before


# G-28: nested repositories.


def test_nested_repositories_are_folders_like_any_other_G_28(root: Path, store: Store, tmp_path: Path) -> None:
    """With commits, without, empty, bare, with a work tree link; `git add` would fail on some and skip the others."""
    for name in ("with", "without", "deep/er/nested"):
        (root / name).mkdir(parents=True)
        git_in(root / name, "init", "--quiet")
        write(root / name / "file", name)
        write(root / name / ".gitignore", "ignored\n")
        write(root / name / "ignored", "not captured")
    git_in(root / "with", "add", ".")
    git_in(root / "with", "commit", "--quiet", "-m", "x")
    git_in(root / "with", "worktree", "add", "--quiet", str(root / "linked"))
    git_in(root, "init", "--quiet", "--bare", "bare.git")
    session = store.session("s")
    session.begin("look").end()
    expected = {path: entry for path, entry in on_disk(root).items() if not path.endswith(b"/ignored")}
    assert_equal(store, line(store, "s")[-1]["commit"], expected)
    with session.turn("work inside them") as turn:
        for name in ("with", "without", "deep/er/nested", "linked"):
            write(root / name / "file", "changed")
        write(root / "without/new/file", "x")
    assert turn.commit is not None
    changed = {b"with/file": "M", b"without/file": "M", b"deep/er/nested/file": "M", b"linked/file": "M"}
    assert touched(store, turn.commit) == {**changed, b"without/new/file": "A"}
    modes = {row.split(b" ")[0] for row in git(store.shadow.git_dir, "ls-tree", "-r", turn.commit.hex()).splitlines()}
    assert b"160000" not in modes
    turn = session.begin("named")
    turn.touch(root / "with/file", root / "without/new/file")
    write(root / "with/file", "named")
    assert touched(store, turn.end()) == {b"with/file": "M"}
    assert_whole(store)


def test_a_submodule_s_files_are_captured_G_28(root: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git_in(library, "init", "--quiet")
    write(library / "code", "1\n")
    write(library / "sub/code", "1\n")
    git_in(library, "add", ".")
    git_in(library, "commit", "--quiet", "-m", "library")
    git_in(root, "init", "--quiet")
    git_in(root, "submodule", "--quiet", "add", str(library), "vendor/library")
    git_in(root, "commit", "--quiet", "-m", "with a submodule")
    assert (root / "vendor/library/.git").is_file()
    before = without_change_times(bit_by_bit(root / ".git"))
    with Store.open(root, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(root))
        assert b"vendor/library/sub/code" in in_commit(store, line(store, "shell")[0]["commit"])
        with store.session("s").turn("edit the library") as turn:
            write(root / "vendor/library/code", "2\n")
            write(root / "vendor/library/new", "3\n")
        assert turn.commit is not None
        assert touched(store, turn.commit) == {b"vendor/library/code": "M", b"vendor/library/new": "A"}
        assert_whole(store)
    assert without_change_times(bit_by_bit(root / ".git")) == before


def test_git_init_and_clone_within_a_turn_G_28(root: Path, store: Store) -> None:
    """The folder was no repository when the turn began; its files stay the same files."""
    write(root / "project/file", "x")
    with store.session("s").turn("put it under git") as turn:
        git_in(root / "project", "init", "--quiet")
        git_in(root / "project", "add", ".")
        git_in(root / "project", "commit", "--quiet", "-m", "first")
        git_in(root, "clone", "--quiet", "project", "copy")
    assert turn.commit is not None
    assert touched(store, turn.commit) == {b"copy/file": "A"}
    with store.session("s").turn("and the root itself") as turn:
        git_in(root, "init", "--quiet")
    assert touched(store, turn.commit) == {}


# G-29: what the turn did to the user's repository.


def in_turn(root: Path, store: Store, *commands: list[str]) -> dict[str, object]:
    with store.session("s").turn("git commands") as turn:
        for command in commands:
            git_in(root, *command)
    assert turn.commit is not None
    moved: dict[str, object] = record(store, turn.commit)["user_git"]
    return moved


def test_a_commit_in_a_turn_is_noted_G_29(checkout: Path) -> None:
    with Store.open(checkout, create=True) as store:
        old = git_in(checkout, "rev-parse", "HEAD").decode().strip()
        moved = in_turn(checkout, store, ["commit", "--quiet", "-a", "-m", "by the agent"])
        new = git_in(checkout, "rev-parse", "HEAD").decode().strip()
        assert moved["head_commit"] == [old, new]
        assert moved["branches"] == {"main": [old, new]}
        assert moved["index"] is True
        assert "head" not in moved
        said = "Your own git repository changed in turn 1 (HEAD, the index, branches); that is not undone."
        assert store.session("s").plan_undo().notes == [said]


def test_a_switch_a_new_branch_and_a_deleted_one_are_noted_G_29(checkout: Path) -> None:
    git_in(checkout, "reset", "--quiet", "--hard")
    with Store.open(checkout, create=True) as store:
        main = git_in(checkout, "rev-parse", "main").decode().strip()
        other = git_in(checkout, "rev-parse", "other").decode().strip()
        moved = in_turn(checkout, store, ["switch", "--quiet", "other"])
        assert moved["head"] == ["refs/heads/main", "refs/heads/other"]
        assert moved["head_commit"] == [main, other]
        assert "branches" not in moved
        moved = in_turn(checkout, store, ["branch", "new"], ["branch", "-D", "main"])
        assert moved == {"branches": {"main": [main, None], "new": [None, other]}}
        moved = in_turn(checkout, store, ["checkout", "--quiet", "--detach"])
        assert moved == {"head": ["refs/heads/other", other]}
        moved = in_turn(checkout, store, ["pack-refs", "--all", "--prune"])
        assert moved == {}


def test_staging_is_noted_and_a_mere_status_is_not_G_29(checkout: Path) -> None:
    with Store.open(checkout, create=True) as store:
        assert in_turn(checkout, store, ["add", "untracked"]) == {"index": True}
        for path in (checkout / "src").rglob("file_*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))  # so that a status rewrites the index with fresh stats
        index = (checkout / ".git/index").read_bytes()
        assert in_turn(checkout, store, ["status"], ["diff"], ["log"]) == {}
        assert (checkout / ".git/index").read_bytes() != index
        assert in_turn(checkout, store, ["gc", "--quiet"]) == {}
        assert in_turn(checkout, store) == {}


def test_a_repository_that_comes_or_goes_in_a_turn_is_noted_G_29(root: Path, store: Store) -> None:
    write(root / "a", "1")
    moved = in_turn(root, store, ["init", "--quiet"], ["add", "a"], ["commit", "--quiet", "-m", "x"])
    head = git_in(root, "rev-parse", "HEAD").decode().strip()
    assert moved["head_commit"] == [None, head]
    with store.session("s").turn("remove it") as turn:
        shutil.rmtree(root / ".git")
    assert turn.commit is not None
    assert record(store, turn.commit)["user_git"]["head_commit"] == [head, None]
    assert touched(store, turn.commit) == {}


def test_moves_of_an_interrupted_turn_are_noted_G_29_G_37(checkout: Path) -> None:
    with Store.open(checkout, create=True) as store:
        session = store.session("s")
        session.begin("killed")
        git_in(checkout, "commit", "--quiet", "-a", "-m", "by the agent")
        session.begin("next").end()
        left = line(store, "s")[-2]
        assert left["record"]["status"] == "interrupted"
        assert "head_commit" in left["record"]["user_git"]
        assert line(store, "s")[-1]["record"]["user_git"] == {}


@pytest.mark.parametrize("damage", ["HEAD", "index", "config", "refs/heads/main"])
def test_a_damaged_repository_of_the_user_does_not_stop_a_turn_G_29(checkout: Path, damage: str) -> None:
    (checkout / ".git" / damage).write_bytes(b"\x00\xff garbage")
    with Store.open(checkout, create=True) as store:
        with store.session("s").turn("go on") as turn:
            write(checkout / "new", "x")
        assert turn.commit is not None
        assert b"new" in touched(store, turn.commit)
        assert_equal(store, turn.commit, on_disk(checkout))


def test_turns_while_git_itself_works_on_the_checkout_P_04(checkout: Path) -> None:
    """A rebase holds index.lock and moves HEAD while turns are recorded: neither disturbs the other."""
    git_in(checkout, "stash", "drop", "--quiet")
    git_in(checkout, "reset", "--quiet", "--hard")
    script = "for i in $(seq 30); do echo $i > n$i; git add n$i; git commit -qm $i; git status > /dev/null; done"
    settings = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c"}
    settings |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c"}
    with Store.open(checkout, create=True) as store:
        worker = subprocess.Popen(["sh", "-c", script], cwd=checkout, env=plain_environment(settings))
        turns = 0
        while worker.poll() is None:
            store.session("s").begin("meanwhile").end()
            turns += 1
        assert worker.wait() == 0
        assert turns > 0
        store.session("s").begin("at rest").end()
        assert_equal(store, line(store, "s")[-1]["commit"], on_disk(checkout))
        assert_whole(store)
    git_in(checkout, "fsck", "--strict")
    assert int(git_in(checkout, "rev-list", "--count", "HEAD")) == 32
