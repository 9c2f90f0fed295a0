"""Somebody saves a file in the very moment in which a move replaces or removes it: between the last look and the call
that does it lie microseconds, and what is saved in them is not lost (S0-47, G-05)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import on_disk, write
from test_restore import TAG, Files, Place

from snapstore.errors import SnapstoreError
from snapstore.git.objects.ids import FILE, LINK
from snapstore.worktree.write import atomic_swap
from snapstore.worktree.write.writer import Writer

Save = Callable[[Path, str], None]

OLD: Files = {b"a": (FILE, b"a, old"), b"d/f": (FILE, b"f, old"), b"z": (FILE, b"z, old")}
NEW: Files = {b"a": (FILE, b"a, new"), b"d/f": (FILE, b"f, new"), b"z": (FILE, b"z, new")}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(autouse=True)
def there_is_a_call() -> None:
    if atomic_swap._call() is None:
        pytest.skip("this system has no call to swap two files")


def by_rename(path: Path, text: str) -> None:
    """As most editors save."""
    other = path.parent.parent.with_name("being saved")
    other.write_text(text)
    other.rename(path)


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def as_a_folder(path: Path, text: str) -> None:
    path.unlink()
    write(path / "inside", text)


class Moment:
    """Does something right before the nth call of a function in exchange."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, module: Any = atomic_swap) -> None:
        self.todo: list[Callable[[], None] | None] = []
        real = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            work = self.todo.pop(0) if self.todo else None
            if work is not None:
                work()
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, call)


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> Moment:
    return Moment(monkeypatch, "swap")


def refused(place: Place, old: Files, new: Files) -> None:
    moves = place.moves(old, new)
    mover = place.restore()
    mover.check(moves)
    with pytest.raises(SnapstoreError):
        mover.apply(moves)


def no_temporary(place: Place) -> bool:
    return not list(place.root.rglob(".snapstore-*"))


@pytest.mark.parametrize("save", [by_rename, in_place, as_a_folder])
def test_what_is_saved_before_a_file_is_replaced_stays_and_all_is_as_it_was(
    place: Place, swap: Moment, save: Save
) -> None:
    place.lay_out(OLD)
    swap.todo = [None, lambda: save(place.root / "d/f", "theirs")]
    refused(place, OLD, NEW)
    where = b"d/f/inside" if save is as_a_folder else b"d/f"
    rest = {path: entry for path, entry in OLD.items() if path != b"d/f"}
    assert on_disk(place.root) == {**rest, where: (FILE, b"theirs")}
    assert no_temporary(place)


@pytest.mark.parametrize("save", [by_rename, in_place])
def test_what_is_saved_twice_in_that_moment_is_there_as_saved_last(place: Place, swap: Moment, save: Save) -> None:
    place.lay_out(OLD)
    target = place.root / "d/f"
    swap.todo = [None, lambda: save(target, "theirs"), lambda: save(target, "theirs, again")]
    refused(place, OLD, NEW)
    assert on_disk(place.root) == {**OLD, b"d/f": (FILE, b"theirs, again")}
    assert no_temporary(place)


def test_what_is_removed_right_after_it_was_replaced_loses_nothing(place: Place, swap: Moment) -> None:
    place.lay_out(OLD)
    target = place.root / "d/f"
    swap.todo = [None, lambda: by_rename(target, "theirs"), target.unlink]
    refused(place, OLD, NEW)
    assert on_disk(place.root) == {**OLD, b"d/f": (FILE, b"theirs")}
    assert no_temporary(place)


@pytest.mark.parametrize("save", [by_rename, in_place, as_a_folder])
def test_what_is_saved_before_a_file_is_removed_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch, save: Save
) -> None:
    place.lay_out(OLD)
    removing = Moment(monkeypatch, "remove")
    removing.todo = [None, lambda: save(place.root / "d/f", "theirs")]
    refused(place, OLD, {})
    where = b"d/f/inside" if save is as_a_folder else b"d/f"
    rest = {path: entry for path, entry in OLD.items() if path != b"d/f"}
    assert on_disk(place.root) == {**rest, where: (FILE, b"theirs")}
    assert no_temporary(place)


def test_what_appears_where_a_file_is_to_come_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = {path: entry for path, entry in OLD.items() if path != b"d/f"}
    place.lay_out(rest)
    placing = Moment(monkeypatch, "place")
    placing.todo = [lambda: write(place.root / "d/f", "theirs")]
    refused(place, rest, NEW)
    assert on_disk(place.root) == {**rest, b"d/f": (FILE, b"theirs")}
    assert no_temporary(place)


def test_a_file_that_was_only_touched_is_replaced(place: Place, swap: Moment) -> None:
    place.lay_out(OLD)
    swap.todo = [lambda: os.utime(place.root / "a"), lambda: by_rename(place.root / "d/f", "f, old")]
    place.go(OLD, NEW)
    place.assert_is(NEW)


@pytest.fixture(params=["killed while files were swapped", "killed while they were removed"])
def left_by_a_kill(request: pytest.FixtureRequest, place: Place) -> Iterator[tuple[Files, Files]]:
    """A move that a kill cut short right after somebody's file had come out of its place: it is a temporary now."""
    new: Files = NEW if "swapped" in request.param else {}
    place.lay_out(OLD)
    if new:
        (place.root / "d/f").write_bytes(NEW[b"d/f"][1])
    else:
        (place.root / "d/f").unlink()
    (place.root / f"d/.snapstore-{TAG}-{len(OLD) + sorted(OLD).index(b'd/f')}").write_text("theirs")
    place.stage.mark_staged(True)
    yield OLD, new


@pytest.mark.parametrize("unknown", [False, True], ids=["staged", "begun by an older version"])
@pytest.mark.parametrize("recover", [Writer.finish, Writer.roll_back])
def test_after_a_kill_it_goes_back_to_its_place(
    place: Place, left_by_a_kill: tuple[Files, Files], recover: Callable[..., list[bytes]], unknown: bool
) -> None:
    old, new = left_by_a_kill
    place.stage.unknown = unknown
    assert recover(place.restore(), place.moves(old, new)) == [b"d/f"]
    rest = {path: entry for path, entry in (new if recover is Writer.finish else old).items() if path != b"d/f"}
    assert on_disk(place.root) == {**rest, b"d/f": (FILE, b"theirs")}
    assert no_temporary(place)


@pytest.mark.parametrize("recover", [Writer.finish, Writer.roll_back])
def test_after_a_kill_what_was_saved_later_still_stays(
    place: Place, left_by_a_kill: tuple[Files, Files], recover: Callable[..., list[bytes]]
) -> None:
    old, new = left_by_a_kill
    write(place.root / "d/f", "theirs, later")
    assert recover(place.restore(), place.moves(old, new)) == [b"d/f"]
    assert on_disk(place.root)[b"d/f"] == (FILE, b"theirs, later")
    assert no_temporary(place)


@pytest.mark.parametrize("unknown", [False, True], ids=["unstaged", "begun by an older version"])
@pytest.mark.parametrize("data", [b"", b"f, n", b"f, new", b"f, old", bytes(6), b"f, n\0\0"])
def test_after_a_kill_what_is_ours_goes_whole_or_not(place: Place, data: bytes, unknown: bool) -> None:
    place.lay_out(OLD)
    place.stage.unknown = unknown
    (place.root / f"d/.snapstore-{TAG}-1").write_bytes(data)
    assert place.restore().finish(place.moves(OLD, NEW)) == []
    place.assert_is(NEW)


@pytest.mark.parametrize("data", [bytes(len(b"f, new")), b"f, ne\0", b"garbage that was on the disk before"])
def test_a_temporary_torn_by_a_power_cut_is_not_taken_for_somebodys_file(place: Place, data: bytes) -> None:
    """Before the journal says that all temporaries are on disk, each of them is ours, whatever is in it: a power cut
    leaves files of full size without their data."""
    place.lay_out(OLD)
    number = len(OLD) + sorted(OLD).index(b"d/f")
    (place.root / f"d/.snapstore-{TAG}-{number}").write_bytes(data)
    assert place.restore().finish(place.moves(OLD, NEW)) == []
    place.assert_is(NEW)


def test_after_a_kill_links_are_told_apart_too(place: Place) -> None:
    old: Files = {b"l": (LINK, b"old")}
    place.lay_out({b"l": (LINK, b"new")})
    os.symlink("theirs", place.root / f".snapstore-{TAG}-0")
    place.stage.mark_staged(True)
    assert place.restore().finish(place.moves(old, {b"l": (LINK, b"new")})) == [b"l"]
    assert on_disk(place.root) == {b"l": (LINK, b"theirs")}


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EXDEV, None])
def test_where_the_system_cannot_swap_files_are_renamed(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    """NFS and others refuse the flags; older systems lack the call."""

    def cannot(*arguments: object) -> None:
        assert number is not None
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic_swap, "_found", False if number is None else (cannot, 2, 1))
    place.lay_out(OLD)
    place.go(OLD, {**NEW, b"new": (FILE, b"")})
    place.assert_is({**NEW, b"new": (FILE, b"")})
    place.go(NEW, {b"a": (FILE, b"a")})
    place.assert_is({b"a": (FILE, b"a"), b"new": (FILE, b"")})
