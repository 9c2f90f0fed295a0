"""The states to go back to, as S2 counts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import in_commit, write

from snapstore import Store, Unknown


def test_every_turn_has_its_snapshot_and_further_back_there_is_none(store: Store, root: Path) -> None:
    """S2-16, S2-17, S2-18: history[0] is the initial one, history[i + 1] the one after turn i, each with the number of
    messages so far, its id and its time."""
    session = store.session("s")
    write(root / "file", "0")
    session.take_baseline()
    for number, replies in ((1, ["a"]), (2, ["b", "c"]), (3, [])):
        turn = session.begin(f"Prompt {number}")
        write(root / "file", str(number))
        turn.end(replies=replies)
    history = session.snapshots()
    assert [one.message_index for one in history] == [0, 2, 5, 6]
    for number, one in enumerate(history):
        assert in_commit(store, one.snapshot_id)[b"file"][1] == str(number).encode()
    assert [one.timestamp for one in history] == sorted(one.timestamp for one in history)
    assert set(history[1].__slots__) == {"message_index", "snapshot_id", "timestamp"}

    for back in (1, 2, 3):
        found = session.snapshot_back(back)
        assert found is not None and found.snapshot_id == session.plan_undo(back).target.hex()
    assert session.snapshot_back(4) is None
    assert session.snapshot_back(-1) is None
    session.move(session.plan_undo(2))
    assert len(session.snapshots()) == 2 and session.snapshot_back(2) is None
    with pytest.raises(Unknown):
        store.session("nobody").snapshots()


def test_edits_between_turns_are_no_turn(store: Store, root: Path) -> None:
    """C16: what a person changed is in the state before the next turn, and does not count."""
    session = store.session("s")
    with session.turn("One"):
        write(root / "a", "1")
    write(root / "mine", "mine")
    with session.turn("Two"):
        write(root / "a", "2")
    history = session.snapshots()
    assert [one.message_index for one in history] == [0, 1, 2]
    assert in_commit(store, history[1].snapshot_id).keys() == {b"a"}
    assert in_commit(store, history[2].snapshot_id).keys() == {b"a", b"mine"}
