"""Undo, redo, goto, switch, earlier, later: through the tree of turns and back, to the byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers import all_refs, assert_cache_adds_up, assert_whole, in_commit, on_disk, turn, write

from snapstore import Busy, Conflict, Session, Store, Unknown
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import CONVERSATION, FILES, FORCE, MARKERS, MERGE, REFUSE, SKIP, Policy


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("s")


def cursor(session: Session) -> bytes:
    return Graph(session.store, session.name).cursor


def stands_at(session: Session) -> int:
    graph = Graph(session.store, session.name)
    return graph.turn_of(graph.cursor)


def texts(root: Path) -> dict[str, str]:
    return {os.fsdecode(path): data.decode() for path, (_, data) in on_disk(root).items()}


# Along the line.


def test_undo_and_redo_are_each_others_inverse_S0_01_S0_15_S0_20(root: Path, session: Session) -> None:
    write(root / "a", "0")
    states = [on_disk(root)]
    for number in range(1, 5):
        turn(session, root, f"turn {number}", a=str(number), **{f"new{number}": "x", "deep__er": str(number)})
        states.append(on_disk(root))
    for number in (3, 2, 1, 0):
        moved = session.move(session.plan_undo())
        assert on_disk(root) == states[number]
        assert stands_at(session) == number
        assert (moved.turns_undone, moved.turns_redone) == (1, 0)
    for number in (1, 2, 3, 4):
        session.move(session.plan_redo())
        assert on_disk(root) == states[number]
    session.move(session.plan_undo(4))
    assert on_disk(root) == states[0]
    session.move(session.plan_redo(2))
    assert on_disk(root) == states[2]
    session.move(session.plan_redo(None))
    assert on_disk(root) == states[4]
    assert_whole(session.store)
    assert_cache_adds_up(session.store)


def test_a_created_file_goes_and_comes_back_with_its_folder_S0_03_G_03(root: Path, session: Session) -> None:
    turn(session, root, "make", a__b__c="new")
    session.move(session.plan_undo())
    assert not (root / "a").exists()
    session.move(session.plan_redo())
    assert (root / "a/b/c").read_text() == "new"


def test_a_folder_that_was_there_empty_stays_G_03(root: Path, session: Session) -> None:
    (root / "empty").mkdir()
    turn(session, root, "first", a="1")
    turn(session, root, "make", empty__x="new", made__y="new")
    session.move(session.plan_undo())
    assert (root / "empty").is_dir() and not (root / "made").exists()


def test_nothing_to_undo_and_nothing_to_redo_S2_13(root: Path, session: Session) -> None:
    session.take_baseline()
    for plan in (session.plan_undo(), session.plan_redo(), session.plan_redo(None), session.plan_undo(5)):
        assert plan.nothing_to_do
        moved = session.move(plan)
        assert (moved.turns_undone, moved.messages_removed, moved.files_reverted) == (0, 0, [])
        assert moved.snapshot_restored is None and moved.operation is None


def test_more_than_there_are_moves_by_all_there_are_and_says_so_M_13(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    moved = session.move(session.plan_undo(5))
    assert (moved.turns_undone, moved.plan.notes, texts(root)) == (2, ["There were only 2 turns to undo."], {})
    moved = session.move(session.plan_redo(5))
    assert (moved.turns_redone, moved.plan.notes) == (2, ["There were only 2 turns to redo."])
    assert texts(root) == {"a": "2"}


def test_a_turn_that_changed_nothing_restores_nothing_G_26(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "idle")
    write(root / "a", "mine")
    write(root / "b", "mine too")
    before = {path: os.lstat(root / os.fsdecode(path)) for path in on_disk(root)}
    moved = session.move(session.plan_undo())
    assert (moved.turns_undone, moved.files_reverted) == (1, [])
    assert before == {path: os.lstat(root / os.fsdecode(path)) for path in on_disk(root)}


def test_only_what_differs_is_written_G_32(root: Path, session: Session) -> None:
    """G-32, C12."""
    for name in ("other", "deep/other"):
        write(root / name, "x")
    turn(session, root, "one", a="1", deep__b="1")
    before = {name: os.lstat(root / name) for name in ("other", "deep/other")}
    session.move(session.plan_undo())
    session.move(session.plan_redo())
    after = {name: os.lstat(root / name) for name in before}
    assert [(st.st_ino, st.st_mtime_ns, st.st_mode) for st in before.values()] == [
        (st.st_ino, st.st_mtime_ns, st.st_mode) for st in after.values()
    ]


# Other hands.


def test_edits_between_turns_are_carried_along_C16(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    write(root / "mine", "edited between")
    turn(session, root, "two", a="2")
    write(root / "later", "edited after")
    session.move(session.plan_undo())
    assert texts(root) == {"a": "1", "mine": "edited between", "later": "edited after"}
    session.move(session.plan_undo())
    assert texts(root) == {"mine": "edited between", "later": "edited after"}
    session.move(session.plan_redo(2))
    assert texts(root) == {"a": "2", "mine": "edited between", "later": "edited after"}


def test_an_edit_of_the_same_file_is_a_conflict_and_nothing_is_written_S0_44_S0_46(
    root: Path, session: Session
) -> None:
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2")
    write(root / "b", "mine")
    before, refs = on_disk(root), all_refs(session.store)
    plan = session.plan_undo()
    assert [move.path for move in plan.conflicts] == [b"b"]
    with pytest.raises(Conflict, match="b") as refused:
        session.move(plan)
    [conflict] = refused.value.details["conflicts"]  # type: ignore[misc]
    assert conflict.path == b"b" and conflict.changed_by == "edits since turn 2"
    assert (on_disk(root), all_refs(session.store)) == (before, refs)


def test_an_edit_between_two_turns_of_the_same_file_is_a_conflict(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    write(root / "a", "1 and mine")
    turn(session, root, "two", a="2")
    plan = session.plan_undo(2)
    assert [(move.path, move.changed_by) for move in plan.conflicts] == [(b"a", "edits #2")]
    session.move(session.plan_undo())
    assert texts(root) == {"a": "1 and mine"}


def test_force_takes_what_is_wanted_and_saves_what_was_C11_G_38(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    write(root / "a", "mine, never recorded")
    moved = session.move(session.plan_undo(policy=Policy(FORCE)))
    assert texts(root) == {"a": "1"}
    assert moved.safety_ref is not None
    assert in_commit(session.store, all_refs(session.store)[moved.safety_ref])[b"a"][1] == b"mine, never recorded"
    session.move(session.plan_ops_undo())
    assert texts(root) == {"a": "mine, never recorded"}
    assert stands_at(session) == 2
    assert_whole(session.store)


def test_skip_leaves_the_file_and_moves_the_rest_G_38(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2")
    write(root / "a", "mine")
    moved = session.move(session.plan_undo(policy=Policy(SKIP)))
    assert texts(root) == {"a": "mine", "b": "1"}
    assert moved.plan.of("skipped") == [b"a"] and moved.files_reverted == [b"b"]


def test_merge_keeps_both_sides_G_38(root: Path, session: Session) -> None:
    lines = [f"{number}\n" for number in range(20)]
    turn(session, root, "one", a="".join(lines))
    turn(session, root, "two", a="".join(["changed by the turn\n", *lines[1:]]))
    write(root / "a", "".join(["changed by the turn\n", *lines[1:19], "mine\n"]))
    with pytest.raises(Conflict):
        session.move(session.plan_undo(policy=Policy(REFUSE)))
    session.move(session.plan_undo(policy=Policy(MERGE)))
    assert texts(root)["a"] == "".join([*lines[:19], "mine\n"])
    session.move(session.plan_ops_undo())
    assert texts(root)["a"] == "".join(["changed by the turn\n", *lines[1:19], "mine\n"])


def test_merge_of_the_same_lines_is_refused_and_markers_show_both_G_38(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1\n")
    turn(session, root, "two", a="2\n")
    write(root / "a", "mine\n")
    plan = session.plan_undo(policy=Policy(MERGE))
    assert plan.conflicts[0].why == "both sides changed the same lines"
    with pytest.raises(Conflict):
        session.move(plan)
    assert texts(root) == {"a": "mine\n"}
    session.move(session.plan_undo(policy=Policy(MARKERS)))
    assert all(part in texts(root)["a"] for part in ("<<<<<<<", "mine\n", "1\n", ">>>>>>>"))


def test_the_choice_can_be_made_file_by_file_G_38(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1", b="1", c="1")
    turn(session, root, "two", a="2", b="2", c="2")
    for name in "abc":
        write(root / name, f"mine {name}")
    with pytest.raises(Conflict, match="1 file changed since: c"):
        session.move(session.plan_undo(policy=Policy(ours=[b"a"], theirs=[b"b"])))
    assert texts(root) == {name: f"mine {name}" for name in "abc"}
    session.move(session.plan_undo(policy=Policy(FORCE, ours=[b"a"])))
    assert texts(root) == {"a": "mine a", "b": "1", "c": "1"}


def test_undo_in_one_session_leaves_the_others_files_alone_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    turn(one, root, "first", a="1", shared="1")
    turn(two, root, "second", b="2")
    one.move(one.plan_undo())
    assert texts(root) == {"b": "2"}
    one.move(one.plan_redo())
    turn(two, root, "third", shared="2")
    plan = one.plan_undo()
    assert [(move.path, move.changed_by) for move in plan.conflicts] == [(b"shared", "turn 2 of session two")]


def test_a_move_under_an_open_turn_of_another_session_is_not_its_doing_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    turn(one, root, "first", a="1")
    open_turn = two.begin("still at work")
    one.move(one.plan_undo())
    write(root / "b", "2")
    commit = open_turn.end()
    assert {
        path for path, _, _ in store.shadow.trees.diff(_before(store, commit), store.shadow.commit(commit).tree)
    } == {b"b"}


def _before(store: Store, commit: bytes) -> bytes:
    return store.shadow.commit(store.shadow.commit(commit).parents[0]).tree


# Refusals.


def test_a_turn_still_open_is_refused_C22(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    session.begin("two")
    with pytest.raises(Busy):
        session.move(session.plan_undo())
    write(root / "a", "2")
    session.close_open_turn()
    session.move(session.plan_undo())
    assert texts(root) == {"a": "1"}


def test_a_stale_plan_is_refused_G_08(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    plan, again = session.plan_undo(), session.plan_undo()
    session.move(plan)
    with pytest.raises(Conflict, match="out of date"):
        session.move(again)
    redo = session.plan_redo()
    write(root / "a", "mine")
    with pytest.raises(Conflict):
        session.move(redo)
    assert texts(root) == {"a": "mine"}


def test_a_plan_is_stale_once_its_branch_has_grown_G_08(root: Path, session: Session) -> None:
    """The cursor follows the same branch by name, and no file of the plan was touched; still the new turn is no part of
    it: undone by this plan its file would be left on disk, on a line that has never had it."""
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    plan = session.plan_undo(2)
    grown = turn(session, root, "aside", b="aside")
    before = all_refs(session.store)
    with pytest.raises(Conflict, match="has moved since the plan was made"):
        session.move(plan)
    assert texts(root) == {"a": "2", "b": "aside"}
    assert all_refs(session.store) == before and cursor(session).hex() == grown
    session.move(session.plan_undo(3))
    assert texts(root) == {}
    assert_whole(session.store)


# The tree.


def test_a_turn_after_an_undo_keeps_the_old_future_S0_05_S3_35(root: Path, session: Session) -> None:
    """S0-05, S3-35, C9: the new turn is a branch, and the old redo chain stays whole on its own."""
    for number in range(1, 5):
        turn(session, root, f"turn {number}", a=str(number))
    session.move(session.plan_undo(2))
    turn(session, root, "another way", a="3b")
    graph = Graph(session.store, session.name)
    assert graph.branch == "main-2" and set(graph.branches) == {"main", "main-2"}
    assert graph.turn_of(graph.cursor) == 3
    assert session.plan_redo().nothing_to_do  # S0-25
    session.move(session.plan_switch("main"))
    assert texts(root) == {"a": "4"}
    session.move(session.plan_switch("main-2:2"))
    assert (texts(root), stands_at(session)) == ({"a": "2"}, 2)
    session.move(session.plan_redo())
    assert texts(root) == {"a": "3b"}
    session.move(session.plan_goto("main:1"))
    session.move(session.plan_redo(None))
    assert texts(root) == {"a": "4"}
    assert_whole(session.store)


def test_earlier_and_later_reach_every_node_S3_14_S3_15(root: Path, session: Session) -> None:
    states = {}
    for number in range(1, 4):
        commit = turn(session, root, f"turn {number}", a=str(number))
        states[commit] = on_disk(root)
    session.move(session.plan_undo(2))
    for number in range(2, 4):
        commit = turn(session, root, f"other {number}", a=f"b{number}")
        states[commit] = on_disk(root)
    seen = {}
    while not (plan := session.plan_earlier(1)).nothing_to_do:
        seen[cursor(session).hex()] = on_disk(root)
        session.move(plan)
    assert {name: seen.get(name) for name in states} == states
    back = {}
    while not (plan := session.plan_later(1)).nothing_to_do:
        session.move(plan)
        back[cursor(session).hex()] = on_disk(root)
    assert {name: back.get(name) for name in states} == states


# Scope and exactness.


def test_exact_brings_the_whole_tree_and_saves_first(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    first = on_disk(root)
    write(root / "mine", "edited between")
    turn(session, root, "two", a="2")
    write(root / "a", "edited after")
    write(root / "later", "new")
    before = on_disk(root)
    moved = session.move(session.plan_goto("1", exact=True))
    assert on_disk(root) == first
    assert moved.safety_ref is not None
    assert in_commit(session.store, all_refs(session.store)[moved.safety_ref]) == before
    session.move(session.plan_ops_undo())
    assert on_disk(root) == before
    assert_whole(session.store)


def test_an_exact_move_leaves_alone_what_only_came_into_view_G_25(root: Path, session: Session) -> None:
    write(root / ".gitignore", "secret\n")
    write(root / "secret", "there all along")
    turn(session, root, "one", a="1")
    write(root / ".gitignore", "\n")
    turn(session, root, "two", a="2")
    session.move(session.plan_goto("1", exact=True))
    assert texts(root) == {".gitignore": "secret\n", "secret": "there all along", "a": "1"}


def test_conversation_only_and_files_only_C6(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    moved = session.move(session.plan_undo(scope=CONVERSATION))
    assert (texts(root), stands_at(session)) == ({"a": "2"}, 1)
    assert moved.files_reverted == [] and moved.snapshot_restored is None and moved.plan.notes
    session.move(session.plan_ops_undo())
    moved = session.move(session.plan_undo(scope=FILES))
    assert (texts(root), stands_at(session)) == ({"a": "1"}, 2)
    assert moved.messages_removed == 0


# One turn, one file.


def test_one_turn_is_reverted_out_of_the_middle_G_39(root: Path, session: Session) -> None:
    lines = [f"{number}\n" for number in range(20)]
    turn(session, root, "one", a="".join(lines))
    turn(session, root, "two", a="".join(["second\n", *lines[1:]]), b="b")
    turn(session, root, "three", a="".join(["second\n", *lines[1:19], "third\n"]))
    session.move(session.plan_revert("2"))
    assert texts(root) == {"a": "".join([*lines[:19], "third\n"])}
    assert stands_at(session) == 4
    session.move(session.plan_undo())
    assert texts(root) == {"a": "".join(["second\n", *lines[1:19], "third\n"]), "b": "b"}
    assert_whole(session.store)


def test_one_turn_of_another_branch_is_applied_G_39(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", b="2", a="x")
    session.move(session.plan_undo())
    turn(session, root, "other", c="3")
    session.move(session.plan_apply("main:2"))
    assert texts(root) == {"a": "x", "b": "2", "c": "3"}
    session.move(session.plan_undo())
    assert texts(root) == {"a": "1", "c": "3"}


def test_one_file_is_restored_G_39(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2")
    write(root / "b", "mine")
    session.move(session.plan_restore("1", [b"a"]))
    assert texts(root) == {"a": "1", "b": "mine"}
    with pytest.raises(Conflict):
        session.move(session.plan_restore("1", [b"b"]))
    session.move(session.plan_restore("1", [b"b"], policy=Policy(FORCE)))
    assert texts(root) == {"a": "1", "b": "1"}
    session.move(session.plan_undo())
    assert texts(root) == {"a": "1", "b": "mine"}
    session.move(session.plan_undo())
    assert texts(root) == {"a": "2", "b": "mine"}
    assert_whole(session.store)


# The operation log.


def test_ops_undo_goes_back_through_several_S3_31(root: Path, session: Session) -> None:
    for number in range(1, 4):
        turn(session, root, f"turn {number}", a=str(number))
    session.move(session.plan_undo())
    session.move(session.plan_undo())
    turn(session, root, "another way", a="b", extra="x")
    session.move(session.plan_ops_undo(1))
    assert (texts(root), stands_at(session)) == ({"a": "3"}, 3)
    session.move(session.plan_ops_undo(3))  # take that back too
    assert (texts(root), stands_at(session)) == ({"a": "b", "extra": "x"}, 2)
    session.move(session.plan_ops_undo())
    session.move(session.plan_ops_undo())
    assert (texts(root), stands_at(session)) == ({"a": "3"}, 3)
    with pytest.raises(Unknown):
        session.plan_ops_undo(99)


def test_switching_to_an_archived_branch_lists_it_again(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    session.move(session.plan_undo())
    turn(session, root, "other", a="b")
    Branches(session).archive("main")
    session.move(session.plan_switch("main"))
    graph = Graph(session.store, session.name)
    assert (graph.branch, set(graph.branches), graph.archived) == ("main", {"main", "main-2"}, {})
    turn(session, root, "three", a="3")
    assert Graph(session.store, session.name).branch == "main"


def test_ops_undo_steps_back_over_what_was_taken_back(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    session.move(session.plan_undo())
    turn(session, root, "other", a="b")
    Branches(session).delete("main")
    session.move(session.plan_ops_undo())
    assert "main" in Graph(session.store, session.name).branches
    session.move(session.plan_ops_undo())
    assert (texts(root), stands_at(session)) == ({"a": "2"}, 2)


@pytest.mark.parametrize("named", [True, False])
def test_a_private_file_comes_back_private(root: Path, session: Session, named: bool) -> None:
    """A tree cannot say who may read a file; the turn's record can."""
    write(root / "key", "old secret")
    (root / "key").chmod(0o600)
    turn(session, root, "one", a="1")
    open_turn = session.begin("two")
    if named:
        open_turn.touch(root / "key", root / "other")
    (root / "key").unlink()
    write(root / "other", "new secret")
    (root / "other").chmod(0o640)
    open_turn.end()
    session.move(session.plan_undo())
    assert (root / "key").stat().st_mode & 0o777 == 0o600
    session.move(session.plan_redo())
    assert (root / "other").stat().st_mode & 0o777 == 0o640


def test_a_folder_made_by_hand_between_undo_and_redo_stays_G_03(root: Path, session: Session) -> None:
    turn(session, root, "make", folder__x="new")
    session.move(session.plan_undo())
    (root / "folder").mkdir()
    session.move(session.plan_redo())
    session.move(session.plan_undo())
    assert (root / "folder").is_dir()
    session.move(session.plan_redo())
    assert texts(root) == {"folder/x": "new"}


def test_an_empty_folder_in_a_file_s_place_gives_way_to_an_exact_or_forced_move(root: Path, session: Session) -> None:
    write(root / "a", "file")
    turn(session, root, "one", c="1")
    (root / "a").unlink()
    (root / "a").mkdir()
    turn(session, root, "two", c="2")
    session.move(session.plan_goto("1", exact=True))
    assert texts(root) == {"a": "file", "c": "1"}
    turn(session, root, "three", a=None)
    (root / "a").mkdir()
    with pytest.raises(Conflict):
        session.move(session.plan_undo())
    session.move(session.plan_undo(policy=Policy(FORCE)))
    assert texts(root) == {"a": "file", "c": "1"}


def test_an_exact_move_takes_back_at_least_what_the_plain_one_does(root: Path, session: Session) -> None:
    """A hidden file that a turn named: its state before the turn is known, before that it is not."""
    write(root / ".snapstoreignore", "ig*")
    write(root / "ig", "base")
    turn(session, root, "one", a="1")
    with session.turn("two") as open_turn:
        open_turn.touch(root / "ig")
        write(root / "ig", "by the turn")
    session.move(session.plan_goto("0", exact=True))
    assert texts(root) == {".snapstoreignore": "ig*", "ig": "base"}


def test_ops_undo_goes_back_through_moves_and_branch_changes_alike(root: Path, session: Session) -> None:
    """Store and files as before the operation, whatever kinds of operations lie after it."""
    for number in range(1, 4):
        turn(session, root, f"turn {number}", a=str(number))
    refs = all_refs(session.store)
    session.move(session.plan_undo(2))  # operation 1
    turn(session, root, "other", a="b")
    Branches(session).rename("main", "first")  # 2
    Branches(session).checkpoint("here", cursor(session))  # 3
    session.move(session.plan_switch("first"))  # 4
    Branches(session).rename("first", "second")  # 5, the branch stood on
    Branches(session).delete("main-2")  # 6
    later = all_refs(session.store), texts(root)
    session.move(session.plan_ops_undo(1))
    assert (texts(root), stands_at(session)) == ({"a": "3"}, 3)
    now = all_refs(session.store)
    names = [
        name for name in now if name.startswith(("refs/heads/s/", "refs/tags/s/")) or name == "refs/snapstore/cursor/s"
    ]
    # The turn recorded since keeps its branch: nothing that was taken is lost.
    assert sorted(names) == ["refs/heads/s/main", "refs/heads/s/main-2", "refs/snapstore/cursor/s"]
    assert all(now[name] == refs[name] for name in names if name in refs)
    assert Graph(session.store, session.name).branch == "main"
    session.move(session.plan_ops_undo(7))  # and that back again
    assert ({k: v for k, v in all_refs(session.store).items() if "notes" not in k}, texts(root)) == (
        {k: v for k, v in later[0].items() if "notes" not in k},
        later[1],
    )
    assert_whole(session.store)
