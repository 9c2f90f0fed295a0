"""M-17: leaving a line and returning to it leaves every file as it was, whoever wrote it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers import assert_whole, on_disk, remove, turn, write
from move_stories import locks_of_the_dead_are_known_at_once, root, session, texts

from snapstore import Conflict, Session
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import FORCE

__all__ = ["locks_of_the_dead_are_known_at_once", "root", "session"]  # fixtures

NAMES = ("a", "b", "d/e", "d/f")


def switch(session: Session, branch: str, policy: str | None = None) -> None:
    session.move(session.plan_switch(branch, policy=policy))


def two_lines(session: Session, root: Path) -> str:
    """The turn on main made `f`; then it was undone, a person wrote the same `f`, and another line began."""
    turn(session, root, "first", a="1\n")
    turn(session, root, "make f", f="the same\n")
    session.move(session.plan_undo())
    write(root / "f", "the same\n")
    turn(session, root, "another way", b="b\n")
    return Graph(session.store, session.name).branch


def test_a_file_that_a_turn_and_a_person_both_made_is_there_again(root: Path, session: Session) -> None:
    other = two_lines(session, root)
    before = on_disk(root)
    switch(session, "main")
    assert texts(root) == {"a": "1\n", "f": "the same\n"}
    switch(session, other)
    assert on_disk(root) == before


def test_it_is_there_too_after_more_work_on_the_line_between(root: Path, session: Session) -> None:
    """The moves cannot simply be reversed then: the line that is entered knows the file as an edit."""
    other = two_lines(session, root)
    switch(session, "main")
    turn(session, root, "more on main", a="2\n")
    switch(session, other)
    assert texts(root) == {"a": "1\n", "b": "b\n", "f": "the same\n"}
    switch(session, "main")
    assert texts(root) == {"a": "2\n", "f": "the same\n"}


def test_edits_that_were_overwritten_on_the_way_come_back(root: Path, session: Session) -> None:
    other = two_lines(session, root)
    write(root / "f", "mine\n")
    with pytest.raises(Conflict):
        switch(session, "main")
    switch(session, "main", FORCE)
    assert texts(root)["f"] == "the same\n"
    switch(session, other)
    assert texts(root)["f"] == "mine\n"


def test_nothing_is_written_on_the_way_back_if_nothing_was_on_the_way_there(root: Path, session: Session) -> None:
    other = two_lines(session, root)
    remove(root / "b")  # as main has it, so the switch finds every file as it should be
    before = on_disk(root)
    switch(session, "main")
    assert on_disk(root) == before
    switch(session, other)
    assert on_disk(root) == before


def play(session: Session, root: Path, dice: random.Random) -> None:
    """Build lines of turns and edits, by moves that a person may make."""
    for step in range(dice.randint(4, 9)):
        if dice.random() < 0.5:
            change(root, dice, step)
        with session.turn(f"turn {step}"):
            change(root, dice, step)
        if dice.random() < 0.4:
            session.move(session.plan_undo(dice.randint(1, 2), policy=FORCE))


def change(root: Path, dice: random.Random, step: int) -> None:
    for name in dice.sample(NAMES, dice.randint(1, 2)):
        path = root / name
        if path.exists() and dice.random() < 0.25:
            remove(path)
            continue
        lines = path.read_text().splitlines() if path.exists() else [f"line {number}" for number in range(12)]
        lines[dice.randrange(len(lines))] = dice.choice(["same", f"step {step}"])
        write(path, "\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", range(12))
def test_random_lines_there_and_back(root: Path, session: Session, seed: int) -> None:
    """With unrecorded edits on top, over one or two other lines, merged where that is clean and forced elsewhere."""
    dice = random.Random(seed)
    turn(session, root, "first", a="1\n")
    play(session, root, dice)
    journeys = 0
    for _ in range(6):
        graph = Graph(session.store, session.name)
        start = graph.branch
        others = [name for name in graph.branches if name != start]
        if not others:
            play(session, root, dice)
            continue
        if graph.cursor != graph.tip_of(start):
            session.move(session.plan_redo(None, policy=FORCE))
        if dice.random() < 0.5:
            change(root, dice, 99)
        before = on_disk(root)
        for branch in [*dice.sample(others, min(len(others), dice.randint(1, 2))), start]:
            switch(session, branch, dice.choice([None, FORCE]) if branch == start else FORCE)
        assert on_disk(root) == before, (seed, start)
        journeys += 1
        switch(session, dice.choice(others), FORCE)
    assert journeys >= 3
    assert_whole(session.store)
