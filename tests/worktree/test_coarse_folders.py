"""File systems on which a folder's time stamps do not tell of every new name in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from file_systems import mounted
from helpers import in_commit, on_disk, touched, write

from snapstore import Conflict, Store
from snapstore.surface.status import read_status


def test_what_is_moved_into_a_folder_is_seen_on_exfat(tmp_path: Path) -> None:
    """There a folder that a file was moved into has the times that it had before."""
    with mounted("exfat-fuse", tmp_path) as place:
        root, outside = place / "project", place / "outside"
        write(root / "folder/a", "a")
        write(outside / "file", "moved")
        write(outside / "more/deep", "moved as well")
        with Store.open(root, create=True, home=str(tmp_path / "stores"), session="s") as store:
            session = store.session("s")
            session.take_baseline()
            deadline = time.time() + 2.5  # what has just changed is listed in any case
            while time.time() < deadline:
                time.sleep(0.1)
            session.begin("lists them").end(scan=True)
            turn = session.begin("moves them in")
            os.rename(outside / "file", root / "folder/file")
            os.rename(outside / "more", root / "more")
            commit = turn.end(scan=True)
            assert touched(store, commit) == {b"folder/file": "A", b"more/deep": "A"}
            assert in_commit(store, commit).keys() == {b"folder/a", b"folder/file", b"more/deep"}


def test_a_rename_of_the_case_alone_goes_and_comes_back_on_exfat_G_35(tmp_path: Path) -> None:
    """There README and readme are one file, and each spelling has an inode of its own."""
    with mounted("exfat-fuse", tmp_path) as place:
        root = place / "project"
        write(root / "README", "precious\n")
        before = on_disk(root)
        with Store.open(root, create=True, home=str(tmp_path / "stores"), session="s") as store:
            session = store.session("s")
            turn = session.begin("renames")
            os.rename(root / "README", root / "readme")
            commit, after = turn.end(scan=True), on_disk(root)
            assert touched(store, commit) == {b"README": "D", b"readme": "A"}
            for _ in range(2):
                session.move(session.plan_undo())
                assert on_disk(root) == before
                session.move(session.plan_redo())
                assert on_disk(root) == after
                assert read_status(session).edits == []


def test_a_folder_renamed_in_case_alone_is_recorded_on_exfat_and_its_undo_loses_nothing_G_35(tmp_path: Path) -> None:
    """The kernel goes on finding a folder by a name that it had a moment ago, so an undo may be refused."""
    with mounted("exfat-fuse", tmp_path) as place:
        root = place / "project"
        write(root / "Src/a", "a\n")
        before = on_disk(root)
        with Store.open(root, create=True, home=str(tmp_path / "stores"), session="s") as store:
            session = store.session("s")
            turn = session.begin("renames")
            os.rename(root / "Src", root / "src")
            commit, after = turn.end(scan=True), on_disk(root)
            assert touched(store, commit) == {b"Src/a": "D", b"src/a": "A"}
            try:
                session.move(session.plan_undo())
            except Conflict:
                assert on_disk(root) == after
            else:
                assert on_disk(root) == before
