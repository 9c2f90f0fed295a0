"""Every kind of thing becomes every other kind within one turn, and the turn's tree is the disk (G-35, G-28)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import assert_cache_adds_up, assert_equal, assert_whole, git_in, line, on_disk, remove, touched, write

from snapstore import Store


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small git checkout to be copied in as a nested repository."""
    folder = tmp_path_factory.mktemp("nested")
    git_in(folder, "init", "--quiet")
    write(folder / "tracked", "tracked\n")
    write(folder / "deep/er", "deeper\n")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "-m", "nested")
    write(folder / "untracked", "untracked\n")
    return folder


def _folder(path: Path, text: str) -> None:
    write(path / "tracked", text)
    write(path / "below/one", text, executable=True)
    (path / "link").symlink_to("tracked")


def makers(root: Path, repository: Path) -> dict[str, Callable[[Path], None]]:
    """The kinds. The links to folders lead where the same names lie, which fools whoever stats through them."""
    _folder(root / "elsewhere", "elsewhere\n")
    return {
        "missing": lambda path: None,
        "file": lambda path: write(path, "content\n"),
        "other file": lambda path: write(path, "CONTENT\n"),
        "executable": lambda path: write(path, "#!/bin/sh\n", executable=True),
        "same bytes executable": lambda path: write(path, "content\n", executable=True),
        "empty file": lambda path: write(path, ""),
        "link": lambda path: path.symlink_to("elsewhere/tracked"),
        "link to a folder": lambda path: path.symlink_to("elsewhere"),
        "dangling link": lambda path: path.symlink_to("content\n"),
        "folder": lambda path: _folder(path, "inside\n"),
        "empty folder": lambda path: path.mkdir(),
        "nested repository": lambda path: shutil.copytree(repository, path, symlinks=True) and None,
        "bare repository": lambda path: shutil.copytree(repository / ".git", path) and None,
    }


@pytest.mark.parametrize("how", ["scanned", "named", "named after a shell"])
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_every_kind_becomes_every_kind_in_one_turn_G_35(
    root: Path, store: Store, repository: Path, how: str, cold: bool
) -> None:
    kinds = makers(root, repository)
    pairs = {f"{old} to {new}": (old, new) for old in kinds for new in kinds}
    for name, (old, _) in pairs.items():
        kinds[old](root / name)
    before = on_disk(root)

    turn = store.session("s").begin("Turn everything into everything")
    assert_equal(store, line(store, "s")[-1]["commit"], before)
    if cold:
        store.close()
        store = Store.open(root)
    session = store.session("s")
    if how != "scanned":
        session.touch([root / name for name in pairs], shell=how != "named")
    for name, (_, new) in pairs.items():
        remove(root / name)
        kinds[new](root / name)
    after = on_disk(root)
    commit = session.end()

    assert_equal(store, commit, after)
    assert_cache_adds_up(store)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert touched(store, commit).keys() == changed
    assert_equal(store, line(store, "s")[-2]["commit"], before)
    assert_whole(store)
    assert turn.session.name == "s"


def test_a_folder_moved_away_and_linked_from_its_old_place_is_a_link_G_35(root: Path, store: Store) -> None:
    """`mv a b; ln -s b a`: every old path still answers a stat as before, and yet it is gone."""
    write(root / "a/one", "1")
    write(root / "a/two/three", "2")
    session = store.session("s")
    with session.turn("move and link"):
        (root / "a").rename(root / "b")
        (root / "a").symlink_to("b")
    assert_equal(store, line(store, "s")[-1]["commit"], on_disk(root))
    with session.turn("write through the link"):
        write(root / "b/one", "changed")
        write(root / "a/new", "new")
    assert_equal(store, line(store, "s")[-1]["commit"], on_disk(root))
    with session.turn("and back"):
        (root / "a").unlink()
        (root / "b").rename(root / "a")
    assert_equal(store, line(store, "s")[-1]["commit"], on_disk(root))


def test_a_file_named_through_a_linked_folder_is_recorded_where_it_lies_G_35(root: Path, store: Store) -> None:
    write(root / "real/file", "old")
    (root / "alias").symlink_to("real")
    turn = store.session("s").begin("write through the alias")
    turn.touch(root / "alias/file")
    write(root / "alias/file", "new")
    commit = turn.end()
    assert touched(store, commit) == {b"real/file": "M"}
    assert_equal(store, commit, on_disk(root))


def test_a_case_only_rename_and_a_file_recreated_are_captured_G_35(root: Path, store: Store) -> None:
    write(root / "Readme", "text")
    write(root / "again", "first")
    with store.session("s").turn("rename") as turn:
        os.rename(root / "Readme", root / "README")
        (root / "again").unlink()
        write(root / "again", "second")
    assert turn.commit is not None
    assert touched(store, turn.commit) == {b"Readme": "D", b"README": "A", b"again": "M"}
    assert_equal(store, turn.commit, on_disk(root))


def test_owner_execute_bit_is_the_mode_and_nothing_else_is_G_35(root: Path, store: Store) -> None:
    """As git has it: u+x makes an executable; group, others, setuid and read-only are not recorded."""
    for mode in (0o600, 0o644, 0o666, 0o444, 0o654, 0o700, 0o755, 0o744, 0o4755, 0o611):
        write(root / f"{mode:o}", "x")
        os.chmod(root / f"{mode:o}", mode)
    with store.session("s").turn("modes") as turn:
        pass
    assert turn.commit is not None
    assert_equal(store, turn.commit, on_disk(root))
