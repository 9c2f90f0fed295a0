"""File systems on which a folder's time stamps do not tell of every new name in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from file_systems import mounted
from helpers import in_commit, touched, write

from snapstore import Store


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
