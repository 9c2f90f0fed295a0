"""Files and folders that only their owner may read stay so through every move."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers import remove, turn, write
from move_stories import locks_of_the_dead_are_known_at_once, root, session, undo

from snapstore import Session
from snapstore.timeline.moves.plan import FORCE, Policy

__all__ = ["locks_of_the_dead_are_known_at_once", "root", "session"]  # fixtures


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
@pytest.mark.parametrize("way", ["undo", "exact", "revert", "restore", "two turns"])
def test_a_private_file_does_not_come_back_readable_to_all(root: Path, session: Session, way: str, named: bool) -> None:
    """A tree says no more than executable or not; ssh refuses a key that others may read, and rightly so."""
    for name, mode in (("key", 0o600), ("tool", 0o700)):
        write(root / name, name)
        os.chmod(root / name, mode)
    session.take_baseline()
    with session.turn("delete them") as open_turn:
        if named:
            open_turn.touch(root / "key", root / "tool")
        remove(root / "key")
        remove(root / "tool")
    if way == "undo":
        undo(session)
    elif way == "exact":
        session.move(session.plan_goto("0", exact=True))
    elif way == "revert":
        session.move(session.plan_revert("1"))
    elif way == "restore":
        session.move(session.plan_restore("0", [b"key", b"tool"]))
    else:
        turn(session, root, "more", a="1")
        undo(session, 2)
    assert [os.lstat(root / name).st_mode & 0o777 for name in ("key", "tool")] == [0o600, 0o700]


def test_a_private_file_that_a_turn_made_comes_back_private(root: Path, session: Session) -> None:
    with session.turn("make a key"):
        write(root / "key", "secret")
        os.chmod(root / "key", 0o600)
    turn(session, root, "more", key="changed in place")
    os.chmod(root / "key", 0o600)
    for plan in (lambda: session.plan_undo(2), lambda: session.plan_redo(1), session.plan_redo):
        session.move(plan())
        assert not (root / "key").exists() or os.lstat(root / "key").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("back", ["redo", "ops undo", "restore"])
@pytest.mark.parametrize("gone", ["undo", "force", "revert", "restore"])
def test_a_file_made_private_after_its_turn_comes_back_private(
    root: Path, session: Session, gone: str, back: str
) -> None:
    """A chmod is no change that a tree could hold, so only the move that removes the file has seen it."""
    turn(session, root, "make a key", key="secret", tool="run")
    if gone == "force":
        write(root / "key", "my own")
    (root / "key").chmod(0o600)
    (root / "tool").chmod(0o640)
    text = (root / "key").read_text()
    if gone in ("undo", "force"):
        moved = session.move(session.plan_undo(policy=Policy(FORCE)))
    elif gone == "revert":
        moved = session.move(session.plan_revert("1"))
    else:
        moved = session.move(session.plan_restore("0", [b"key", b"tool"]))
    assert not (root / "key").exists()
    if back == "ops undo":
        session.move(session.plan_ops_undo())
    elif back == "redo" and gone in ("undo", "force"):
        session.move(session.plan_redo())
        text = "secret"
    elif back == "redo":
        session.move(session.plan_undo())
    else:
        session.move(session.plan_restore(moved.safety.hex() if moved.safety else "#1", [b"key", b"tool"]))
    assert (root / "key").read_text() == text
    assert [(root / name).stat().st_mode & 0o777 for name in ("key", "tool")] == [0o600, 0o640]


def test_a_file_that_came_again_for_all_to_read_stays_so(root: Path, session: Session) -> None:
    turn(session, root, "make a key", key="secret")
    (root / "key").chmod(0o600)
    undo(session)
    turn(session, root, "no key after all", key="public")
    undo(session)
    session.move(session.plan_redo())
    assert (root / "key").read_text() == "public" and (root / "key").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
def test_a_private_file_that_a_link_took_the_place_of_comes_back_private(
    root: Path, session: Session, named: bool
) -> None:
    write(root / "key", "secret")
    (root / "key").chmod(0o600)
    session.take_baseline()
    with session.turn("keep it elsewhere") as open_turn:
        if named:
            open_turn.touch(root / "key")
        remove(root / "key")
        os.symlink("elsewhere", root / "key")
    for back in (session.plan_undo, session.plan_undo, session.plan_ops_undo):
        session.move(back())
        assert (root / "key").read_text() == "secret" and (root / "key").lstat().st_mode & 0o777 == 0o600
        (root / "key").chmod(0o640)  # a chmod of one's own
        session.move(session.plan_redo())
        assert (root / "key").is_symlink()
        session.move(session.plan_undo())
        assert (root / "key").lstat().st_mode & 0o777 == 0o640
        (root / "key").chmod(0o600)
        session.move(session.plan_redo())


def private_folder(root: Path, name: str) -> None:
    """A folder that keeps everybody else away from files which anybody could read."""
    write(root / name / "deep/key", "secret")
    (root / name / "deep").chmod(0o750)
    (root / name).chmod(0o700)


def folder_modes(root: Path, name: str) -> list[int]:
    return [(root / path).stat().st_mode & 0o777 for path in (name, f"{name}/deep")]


@pytest.mark.parametrize("way", ["undo", "exact", "revert", "restore"])
def test_a_private_folder_does_not_come_back_open_to_all(root: Path, session: Session, way: str) -> None:
    private_folder(root, "mine")
    session.take_baseline()
    turn(session, root, "something else", a="1")
    with session.turn("clean up"):
        remove(root / "mine")
    if way == "undo":
        undo(session)
    elif way == "exact":
        session.move(session.plan_goto("1", exact=True))
    elif way == "revert":
        session.move(session.plan_revert("2"))
    else:
        session.move(session.plan_restore("1", [b"mine"]))
    assert folder_modes(root, "mine") == [0o700, 0o750]


@pytest.mark.parametrize("made", ["by the turn", "after it"])
def test_a_folder_that_a_turn_made_comes_back_as_private_as_it_was(root: Path, session: Session, made: str) -> None:
    with session.turn("make it"):
        write(root / "made/deep/key", "secret")
        if made == "by the turn":
            private_folder(root, "made")
    private_folder(root, "made")
    for back in (session.plan_redo, session.plan_ops_undo):
        undo(session)
        assert not (root / "made").exists()
        session.move(back())
        assert folder_modes(root, "made") == [0o700, 0o750]
    (root / "made").chmod(0o755)
    undo(session)
    session.move(session.plan_redo())
    assert (root / "made/deep/key").read_text() == "secret"
