"""Whatever happens to the files, every commit equals the disk byte for byte (P-01, G-35, G-36, S2-16, S3-09)."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import Files, assert_cache_adds_up, assert_equal, assert_whole, git, line, on_disk, quick_folder, remove
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapstore import Store

# G-36: each of these has broken some tool. Few names, so that edits meet each other.
NAMES = [
    b"a",
    b"b",
    b"with space",
    b"-rf",
    b"--",
    b"quo\"te's",
    b"new\nline",
    b"tab\tand \x1b[31mred",
    b"\xff\xfe not utf-8",
    "naïve \u202e日本".encode(),
    b"back\\slash",
    b":(glob)*",
    b"n" * 255,
    b".hidden",
    b"trailing ",
    b"a.lock",
]
# mostly the same two, so that files, links and folders take each other's places
PARTS = st.one_of(st.sampled_from([b"a", b"b"]), st.sampled_from([b"a", b"b"]), st.sampled_from(NAMES))
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(b"/".join)
CONTENTS = st.one_of(
    st.just(b""),
    st.just(b"one\n"),
    st.sampled_from([b"one\n", b"two\n", b"one\r\n", b"$Id$\n", b"\x00\x01\x02", b"x" * 70_000]),
    st.binary(max_size=40),
)
TARGETS = st.sampled_from([b"a", b"b", b"..", b".", b"a/b", b"nowhere", b"/etc/passwd", b"\xff\n", b"t" * 200])


@dataclass(frozen=True)
class Edit:
    """One change by hand; `do` carries it out and `names` lists what an agent's hook would name beforehand."""

    what: str
    path: bytes
    data: bytes = b""
    other: bytes = b"a"

    def names(self, root: bytes) -> list[bytes]:
        """The path itself, or the file in the way of its folder; where that is a link into the root, both."""
        found = [_obstacle(root, self.path) or self.path]
        if os.path.realpath(os.path.dirname(os.path.join(root, self.path))).startswith(os.path.realpath(root)):
            found.append(self.path)
        if self.what == "rename":
            found.append(_obstacle(root, self.other) or self.other)
        return found

    def do(self, root: bytes) -> None:
        full = os.path.join(root, self.path)
        if self.what == "delete":
            remove(full)
        elif self.what in ("append", "chmod"):
            if os.path.isfile(full) and not os.path.islink(full):
                if self.what == "append":
                    with open(full, "ab") as file:
                        file.write(self.data)
                else:
                    os.chmod(full, os.stat(full).st_mode ^ 0o111)
        elif self.what == "rename":
            self._rename(root, full)
        else:
            _make_way(root, self.path)
            if self.what == "folder":
                remove(full)
                os.makedirs(os.path.join(full, b"inner"))
                for name in (b"one", b"inner/two"):
                    with open(os.path.join(full, name), "wb") as file:
                        file.write(self.data)
            elif self.what == "link":
                remove(full)
                os.symlink(self.other, full)
            elif self.what == "replace":  # as editors save: beside, then rename
                if os.path.isdir(full) and not os.path.islink(full):
                    remove(full)
                beside = os.path.join(os.path.dirname(full), b".saving")
                with open(beside, "wb") as file:
                    file.write(self.data)
                os.rename(beside, full)
            else:
                if os.path.islink(full) or os.path.isdir(full):
                    remove(full)
                with open(full, "wb") as file:
                    file.write(self.data)
                os.chmod(full, 0o755 if self.what == "program" else 0o644)

    def _rename(self, root: bytes, full: bytes) -> None:
        target = os.path.join(root, self.other)
        if not os.path.lexists(full) or f"{os.fsdecode(target)}/".startswith(f"{os.fsdecode(full)}/"):
            return
        if f"{os.fsdecode(full)}/".startswith(f"{os.fsdecode(target)}/"):
            return
        _make_way(root, self.other)
        if not os.path.lexists(full):
            return  # it was in the way
        remove(target)
        os.rename(full, target)


def _obstacle(root: bytes, path: bytes) -> bytes | None:
    """The file or link that stands where a folder above the path is needed."""
    parts = path.split(b"/")
    for count in range(1, len(parts)):
        above = b"/".join(parts[:count])
        full = os.path.join(root, above)
        if os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full)):
            return above
    return None


def _make_way(root: bytes, path: bytes) -> None:
    obstacle = _obstacle(root, path)
    if obstacle is not None:
        os.unlink(os.path.join(root, obstacle))
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)


EDITS = st.one_of(
    st.builds(Edit, st.sampled_from(["write", "program", "replace", "folder", "append"]), PATHS, CONTENTS),
    st.builds(Edit, st.sampled_from(["delete", "chmod"]), PATHS),
    st.builds(Edit, st.just("rename"), PATHS, st.just(b""), PATHS),
    st.builds(Edit, st.just("link"), PATHS, st.just(b""), TARGETS),
)


@dataclass(frozen=True)
class Bracket:
    """Edits between turns, then a turn with its own."""

    between: tuple[Edit, ...]
    within: tuple[Edit, ...]
    named: bool
    reopened: bool


def brackets(longest: int) -> st.SearchStrategy[list[Bracket]]:
    one = st.builds(
        Bracket,
        st.lists(EDITS, max_size=3).map(tuple),
        st.lists(EDITS, max_size=longest).map(tuple),
        st.booleans(),
        st.booleans(),
    )
    return st.lists(one, min_size=1, max_size=longest)


class Project:
    """A root, its store, and what the disk held at each commit."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.home = str(folder / "stores")
        self.root.mkdir()
        self.store: Store | None = None
        self.seen: dict[str, Files] = {}

    def open(self, again: bool) -> Store:
        if self.store is not None and again:
            self.store.close()
            self.store = None
        if self.store is None:
            self.store = Store.open(self.root, create=True, home=self.home)
        return self.store

    def take(self, bracket: Bracket) -> None:
        root = os.fsencode(self.root)
        store = self.open(bracket.reopened)
        for edit in bracket.between:
            edit.do(root)
        turn = store.session("s").begin("a turn")
        self._compare("before the turn")
        for edit in bracket.within:
            if bracket.named:
                turn.touch(*(os.path.join(root, name) for name in edit.names(root)))
            edit.do(root)
        if bracket.reopened:
            store = self.open(True)
        # A turn without edits names nothing and scans.
        store.session("s").end()
        self._compare("after the turn")

    def _compare(self, when: str) -> None:
        assert self.store is not None
        commit = line(self.store, "s")[-1]["commit"]
        disk = on_disk(self.root)
        assert_equal(self.store, commit, disk)
        assert_cache_adds_up(self.store)
        self.seen[commit] = disk

    def assert_all_kept(self) -> None:
        """Every state ever recorded is still there after everything else, also when git has cleaned up."""
        assert self.store is not None
        for commit, files in self.seen.items():
            assert_equal(self.store, commit, files)
        git(self.store.shadow.git_dir, "gc", "--quiet", "--prune=now")
        for commit, files in self.seen.items():
            assert_equal(self.store, commit, files)
        assert_whole(self.store)


def play(story: list[Bracket]) -> None:
    with quick_folder() as folder:
        project = Project(folder)
        try:
            for bracket in story:
                project.take(bracket)
            project.assert_all_kept()
        finally:
            if project.store is not None:
                project.store.close()


FOLDER_TO_LINK = [
    Bracket((), (Edit("folder", b"a", b"1"), Edit("folder", b"b", b"2")), False, False),
    Bracket((), (Edit("delete", b"a"), Edit("link", b"a", b"", b"b")), False, False),
    Bracket((Edit("write", b"b/one", b"3"),), (), False, False),
]


BACK_AGAIN = [
    Bracket((Edit("link", b"a", b"", b"nowhere"), Edit("write", b"b", b"same")), (), False, False),
    Bracket((), (Edit("link", b"a/b", b"", b"a"), Edit("folder", b"b", b"1")), True, False),
    Bracket((Edit("link", b"a", b"", b"nowhere"), Edit("write", b"b", b"same")), (), False, False),
]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(FOLDER_TO_LINK)
@example(BACK_AGAIN)
@given(brackets(4))
def test_every_commit_equals_the_disk_over_generated_turns_P_01_S2_16(story: list[Bracket]) -> None:
    """Turns scanned and named, edits between them, caches warm (the store stays open) and cold (opened anew)."""
    play(story)


@pytest.mark.deep
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(brackets(8))
def test_every_commit_equals_the_disk_over_long_stories_P_01(story: list[Bracket]) -> None:
    play(story)


MORE_NAMES = [b"\n", b" ", b"\\", b"*", b"?", b"~", b"@{u}", b"$(touch x)", b"%s", "e\u0301".encode(), "é".encode()]


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
def test_hostile_names_are_captured_and_listed_safely_G_36(root: Path, store: Store, named: bool) -> None:
    names = NAMES + MORE_NAMES
    turn = store.session("s").begin("hostile names")
    top = os.fsencode(root)
    for name in names:
        for full in (os.path.join(top, name), os.path.join(top, b"folder", name, name)):
            if named:
                turn.touch(full)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(name)
    disk = on_disk(root)
    assert len(disk) == 2 * len(names)
    commit = turn.end()
    assert_equal(store, commit, disk)
    body = line(store, "s")[-1]["body"]
    assert all(character.isprintable() or character == "\n" for character in body)
    # one line a file, whatever is in its name
    listed = [row for row in body.split("\n\n")[1].splitlines() if row.startswith("A ")]
    assert len(listed) == min(50, len(disk))


def test_a_tree_of_every_size_around_the_limits_of_the_reader_P_01(root: Path, store: Store) -> None:
    """Sizes at which buffers end: empty, one, a page, deflate's switch at 16 KB, a chunk, the streaming limit."""
    edges = [0, 1, 4096, 16 * 1024, 1 << 20, 8 << 20]
    with store.session("s").turn("sizes") as turn:
        for edge in edges:
            for size in (edge - 1, edge, edge + 1):
                if size >= 0:
                    (root / f"f{size}").write_bytes((uuid.uuid4().bytes * (size // 16 + 1))[:size])
    assert turn.commit is not None
    assert_equal(store, turn.commit, on_disk(root))
    assert_whole(store)
