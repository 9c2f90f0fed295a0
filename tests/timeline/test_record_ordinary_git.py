"""The store is plain git: every ordinary command works on it, and none loses anything (P-02, G-17)."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import (
    Files,
    all_refs,
    assert_equal,
    assert_whole,
    git,
    git_in,
    in_commit,
    line,
    living_child,
    on_disk,
    plain_environment,
    tip,
    write,
)

from snapstore import Store

TURNS = 50


class Recorded:
    """A store after 50 turns, and what the disk held after each commit."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root = root
        self.store = store
        self.dice = random.Random(7)
        self.states: dict[str, Files] = {}
        self.number = 0

    def take_turns(self, count: int) -> None:
        session = self.store.session("s")
        for _ in range(count):
            self.number += 1
            if self.number % 7 == 0:
                write(self.root / "notes.txt", f"by the user, before turn {self.number}\n")
            turn = session.begin(f"Turn number {self.number}: do this and that", agent="claude")
            self.states[tip(self.store, "s")] = on_disk(self.root)
            named = self.number % 2 == 0
            for _ in range(3):
                path = self.root / f"src/part{self.dice.randrange(4)}/file{self.dice.randrange(6)}.py"
                if named:
                    turn.touch(path)
                if path.exists() and self.dice.random() < 0.2:
                    path.unlink()
                else:
                    old = path.read_text() if path.exists() else "".join(f"line {n}\n" for n in range(40))
                    write(path, old + f"turn {self.number}\n")
            commit = turn.end(replies=[f"Done with {self.number}."])
            self.states[commit.hex()] = on_disk(self.root)

    def assert_nothing_lost(self) -> None:
        for commit, files in self.states.items():
            assert_equal(self.store, commit, files)
        assert_whole(self.store)


@pytest.fixture
def recorded(root: Path) -> Recorded:
    write(root / "README", "hello\n")
    found = Recorded(root, Store.open(root, create=True))
    found.take_turns(TURNS)
    return found


def test_ordinary_git_reads_a_store_after_50_turns_P_02(recorded: Recorded, tmp_path: Path) -> None:
    store, git_dir = recorded.store, recorded.store.shadow.git_dir
    graph = git(git_dir, "log", "--graph", "--all", "--format=%s").decode()
    for number in range(1, TURNS + 1):
        assert f"Turn number {number}: do this and that" in graph
    shown = git(git_dir, "show", "--stat", tip(store, "s")).decode()
    assert "claude" in shown
    assert f"Turn number {TURNS}" in shown
    assert git(git_dir, "diff", "--stat", f"{tip(store, 's')}~10", tip(store, "s"))
    assert git(git_dir, "show", "HEAD:README") == b"hello\n"
    blamed = next(path for path in recorded.states[tip(store, "s")] if path.endswith(b".py"))
    blame = git(git_dir, "blame", "--line-porcelain", "HEAD", "--", blamed.decode()).decode()
    assert re.findall(r"^summary (.*)$", blame, re.MULTILINE)[-1].startswith("Turn number")
    assert git(git_dir, "fsck", "--strict", "--full").decode() == ""
    assert "Done with 50." in git(git_dir, "log", "-1", "--notes=turns", tip(store, "s")).decode()
    assert git(git_dir, "symbolic-ref", "HEAD") == b"refs/heads/s/main\n"
    assert git(git_dir, "status", may_fail=True) == b""  # bare: says so, and does no harm
    # a clone is whole and checks out to the same bytes
    git_in(tmp_path, "clone", "--quiet", git_dir, "clone")
    assert on_disk(tmp_path / "clone") == recorded.states[tip(store, "s")]
    git_in(tmp_path / "clone", "fsck", "--strict")
    git_in(tmp_path, "clone", "--quiet", "--mirror", f"file://{git_dir}", "mirror")
    assert all_refs(str(tmp_path / "mirror")) == all_refs(store)
    for commit, files in list(recorded.states.items())[::10]:
        assert_equal(str(tmp_path / "mirror"), commit, files)
    git_in(tmp_path, "--git-dir", git_dir, "bundle", "create", "--quiet", "all.bundle", "--all")
    git_in(tmp_path, "--git-dir", git_dir, "worktree", "add", "--quiet", str(tmp_path / "tree"), "HEAD~5")
    assert on_disk(tmp_path / "tree") == in_commit(store, "HEAD~5")
    recorded.assert_nothing_lost()
    recorded.take_turns(2)
    recorded.assert_nothing_lost()


CLEANINGS: dict[str, list[list[str]]] = {
    "gc": [["gc", "--quiet", "--prune=now"]],
    "aggressive gc without reflogs": [
        ["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"],
        ["gc", "--quiet", "--aggressive", "--prune=now"],
    ],
    "pack-refs": [["pack-refs", "--all", "--prune"]],
    "repack": [["repack", "-adfq"]],
    "repack, loosening": [["repack", "-Adq"], ["prune", "--expire=now"]],
    "geometric repack": [["repack", "-dq", "--geometric=2"]],
    "unpack everything": [["unpack-objects"]],
    "multi-pack index and commit graph": [
        ["multi-pack-index", "write"],
        ["commit-graph", "write", "--reachable"],
        ["repack", "-adq", "--write-bitmap-index"],
    ],
    "maintenance": [["maintenance", "run", "--task=gc"], ["maintenance", "run", "--task=incremental-repack"]],
    "prune-packed and count": [["prune-packed"], ["count-objects", "-v"], ["update-server-info"]],
}


@pytest.mark.parametrize("how", CLEANINGS)
def test_nothing_is_lost_by_cleaning_and_recording_goes_on_P_02_G_17(root: Path, how: str) -> None:
    """The store stays open through it all: what it remembers of packs and refs must not lead it astray."""
    write(root / "README", "hello\n")
    recorded = Recorded(root, Store.open(root, create=True))
    recorded.take_turns(8)
    git_dir = recorded.store.shadow.git_dir
    for _ in range(2):
        for arguments in CLEANINGS[how]:
            if arguments == ["unpack-objects"]:
                _unpack_everything(git_dir)
            else:
                git(git_dir, *arguments)
        recorded.assert_nothing_lost()
        recorded.take_turns(4)
        recorded.assert_nothing_lost()
    recorded.store.close()
    recorded.store = Store.open(root)
    recorded.take_turns(2)
    recorded.assert_nothing_lost()
    numbers = [int(commit["trailers"]["Seq"]) for commit in line(recorded.store, "s")]
    assert numbers == list(range(len(numbers)))


def _unpack_everything(git_dir: str) -> None:
    folder = Path(git_dir, "objects", "pack")
    packs = [path.read_bytes() for path in folder.glob("*.pack")]
    for path in folder.iterdir():
        path.unlink()
    for pack in packs:
        git(git_dir, "unpack-objects", "-q", feed=pack)


def test_a_deep_chain_of_deltas_made_by_git_is_read_back_P_02(root: Path) -> None:
    """Scanned states whose trees are deltas fifty deep after an aggressive repack."""
    lines = [f"line {number}\n" for number in range(3000)]
    write(root / "big", "".join(lines))
    with Store.open(root, create=True) as store:
        states = {}
        for number in range(60):
            lines[number * 40] = f"changed in {number}\n"
            with store.session("s").turn("edit") as turn:
                write(root / "big", "".join(lines))
            assert turn.commit is not None
            states[turn.commit] = "".join(lines).encode()
        git(store.shadow.git_dir, "repack", "-adfq", "--depth=250", "--window=100")
        with Store.open(root) as again:
            for commit, data in states.items():
                entry = again.shadow.trees.file(again.shadow.commit(commit).tree, b"big")
                assert entry is not None
                assert again.shadow.objects.read(entry[1]) == (b"blob", data)
                assert b"".join(again.shadow.objects.stream(entry[1])) == data
                assert again.shadow.objects.header(entry[1]) == (b"blob", len(data))
            assert_whole(again)


CLEANER = """
import subprocess, sys
git_dir = sys.argv[1]
commands = [
    ["gc", "--quiet", "--prune=2.weeks.ago"],
    ["pack-refs", "--all", "--prune"],
    ["repack", "-adq"],
    ["gc", "--quiet", "--prune=now"],
]
print("ready", flush=True)
while True:
    for command in commands:
        subprocess.run(["git", "--git-dir", git_dir, *command], check=False, stderr=subprocess.DEVNULL)
"""


@pytest.mark.parametrize("reopened", [False, True], ids=["kept open", "reopened"])
def test_recording_while_git_cleans_in_a_loop_loses_nothing_P_02_G_17(root: Path, reopened: bool) -> None:
    write(root / "README", "hello\n")
    recorded = Recorded(root, Store.open(root, create=True))
    with living_child(CLEANER, recorded.store.shadow.git_dir, environment=plain_environment()):
        for _ in range(25):
            recorded.take_turns(1)
            if reopened:
                recorded.store.close()
                recorded.store = Store.open(root)
    recorded.assert_nothing_lost()


def test_what_a_person_adds_to_the_store_does_not_disturb_P_02(root: Path, store: Store, tmp_path: Path) -> None:
    """Their own branches, tags and notes, a remote, annotated tags in packed-refs."""
    session = store.session("s")
    with session.turn("first"):
        write(root / "a", "1")
    git_dir = store.shadow.git_dir
    git(git_dir, "tag", "-a", "-m", "mine", "v1", tip(store, "s"))
    git(git_dir, "branch", "mine", tip(store, "s"))
    git(git_dir, "branch", "mine-too/deep", tip(store, "s"))
    git(git_dir, "notes", "add", "-m", "my own note", tip(store, "s"))
    git(git_dir, "notes", "--ref=turns", "append", "-m", "and a word in yours", tip(store, "s"))
    git(git_dir, "pack-refs", "--all")
    git_in(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(git_dir, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(git_dir, "push", "--quiet", "origin", "refs/heads/*:refs/heads/*")
    git(git_dir, "fetch", "--quiet", "origin")
    with session.turn("second"):
        write(root / "a", "2")
    assert_equal(store, tip(store, "s"), on_disk(root))
    refs = all_refs(store)
    assert "refs/tags/v1" in refs
    assert git(git_dir, "notes", "show", f"{tip(store, 's')}~") == b"my own note\n"
    assert_whole(store)


def test_a_store_restored_from_a_mirror_goes_on_P_02(root: Path, tmp_path: Path) -> None:
    """The last resort: store.git replaced by a clone of it. The state files beside it still fit."""
    write(root / "a", "1")
    with Store.open(root, create=True) as store:
        with store.session("s").turn("one"):
            write(root / "a", "2")
        commits = [commit["commit"] for commit in line(store, "s")]
        git_in(tmp_path, "clone", "--quiet", "--mirror", store.shadow.git_dir, "mirror.git")
        git_dir = store.shadow.git_dir
    shutil.rmtree(git_dir)
    shutil.move(tmp_path / "mirror.git", git_dir)
    with Store.open(root) as store:
        with store.session("s").turn("two"):
            write(root / "a", "3")
        assert [commit["commit"] for commit in line(store, "s")][: len(commits)] == commits
        assert_equal(store, tip(store, "s"), on_disk(root))


def test_other_programs_of_git_read_it_too_P_02(root: Path, store: Store) -> None:
    with store.session("s").turn("one"):
        write(root / "a", "1\n")
    with store.session("s").turn("two"):
        write(root / "a", "1\n2\n")
    git_dir = store.shadow.git_dir
    commands: list[Callable[[], bytes]] = [
        lambda: git(git_dir, "rev-list", "--objects", "--all"),
        lambda: git(git_dir, "cat-file", "--batch-all-objects", "--batch-check"),
        lambda: git(git_dir, "archive", "--format=tar", "HEAD"),
        lambda: git(git_dir, "format-patch", "-1", "--stdout", "HEAD"),
        lambda: git(git_dir, "shortlog", "-s", "HEAD"),
        lambda: git(git_dir, "log", "-S2", "--oneline", "HEAD"),
        lambda: git(git_dir, "log", "--follow", "HEAD", "--", "a"),
        lambda: git(git_dir, "bisect", "log", may_fail=True) + b"x",
        lambda: git(git_dir, "fast-export", "--all", "--signed-tags=strip"),
        lambda: git(git_dir, "describe", "--all", "HEAD"),
        lambda: git(git_dir, "grep", "2", "HEAD", "--"),
        lambda: git(git_dir, "count-objects", "-v"),
    ]
    for command in commands:
        assert command()
    refused = subprocess.run(
        ["git", "--git-dir", git_dir, "rev-parse", "--is-bare-repository"], capture_output=True, check=True
    )
    assert refused.stdout == b"true\n"
