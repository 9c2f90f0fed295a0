"""Stores that somebody has put below the root, or a watched home folder: they are no files of the project (G-09)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import assert_whole, bit_by_bit, in_commit, line, on_disk, write

from snapstore import Store, Unsafe
from snapstore.timeline.moves.file_edit import FileEdit


@pytest.fixture
def below(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("SNAPSTORE_HOME", str(root / "data/stores"))
    write(root / "data/mine", "mine\n")
    with Store.open(root, create=True) as store:
        yield store


def test_a_store_below_the_root_is_never_taken(below: Store, root: Path) -> None:
    """Neither by a scan, nor with a folder that is named."""
    session = below.session("s")
    with session.turn("scanned"):
        write(root / "a", "1\n")
    with session.turn("named") as turn:
        turn.touch(root / "data")
        write(root / "data/mine", "changed\n")
    assert in_commit(below, line(below, "s")[-1]["commit"]).keys() == {b"a", b"data/mine"}
    session.move(session.plan_undo(2))
    assert {path: data for path, (_, data) in on_disk(root).items() if b"stores/" not in path} == {
        b"data/mine": b"mine\n"
    }
    assert_whole(below)


def test_its_files_cannot_be_named_nor_written(below: Store, root: Path) -> None:
    """G-09: managed files cannot be targets."""
    session = below.session()
    folder = Path(below.folder)
    before = bit_by_bit(folder)
    for name in ("state/format", "store.git/HEAD", "new", "."):
        with pytest.raises(Unsafe):
            session.inside(folder / name)
        with pytest.raises(Unsafe):
            session.inside(root / "data/stores" / name)
    assert bit_by_bit(folder) == before
    session.inside(root / "data/storeslike")  # beside it


def test_a_tree_that_holds_such_a_file_is_not_written(below: Store, root: Path) -> None:
    """As one of another machine could."""
    session = below.session()
    new = Path(below.folder, "store.git/hooks/post-update")
    with pytest.raises(Unsafe):
        session.move(FileEdit(session, os.fsencode(new.relative_to(root))).write(b"theirs"))
    assert not new.parent.exists()
    assert_whole(below)
