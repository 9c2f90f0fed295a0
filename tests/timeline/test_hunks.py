"""Plans in hunks: taking back, restoring and applying less than a file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers import assert_whole, on_disk, turn, write
from move_stories import locks_of_the_dead_are_known_at_once, root, session, texts

from snapstore import Conflict, Session, Usage
from snapstore.timeline.moves.hunks import Hunk
from snapstore.timeline.moves.plan import FORCE

__all__ = ["locks_of_the_dead_are_known_at_once", "root", "session"]  # fixtures

LINES = [f"{number}\n" for number in range(1, 31)]


def changed(*numbers: int, word: str = "turn") -> str:
    return "".join(f"{word} {number}\n" if number in numbers else line for number, line in enumerate(LINES, 1))


@pytest.fixture
def told(root: Path, session: Session) -> Session:
    """Turn 2 changes `a` in three places, two of them close together, and makes `new`."""
    turn(session, root, "one", a="".join(LINES), b="b\n")
    turn(session, root, "two", a=changed(3, 5, 25), new="new\n")
    return session


def test_one_hunk_is_reverted_and_that_is_a_turn_which_can_be_undone_G_38_G_39(told: Session, root: Path) -> None:
    plan = told.plan_revert("2")
    near, far, new = told.hunks(plan)
    assert (near.path, far.path, new.path) == (b"a", b"a", b"new")
    assert b"-turn 25" in far.patch() and b"+25" in far.patch() and len(near.blocks) == 2 and new.patch() == []
    moved = told.move(told.keep_only(plan, [far.id]))
    assert texts(root) == {"a": changed(3, 5), "b": "b\n", "new": "new\n"}
    assert moved.target_node().prompt == "Revert part of turn 2: two"
    told.move(told.plan_undo())
    assert texts(root)["a"] == changed(3, 5, 25)
    assert_whole(told.store)


def test_neighbouring_changes_can_be_split(told: Session, root: Path) -> None:
    plan = told.plan_revert("2")
    third, fifth = told.hunks(plan)[0].split()
    told.move(told.keep_only(plan, [fifth.id]))
    assert texts(root)["a"] == changed(3, 25)
    assert third.id in [hunk.id for hunk in told.hunks(told.plan_revert("2"))], "an id names content, not a place"


def test_edits_of_a_person_stay_where_a_hunk_is_taken_back(told: Session, root: Path) -> None:
    write(root / "a", changed(3, 5, 25).replace("15\n", "mine\n"))
    plan = told.plan_revert("2")
    told.move(told.keep_only(plan, [hunk.id for hunk in told.hunks(plan) if b"+25" in hunk.patch()]))
    assert texts(root)["a"] == changed(3, 5).replace("15\n", "mine\n")


def test_nothing_chosen_changes_nothing(told: Session, root: Path) -> None:
    before = on_disk(root)
    plan = told.keep_only(told.plan_revert("2"), [])
    assert plan.nothing_to_do
    told.move(plan)
    assert on_disk(root) == before


def test_a_hunk_that_is_out_of_date_is_refused(told: Session, root: Path) -> None:
    far = told.hunks(told.plan_revert("2"))[1]
    write(root / "a", changed(3, 5, 25).replace("turn 25", "turn 25 and mine"))
    before = on_disk(root)
    with pytest.raises(Conflict, match="there is no hunk") as error:
        told.keep_only(told.plan_revert("2", policy=FORCE), [far.id])
    assert error.value.details["stale"] is True
    write(root / "a", changed(3, 5, 25))
    plan = told.keep_only(told.plan_revert("2"), [far.id])
    write(root / "a", changed(3, 5, 25).replace("15\n", "mine\n"))
    before = on_disk(root)
    with pytest.raises(Conflict):
        told.move(plan)
    assert on_disk(root) == before


def test_a_session_cannot_stand_on_half_a_turn(told: Session) -> None:
    plan = told.plan_undo()
    with pytest.raises(Usage, match="undo cannot be carried out in part"):
        told.keep_only(plan, [told.hunks(plan)[0].id])


def test_a_hunk_can_be_edited(told: Session, root: Path) -> None:
    plan = told.plan_revert("2")
    far = told.hunks(plan)[1]
    edited = far.edited([line.replace(b"+25", b"+twenty-five") for line in far.patch()])
    told.move(told.keep_only(plan, [edited]))
    assert texts(root)["a"] == changed(3, 5).replace("25\n", "twenty-five\n")
    for wrong in ([b" something else"], [b"?" + line[1:] for line in far.patch()], far.patch()[1:]):
        with pytest.raises(Usage, match="does not apply"):
            far.edited(wrong)


ODD = [
    (b"one\ntwo", b"one\ntwo\n"),
    (b"one\ntwo\n", b"one\ntwo"),
    (b"one\r\ntwo\r\n", b"one\r\n2\r\n"),
    (b"one", b"one\ntwo"),
    (b"", b"one"),
    (b"one\n", b""),
    (b"caf\xe9\n", b"coffee\n"),
    (b"\0one", b"\0two"),
]


@pytest.mark.parametrize(("old", "new"), ODD)
def test_every_hunk_is_the_whole_and_none_is_nothing(root: Path, session: Session, old: bytes, new: bytes) -> None:
    """Without a final newline, with CRLF, not UTF-8, binary, empty."""
    write(root / "f", old)
    with session.turn("change"):
        write(root / "f", new)
    plan = session.plan_revert()
    assert session.keep_only(session.plan_revert(), []).nothing_to_do
    session.move(session.keep_only(plan, [part.id for hunk in session.hunks(plan) for part in hunk.split()]))
    assert (root / "f").read_bytes() == old


@pytest.mark.parametrize("seed", range(20))
def test_hunks_taken_back_one_by_one_end_where_all_at_once_do(root: Path, session: Session, seed: int) -> None:
    dice = random.Random(seed)
    alphabet = ["a\n", "b\n", "c\n", "\n"]
    old = "".join(dice.choices(alphabet, k=dice.randint(0, 40)))
    changes = ((line, "", "x\n", line + "y\n") for line in old.splitlines(True))
    new = "".join(dice.choices(found, (7, 1, 1, 1))[0] for found in changes) + dice.choice(["", "no newline"])
    write(root / "f", old)
    with session.turn("change"):
        write(root / "f", new)

    def parts() -> list[Hunk]:
        return [
            part for hunk in session.hunks(session.plan_restore("0", [b"f"], policy=FORCE)) for part in hunk.split()
        ]

    while found := parts():
        chosen = dice.sample(found, dice.randint(1, len(found)))
        plan = session.plan_restore("0", [b"f"], policy=FORCE)
        session.move(session.keep_only(plan, [part.id for part in chosen]))
        assert len(parts()) < len(found)
    assert (root / "f").read_text() == old
