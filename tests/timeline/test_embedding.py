"""snapstore inside another program: what it may hand over, and what it is told when that makes no sense."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from helpers import write

import snapstore
from snapstore import Busy, Plan, Policy, Session, Store, Unsafe, Usage


@pytest.fixture
def session(store: Store, root: Path) -> Session:
    session = store.session("s")
    for number in (1, 2, 3):
        with session.turn(f"Turn {number}"):
            write(root / "file", f"{number}\n")
    return session


def test_the_types_are_there_for_who_embeds_it() -> None:
    assert Path(snapstore.__file__).with_name("py.typed").is_file()
    assert all(getattr(snapstore, name) is not None for name in snapstore.__all__)


@pytest.mark.parametrize("count", [0, -1, 1.5, "2"])
def test_a_count_that_is_none_is_refused_as_such(session: Session, root: Path, count: Any) -> None:
    """A redo of 0 turns was one of all."""
    session.move(session.plan_undo(2))
    for plan in (session.plan_undo, session.plan_redo):
        with pytest.raises(Usage, match="not a number of turns"):
            plan(count)
    assert (root / "file").read_text() == "1\n"


@pytest.mark.parametrize("how", [{"policy": "nonsense"}, {"scope": "file"}], ids=str)
def test_a_word_that_nobody_knows_is_not_taken_for_another(session: Session, how: dict[str, str]) -> None:
    with pytest.raises(Usage) as caught:
        session.plan_undo(1, **how)
    assert "skip" in caught.value.hint or "files" in caught.value.hint
    with pytest.raises(Usage):
        Policy(each={b"file": "mine"})


@pytest.mark.parametrize("policy", ["force", Policy("force"), Policy(theirs=[b"file"])], ids=["word", "policy", "one"])
def test_a_conflict_is_settled_as_the_policy_says(session: Session, root: Path, policy: Policy | str) -> None:
    write(root / "file", "mine\n")
    assert [move.path for move in session.plan_undo(1).conflicts] == [b"file"]
    moved = session.move(session.plan_undo(1, policy=policy))
    assert (root / "file").read_text() == "2\n"
    assert moved.safety_ref is not None


def test_files_to_restore_are_named_as_a_program_has_them(session: Session, root: Path) -> None:
    for paths in (["file"], [b"file"], [Path("file")], [root / "file"], "file", root / "file"):
        plan: Plan = session.plan_restore("1", paths)
        assert [move.path for move in plan.paths] == [b"file"]
    with pytest.raises(Unsafe):
        session.plan_restore("1", ["/etc/passwd"])


def test_a_turn_inside_a_turn_is_told_of_the_outer_one(session: Session) -> None:
    with session.turn("outer"), pytest.raises(Busy, match="is already open") as caught:
        session.turn("inner")
    assert "another session" in caught.value.hint


def test_a_move_in_a_turn_says_who_can_end_it(session: Session) -> None:
    """Not what would be refused: a turn that a living process holds is closed by that process alone."""
    with session.turn("held"), pytest.raises(Busy, match="a turn is open") as caught:
        session.move(session.plan_undo(1))
    assert str(os.getpid()) in caught.value.hint and "--cancel" not in caught.value.hint
    session.begin("by hand")
    with pytest.raises(Busy) as caught:
        session.move(session.plan_undo(1))
    assert "snapstore turn end" in caught.value.hint
    session.cancel()
    session.begin("by hooks", origin={"session": "1"})
    with pytest.raises(Busy) as caught:
        session.move(session.plan_undo(1))
    assert "Let the agent finish" in caught.value.hint and "--cancel" in caught.value.hint
