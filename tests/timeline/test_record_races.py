"""A file rewritten within one clock tick, with the same size, is still seen as changed (G-33)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers import git, in_commit, quick_folder, tip, touched, write

from snapstore import Store

ROUNDS = 100


def contents(store: Store, commit: bytes, name: str) -> bytes:
    return git(store.shadow.git_dir, "cat-file", "blob", f"{commit.hex()}:{name}")


@pytest.mark.parametrize("reopened", [False, True], ids=["kept open", "reopened"])
@pytest.mark.parametrize("place", ["on disk", "in memory"])
def test_100_rewrites_of_the_same_size_right_after_a_snapshot_G_33(tmp_path: Path, reopened: bool, place: str) -> None:
    """The write comes as soon as the snapshot is taken, in place: same inode, same size, often the same tick."""
    with quick_folder() as quick:
        root = (tmp_path if place == "on disk" else quick) / "racy"
        root.mkdir()
        home = str((tmp_path if place == "on disk" else quick) / "stores")
        path = root / "file"
        path.write_bytes(b"%08d" % 0)
        store = Store.open(root, create=True, home=home)
        fd = os.open(path, os.O_RDWR)
        try:
            commits = []
            for number in range(1, ROUNDS + 1):
                turn = store.session("s").begin("race")
                os.pwrite(fd, b"%08d" % number, 0)
                commits.append(turn.end())
                if reopened:
                    store.close()
                    store = Store.open(root, home=home)
            for number, commit in enumerate(commits, 1):
                assert contents(store, commit, "file") == b"%08d" % number
        finally:
            os.close(fd)
            store.close()


def test_100_rewrites_between_the_turns_G_33(root: Path, store: Store) -> None:
    """Right after the end, the user's hand: edits, every time."""
    path = root / "file"
    path.write_bytes(b"%08d" % 0)
    session = store.session("s")
    session.begin("first").end()
    fd = os.open(path, os.O_RDWR)
    befores = []
    for number in range(1, ROUNDS + 1):
        os.pwrite(fd, b"%08d" % number, 0)
        session.begin("look")
        befores.append(bytes.fromhex(tip(store, "s")))
        session.end()
    os.close(fd)
    for number, commit in enumerate(befores, 1):
        assert contents(store, commit, "file") == b"%08d" % number
        assert touched(store, commit) == {b"file": "M"}


def test_times_put_back_hide_nothing_G_33(root: Path, store: Store) -> None:
    """Same size, and the old modification time put back: the change time tells."""
    path = root / "file"
    path.write_bytes(b"old!")
    os.utime(path, ns=(10**18, 10**18))
    session = store.session("s")
    session.begin("known").end()
    for number in range(20):
        data = b"%04d" % number
        with session.turn("in disguise") as turn:
            path.write_bytes(data)
            os.utime(path, ns=(10**18, 10**18))
        assert turn.commit is not None
        assert contents(store, turn.commit, "file") == data


def test_times_in_the_future_and_in_whole_seconds_hide_nothing_G_33(root: Path, store: Store) -> None:
    session = store.session("s")
    for stamp in (4 * 10**18, 1_600_000_000 * 10**9, 0, -(10**9)):
        for number in range(3):
            data = b"%d" % number
            with session.turn("at another time") as turn:
                (root / "file").write_bytes(data)
                os.utime(root / "file", ns=(stamp, stamp))
            assert turn.commit is not None
            assert contents(store, turn.commit, "file") == data


def test_names_that_come_and_go_within_a_tick_are_seen_G_33(root: Path, store: Store) -> None:
    """Folders are judged by their times too: a name that came right after the listing must not hide."""
    session = store.session("s")
    (root / "sub").mkdir()
    session.begin("known").end()
    for number in range(ROUNDS):
        write(root / f"sub/file{number}", str(number))
        if number:
            (root / f"sub/file{number - 1}").unlink()
        session.begin("look")
        commit = session.end()
        assert in_commit(store, commit).keys() == {f"sub/file{number}".encode()}


def test_two_files_that_trade_places_are_seen_G_33(root: Path, store: Store) -> None:
    session = store.session("s")
    write(root / "a", "AAAA")
    write(root / "b", "BBBB")
    session.begin("known").end()
    for number in range(20):
        with session.turn("trade") as turn:
            os.rename(root / "a", root / "x")
            os.rename(root / "b", root / "a")
            os.rename(root / "x", root / "b")
        assert turn.commit is not None
        files = in_commit(store, turn.commit)
        assert (files[b"a"][1], files[b"b"][1]) == ((b"BBBB", b"AAAA") if number % 2 == 0 else (b"AAAA", b"BBBB"))
