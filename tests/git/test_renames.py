"""Renamed files: found as `git diff -M` finds them, one change for people, two that name each other for programs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from helpers import git, git_in, write

from snapstore import Store
from snapstore.cli.main import main
from snapstore.git.diff import renames
from snapstore.surface.records.base import document
from snapstore.surface.records.nodes import FileRecord, NodeRecord
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange, file_changes
from snapstore.timeline.history.patches import patched

TEXT = "".join(f"line {number}\n" for number in range(40))


def told(changes: list[FileChange]) -> list[tuple[str, str, str]]:
    """Letter, path before and path after, as `git diff --name-status -M` has them."""
    return sorted(
        (change.change, os.fsdecode(change.renamed_from or change.path), os.fsdecode(change.path)) for change in changes
    )


def git_told(store: Store, old: bytes, new: bytes) -> list[tuple[str, str, str]]:
    fields = git(store.shadow.git_dir, "diff", "--name-status", "-M", "-z", old.hex(), new.hex()).decode().split("\0")
    found = []
    while len(fields) > 1:
        letter = fields.pop(0)[0]
        path = fields.pop(0)
        found.append((letter, path, fields.pop(0) if letter == "R" else path))
    return sorted(found)


def renamed(root: Path, store: Store) -> bytes:
    """A turn that renames one file with an edit and one without, and changes another."""
    write(root / "old.py", TEXT)
    write(root / "sub" / "same.txt", "same\n" * 5)
    write(root / "other", "1\n")
    session = store.session("shell")
    session.begin("before").end(scan=True)
    with session.turn("Rename them") as turn:
        (root / "old.py").rename(root / "new.py")
        write(root / "new.py", TEXT.replace("line 7\n", "line seven\n"))
        (root / "sub" / "same.txt").rename(root / "moved.txt")
        write(root / "other", "2\n")
    assert turn.commit is not None
    return turn.commit


def test_generated_renames_are_those_of_git(root: Path, store: Store) -> None:
    """Files moved, moved with edits, deleted, added, copied, rewritten: the same pairs as git finds."""
    random = Random(8)
    session = store.session("shell")
    for number in range(60):
        rows = [f"{number}: {random.randrange(1 << 30)}\n" for _ in range(30)]
        write(root / f"d{number % 5}" / f"f{number}", "".join(rows))
    session.begin("start").end(scan=True)
    before = History(session).cursor
    for step in range(6):
        files = sorted(path for path in root.rglob("f*") if path.is_file())
        for path in random.sample(files, 12):
            rows = path.read_text().splitlines(keepends=True)
            kind = random.choice(["move", "edit", "move and edit", "rewrite", "delete", "copy"])
            if "edit" in kind:
                for at in random.sample(range(len(rows)), 4):
                    rows[at] = f"edited {random.random()}\n"
            if kind == "rewrite":
                rows = [f"other {random.random()}\n" for _ in range(30)]
            if kind in ("delete", "move", "move and edit", "rewrite"):
                path.unlink()
            if kind != "delete":
                target = path if kind == "edit" else root / f"e{step}" / f"f{random.randrange(10_000)}"
                write(target, "".join(rows))
        session.begin(f"step {step}").end(scan=True)
        after = History(session).cursor
        assert before is not None and after is not None
        trees = [store.shadow.commit(oid).tree for oid in (before, after)]
        assert told(file_changes(store.shadow, *trees, renames=True)) == git_told(store, before, after)
        before = after


def test_the_patch_is_one_that_git_applies(root: Path, store: Store, tmp_path: Path) -> None:
    commit = renamed(root, store)
    history = History(store.session("shell"))
    files, lines = patched(history, history.node(commit).files)
    text = b"".join(lines)
    assert b"rename from old.py\nrename to new.py\n" in text
    assert b"similarity index 100%\nrename from sub/same.txt\nrename to moved.txt\n" in text
    assert {(os.fsdecode(change.path), change.added, change.removed) for change in files} == {
        ("moved.txt", 0, 0),
        ("new.py", 1, 1),
        ("other", 1, 1),
    }
    before = store.shadow.commit(commit).parents[0].hex()
    place = tmp_path / "applied"
    git_in(tmp_path, "clone", "-q", "--no-checkout", store.shadow.git_dir, str(place))
    git_in(place, "checkout", "-q", before)
    git_in(place, "apply", "--index", "-", feed=text)
    assert git_in(place, "write-tree").decode().strip() == store.shadow.commit(commit).tree.hex()


def test_programs_get_both_paths_and_the_counts_as_before(root: Path, store: Store) -> None:
    """`files` has an A and a D for each rename, as without renames; each names the other."""
    commit = renamed(root, store)
    history = History(store.session("shell"))
    node = document(NodeRecord.of(history.node(commit, counts=True)))
    plain = file_changes(store.shadow, *(history.tree(place) for place in ("1", "2")), counts=True)
    bare = [{key: value for key, value in file.items() if not key.startswith("renamed")} for file in node["files"]]
    assert bare == [document(record) for record in FileRecord.all_of(plain)]
    rows = {file["path"]: file for file in node["files"]}
    assert rows["new.py"]["renamed_from"] == {"path": "old.py", "similarity": 96, "added": 1, "removed": 1}
    assert rows["old.py"]["renamed_to"] == {"path": "new.py"}
    assert "renamed_from" not in rows["other"] and "renamed_to" not in rows["other"]


@pytest.fixture
def run(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(root)

    def run(*words: str) -> str:
        assert main(list(words)) == 0
        return capfd.readouterr().out

    return run


def test_every_command_shows_the_rename(root: Path, store: Store, run: Any) -> None:
    renamed(root, store)
    assert re.search(r"R  old.py -> new.py +\+1 -1\n", run("show"))
    assert "3 files changed" in run("show")
    assert "R  sub/same.txt -> moved.txt" in run("log", "--stat")
    assert "rename from old.py\nrename to new.py\n" in run("diff", "1", "2")
    only = run("diff", "1", "2", "--", "new.py")
    assert "new file mode 100644" in only and "rename" not in only
    assert "deleted file mode 100644" in run("diff", "1", "2", "--", "old.py")
    (root / "new.py").rename(root / "third.py")
    assert "similarity index 100%\nrename from new.py\nrename to third.py\n" in run("diff")
    write(root / "third.py", TEXT)
    found = json.loads(run("diff", "--json"))
    assert "rename from new.py" in found["patch"] and [file["change"] for file in found["files"]] == ["D", "A"]


def test_the_tree_shows_the_rename(root: Path, store: Store) -> None:
    patchlines = pytest.importorskip("snapstore.tui.widgets.patch")
    preview = pytest.importorskip("snapstore.tui.widgets.preview")
    commit = renamed(root, store)
    session = store.session("shell")
    lines = patchlines.PatchLines().read(session, store.shadow.commit(commit).parents[0], commit, Event())
    texts = [lines.line(at).plain for at in range(len(lines))]
    assert "renamed old.py -> new.py" in texts and "renamed sub/same.txt -> moved.txt" in texts
    assert (lines.files, lines.added, lines.removed) == (3, 2, 2)
    changes = History(session).node(commit, counts=True).files
    assert "R  old.py -> new.py  +1  −1" in [preview.file_line(change).plain for change in changes]


def test_a_large_change_has_exact_renames_only(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair is compared: beyond a limit only equal content counts, as in git."""
    monkeypatch.setattr(renames, "MOST_PAIRS", 1)
    commit = renamed(root, store)
    changes = History(store.session("shell")).node(commit).files
    # The exact one is out of the way before the pairs are counted: one pair is left, and it is within the limit.
    assert [change.change for change in changes] == ["R", "R", "M"]
    monkeypatch.setattr(renames, "MOST_PAIRS", 0)
    assert told(History(store.session("shell")).node(commit).files) == [
        ("A", "new.py", "new.py"),
        ("D", "old.py", "old.py"),
        ("M", "other", "other"),
        ("R", "sub/same.txt", "moved.txt"),
    ]


def test_a_large_file_is_compared_with_no_other(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renames, "LARGEST", 100)
    commit = renamed(root, store)
    assert sorted(change.change for change in History(store.session("shell")).node(commit).files) == list("ADMR")


def test_a_link_is_renamed_only_as_it_is(root: Path, store: Store) -> None:
    session = store.session("shell")
    os.symlink("a/long/target/of/a/link", root / "one")
    os.symlink("another/target", root / "two")
    session.begin("links").end(scan=True)
    before = History(session).cursor
    for name in ("one", "two"):
        (root / name).unlink()
    os.symlink("a/long/target/of/a/lynk", root / "three")
    os.symlink("another/target", root / "four")
    session.begin("again").end(scan=True)
    after = History(session).cursor
    assert before is not None and after is not None
    trees = [store.shadow.commit(oid).tree for oid in (before, after)]
    found = told(file_changes(store.shadow, *trees, renames=True))
    assert found == git_told(store, before, after)
    assert ("R", "two", "four") in found


def test_a_rename_beside_a_file_that_only_went(root: Path, store: Store) -> None:
    """Nothing is left to compare the second file with, and its content is not read."""
    write(root / "old", TEXT)
    write(root / "gone", "x\n")
    session = store.session("shell")
    session.begin("before").end(scan=True)
    with session.turn("Rename one, remove one") as turn:
        (root / "old").rename(root / "new")
        (root / "gone").unlink()
    assert turn.commit is not None
    node = History(session).node(turn.commit)
    assert [(file.change, file.path) for file in node.files] == [("D", b"gone"), ("R", b"new")]
