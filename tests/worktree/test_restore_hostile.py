"""Trees that lie, links swapped in at the worst moment, stores that are damaged: nothing outside, nothing half done."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import bit_by_bit, on_disk, quick_folder, write
from test_restore import EXECUTABLE, FILE, LINK, Place

from snapstore.errors import Conflict, Corrupt, SnapstoreError, Unsafe
from snapstore.git.objects.ids import TREE, object_id
from snapstore.worktree.write.safe_dirs import LINK_IN_THE_WAY
from snapstore.worktree.write.writer import FileMove, Writer

WAYS: list[Callable[[Writer, list[FileMove]], object]] = [
    Writer.check,
    Writer.apply,
    Writer.finish,
    Writer.roll_back,
]


@pytest.fixture
def place() -> Iterator[Place]:
    with quick_folder() as folder:
        made = Place(folder)
        # What a link would lead to: the same names, other bytes.
        for name in ("a", "b", "new", "sub/c"):
            write(folder / "outside" / name, b"outside")
        yield made


def outside(place: Place) -> Path:
    return place.root.parent / "outside"


# Names and modes.

BAD_NAMES = [
    b"",
    b"/abs",
    b"..",
    b"../x",
    b"a/../../x",
    b"a/./b",
    b"a//b",
    b"a/",
    b".git/config",
    b"a/.GIT/hooks/x",
    b"git~1/x",
    b".git ",
    b".git./x",
    b".git::$INDEX_ALLOCATION/x",
    ".gi\u200ct/x".encode(),
    b"a\0b",
    b"n" * 256,
    b"/".join([b"d" * 100] * 41),
    b"x/.snapstore-12-5f3a-0",
]


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_are_refused_everywhere(place: Place, name: bytes) -> None:
    """G-09: by every call, not only by the check, and nothing is written."""
    move = place.moves({}, {b"ok": (FILE, b"1")})[0]
    moves = [move, FileMove(name, None, move.new)]
    before = bit_by_bit(place.root.parent)
    for way in WAYS:
        with pytest.raises(Unsafe):
            way(place.restore(), moves)
    if b".snapstore" not in name:
        with pytest.raises(Unsafe):
            place.restore().observe(name)
    assert bit_by_bit(place.root.parent) == before


@pytest.mark.parametrize("mode", [b"160000", b"40000", b"104755", b"100664", b"20644", b"0", b""])
def test_modes_that_are_not_written(place: Place, mode: bytes) -> None:
    """G-09: submodules, folders, setuid and whatever else a tree may claim."""
    entry = place.moves({}, {b"x": (FILE, b"1")})[0].new
    assert entry is not None
    for move in (FileMove(b"f", None, (mode, entry[1])), FileMove(b"f", (mode, entry[1]), None)):
        with pytest.raises(Unsafe):
            place.restore().check([move])


@pytest.mark.parametrize("target", [b"", b"x\0y", b"x" * 4096, b"x" * (1 << 20)], ids=["empty", "nul", "long", "1 MB"])
def test_link_targets_that_are_no_paths(place: Place, target: bytes) -> None:
    """G-09."""
    moves = place.moves({}, {b"l": (LINK, target)})
    with pytest.raises(Unsafe):
        place.restore().check(moves)
    with pytest.raises((OSError, ValueError)):
        place.restore().apply(moves)  # nor does it go wrong unchecked
    assert on_disk(place.root) == {}


def test_a_link_may_point_anywhere(place: Place) -> None:
    """G-35: a link is bytes; where it leads is not our business, for it is never followed."""
    place.go({}, {b"l": (LINK, b"/etc/passwd"), b"m": (LINK, b"../outside"), b"n": (LINK, b"x" * 4095)})
    assert os.readlink(place.root / "m") == "../outside"


def test_moves_that_clash(place: Place) -> None:
    """G-09: one path twice; a file, and another below it."""
    link, below = place.moves({}, {b"x": (LINK, b"../outside"), b"x/y": (FILE, b"1")})
    with pytest.raises(Unsafe):
        place.restore().check([link, link])
    with pytest.raises(Unsafe):
        place.restore().check([link, below])
    with pytest.raises(Unsafe):
        place.restore().check([FileMove(move.path, move.new, None) for move in (link, below)])
    before = bit_by_bit(outside(place))
    with pytest.raises(SnapstoreError):
        place.restore().apply([link, below])
    assert on_disk(place.root) == {} and bit_by_bit(outside(place)) == before


# A store that does not hold what it should.


def test_a_missing_blob_is_named_before_anything_is_written(place: Place) -> None:
    """G-01: also the old content, which would be needed to take the move back."""
    place.lay_out({b"a": (FILE, b"1")})
    [move] = place.moves({b"a": (FILE, b"1")}, {b"a": (FILE, b"2")})
    nowhere = (FILE, b"\x12" * 20)
    for bad in (FileMove(b"a", move.old, nowhere), FileMove(b"a", nowhere, move.new)):
        with pytest.raises(Corrupt) as refusal:
            place.restore().check([bad])
        assert refusal.value.details == {"path": "a", "object": "12" * 20}
    with pytest.raises(Corrupt):
        place.restore().apply([FileMove(b"a", move.old, nowhere)])
    place.assert_is({b"a": (FILE, b"1")})


def test_an_object_that_is_no_blob(place: Place) -> None:
    writer = place.objects.writer()
    tree = writer.add(TREE, b"")
    place.objects.finish(writer)
    with pytest.raises(Corrupt):
        place.restore().check([FileMove(b"a", None, (FILE, tree))])


@pytest.mark.parametrize("size", [10, 9 << 20], ids=["small", "streamed"])
def test_a_blob_with_other_bytes_is_not_written(place: Place, size: int) -> None:
    """G-01: bytes that do not match their id end the move, and all is as before."""
    place.lay_out({b"a": (FILE, b"1")})
    [first] = place.moves({b"a": (FILE, b"1")}, {b"a": (FILE, b"2")})
    lie = object_id(b"blob", b"something else")
    writer = place.objects.writer()
    writer.add(b"blob", bytes(size), lie)
    place.objects.finish(writer)
    with pytest.raises(Corrupt):
        place.restore().apply([first, FileMove(b"b", None, (FILE, lie))])
    place.assert_is({b"a": (FILE, b"1")})


# Links in the way.

OLD = {b"d/a": (FILE, b"1"), b"d/b": (EXECUTABLE, b"2"), b"d/sub/c": (FILE, b"3")}
NEW = {b"d/a": (FILE, b"4"), b"d/new": (FILE, b"5"), b"d/deep/er/new": (FILE, b"6")}


def test_a_link_in_the_place_of_a_folder(place: Place) -> None:
    """G-09: refused by check and apply; left alone and named by a recovery."""
    os.symlink("../outside", place.root / "d")
    moves = place.moves(OLD, NEW)
    before = bit_by_bit(place.root.parent)
    for way in (Writer.check, Writer.apply):
        with pytest.raises(Unsafe):
            way(place.restore(), moves)
    assert place.restore().observe(b"d/a") == LINK_IN_THE_WAY
    for recover in (Writer.finish, Writer.roll_back):
        assert recover(place.restore(), moves) == sorted(OLD.keys() | NEW.keys())
    assert bit_by_bit(place.root.parent) == before


@pytest.mark.parametrize("nth", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("call", ["open", "stat", "write", "fsync", "rename", "unlink", "mkdir", "rmdir"])
def test_a_link_swapped_in_during_the_move(place: Place, monkeypatch: pytest.MonkeyPatch, call: str, nth: int) -> None:
    """G-09: at whatever moment a folder turns into a link, nothing outside is written or removed."""
    place.lay_out(OLD)
    moves = place.moves(OLD, NEW)
    before = bit_by_bit(outside(place))
    real: Callable[..., Any] = getattr(os, call)
    calls = 0

    def swap_first(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            monkeypatch.setattr(os, call, real)
            os.rename(place.root / "d", place.root / "aside")
            os.symlink("../outside", place.root / "d")
        return real(*arguments, **options)

    mover = place.restore()
    mover.check(moves)
    monkeypatch.setattr(os, call, swap_first)
    try:
        mover.apply(moves)
    except (SnapstoreError, OSError):
        pass
    else:
        assert calls < nth or call == "fsync"  # at the last sync the move is over: the swap came after it
    assert bit_by_bit(outside(place)) == before
    for recover in (Writer.finish, Writer.roll_back):
        recover(place.restore(), moves)
        assert bit_by_bit(outside(place)) == before


@pytest.mark.parametrize("path", [b"d/a", b"d/b", b"d/new"])
def test_a_link_swapped_in_for_the_target(place: Place, monkeypatch: pytest.MonkeyPatch, path: bytes) -> None:
    """G-09: a conflict; the link stays and what it leads to is not written."""
    place.lay_out(OLD)
    moves = place.moves(OLD, NEW)
    before = bit_by_bit(outside(place))
    real = os.fsync

    def swap_first(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        full = place.root / os.fsdecode(path)
        full.unlink(missing_ok=True)
        full.symlink_to("../../outside/a")
        real(fd)

    monkeypatch.setattr(os, "fsync", swap_first)
    with pytest.raises(Conflict):
        place.restore().apply(moves)
    assert on_disk(place.root) == {**OLD, path: (LINK, b"../../outside/a")}
    assert bit_by_bit(outside(place)) == before


@pytest.mark.parametrize("kind", ["link", "other folder", "gone", "file"])
def test_another_root(place: Place, kind: str) -> None:
    """G-09: a root that is no longer the folder that was looked at is refused."""
    place.lay_out(OLD)
    moves = place.moves(OLD, NEW)
    mover = place.restore()
    mover.check(moves)
    aside = place.root.rename(place.root.parent / "aside")
    if kind == "link":
        place.root.symlink_to("outside")
    elif kind == "other folder":
        place.root.mkdir()
    elif kind == "file":
        place.root.write_bytes(b"")
    before = bit_by_bit(outside(place))
    for way in WAYS:
        with pytest.raises(SnapstoreError):
            way(mover, moves)
    assert on_disk(aside) == OLD and bit_by_bit(outside(place)) == before
    if kind == "other folder":
        assert os.listdir(place.root) == []


# Odd things at a target.


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_special_files_are_a_conflict(place: Place, kind: str) -> None:
    """G-09: neither waited for nor replaced."""
    if kind == "fifo":
        os.mkfifo(place.root / "x")
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place.root / "x"))
    moves = place.moves({}, {b"x": (FILE, b"1")})
    for way in (Writer.check, Writer.apply):
        with pytest.raises(Conflict):
            way(place.restore(), moves)
    assert place.restore().finish(moves) == [b"x"]
    assert os.listdir(place.root) == ["x"] and not (place.root / "x").is_file()


def test_a_file_that_keeps_growing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-44: never taken for the old state."""
    place.lay_out({b"log": (FILE, b"1")})
    moves = place.moves({b"log": (FILE, b"1")}, {b"log": (FILE, b"2")})
    real = os.read

    def grow(fd: int, count: int) -> bytes:
        with open(place.root / "log", "ab") as file:
            file.write(b"+")
        return real(fd, count)

    monkeypatch.setattr(os, "read", grow)
    with pytest.raises(Conflict):
        place.restore().apply(moves)
    monkeypatch.setattr(os, "read", real)
    assert (place.root / "log").read_bytes().startswith(b"1+")


def test_too_many_open_files_is_no_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-46: an error of our own is not taken for a state of the user's file."""
    place.lay_out({b"a": (FILE, b"1")})

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    mover = place.restore()
    mover.observe(b"none")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError):
        mover.observe(b"a")
