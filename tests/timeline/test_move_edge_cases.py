"""Moves in situations that a review of their code brought up. Each test says what went wrong, or could."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from helpers import (
    all_refs,
    assert_cache_adds_up,
    assert_equal,
    assert_whole,
    git,
    in_commit,
    killed_at,
    line,
    on_disk,
    remove,
    touched,
    turn,
    write,
)
from move_stories import (
    locks_of_the_dead_are_known_at_once,
    redo,
    refused,
    root,
    session,
    stands_at,
    texts,
    there_and_back,
    undo,
)

from snapstore import Conflict, Session, Store, Unknown
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import FORCE, MARKERS, MERGE, REFUSE, SKIP, Plan, Policy

__all__ = ["locks_of_the_dead_are_known_at_once", "root", "session"]  # fixtures


# What ill will found (see each: what went wrong, or could).


def test_a_file_put_back_by_hand_before_the_undo_is_seen_when_it_changes_again(root: Path, session: Session) -> None:
    """Kept, since it was as wanted already; written once more with the undone turn's bytes: the next turn must see."""
    write(root / "a", "0")
    write(root / "b", "0")
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2")
    write(root / "a", "1")
    undo(session)
    assert_cache_adds_up(session.store)
    write(root / "a", "2")
    commit = turn(session, root, "three", c="3")
    assert_equal(session.store, commit, on_disk(root))
    assert touched(session.store, commit) == {b"c": "A"}


def test_a_file_moved_away_and_back_around_an_undo_is_not_forgotten(root: Path, session: Session) -> None:
    turn(session, root, "zero", z="z")
    turn(session, root, "one", a="1", b="1")
    os.rename(root / "a", root.parent / "aside")
    undo(session)
    assert_cache_adds_up(session.store)
    os.rename(root.parent / "aside", root / "a")
    commit = turn(session, root, "two", c="3")
    assert_equal(session.store, commit, on_disk(root))


@pytest.mark.parametrize("way", ["earlier", "goto", "undo"])
def test_edits_carried_to_before_them_are_still_seen(root: Path, session: Session, way: str) -> None:
    """Where a move leads past edits they stay on disk; the node stood on does not have them, and the disk does."""
    session.take_baseline()
    write(root / "a", "by hand")
    for number in range(1, 4):
        turn(session, root, f"turn {number}", a=str(number))
    plans: dict[str, Callable[[], Plan]] = {
        "earlier": lambda: session.plan_earlier(4),
        "goto": lambda: session.plan_goto("#0"),
        "undo": lambda: session.plan_undo(3),
    }
    session.move(plans[way]())
    assert texts(root) == {"a": "by hand"}
    assert_cache_adds_up(session.store)
    commit = turn(session, root, "another way", b="1")
    assert_equal(session.store, commit, on_disk(root))
    assert touched(session.store, commit) == {b"b": "A"}


@pytest.mark.parametrize("seen", ["by nobody", "on another branch", "by another session", "by status"])
def test_an_exact_move_never_removes_what_only_came_into_view_G_25(root: Path, store: Store, seen: str) -> None:
    write(root / ".gitignore", "secret\n")
    write(root / "secret", "there all along")
    one, two = store.session("one"), store.session("two")
    turn(one, root, "one", a="1")
    turn(two, root, "one", b="1")
    write(root / ".gitignore", "\n")
    if seen == "on another branch":
        turn(one, root, "two", a="2")
        one.move(one.plan_goto("#1"))
        turn(one, root, "another two", a="2b")
    elif seen == "by another session":
        turn(two, root, "two", b="2")
        turn(one, root, "two", a="2")
    elif seen == "by status":
        History(one).edits()
    one.move(one.plan_goto("1", exact=True))
    assert texts(root)["secret"] == "there all along"
    one.move(one.plan_goto("0", exact=True))
    assert texts(root)["secret"] == "there all along"


@pytest.mark.parametrize("how", ["undo", "revert", "restore", "exact", "redo of a delete"])
def test_a_folder_that_no_turn_made_stays_G_03(root: Path, session: Session, how: str) -> None:
    (root / "empty").mkdir()
    session.take_baseline()
    if how == "redo of a delete":
        write(root / "empty/x", "0")
        turn(session, root, "delete the file, leave the folder", empty__x=None)
        undo(session)
        redo(session)
    elif how == "exact":
        turn(session, root, "one", a="1")
        write(root / "empty/x", "mine")
        session.move(session.plan_goto("1", exact=True))
    else:
        turn(session, root, "one", empty__x="1", made__y="1")
        turn(session, root, "two", a="2")
        if how == "undo":
            undo(session, 2)
        elif how == "revert":
            session.move(session.plan_revert("1"))
        else:
            session.move(session.plan_restore("0", [b"empty/x", b"made/y"]))
        assert how == "restore" or not (root / "made").exists()
    assert (root / "empty").is_dir() and not os.listdir(root / "empty")


@pytest.mark.parametrize("policy", [REFUSE, SKIP, FORCE])
def test_an_empty_folder_in_a_files_place_can_be_got_past_G_38(root: Path, session: Session, policy: str) -> None:
    write(root / "x", "0")
    turn(session, root, "one", x=None, y="1")
    (root / "x").mkdir()
    plan = session.plan_undo(policy=Policy(policy))
    if plan.conflicts:
        refused(session, root, plan)
        return
    session.move(plan)
    assert not (root / "y").exists()
    assert (root / "x").is_dir() if policy == SKIP and b"x" in plan.of("skipped") else (root / "x").is_file()


@pytest.mark.parametrize("way", ["file to folder", "folder to file"])
def test_force_settles_a_file_and_a_folder_that_changed_places_G_38(root: Path, session: Session, way: str) -> None:
    def file() -> None:
        remove(root / "x")
        write(root / "x", "file")

    def folder() -> None:
        remove(root / "x")
        write(root / "x/a", "a")
        write(root / "x/b", "b")

    first, then = (file, folder) if way == "file to folder" else (folder, file)
    first()
    start = on_disk(root)
    with session.turn("change places"):
        then()
    write(root / ("x/a" if way == "file to folder" else "x"), "mine")
    mine = on_disk(root)
    refused(session, root, session.plan_undo())
    moved = session.move(session.plan_undo(policy=Policy(FORCE)))
    assert on_disk(root) == start
    assert moved.safety_ref is not None
    session.move(session.plan_ops_undo())
    assert on_disk(root) == mine


def test_an_oversize_file_named_before_the_write_comes_back_after_a_scan(root: Path, session: Session) -> None:
    session.store.configure(max_file_size=1000)
    write(root / "big", "x" * 5000)
    start = on_disk(root)
    open_turn = session.begin("shrink it")
    open_turn.touch(root / "big")
    write(root / "big", "small")
    open_turn.end(scan=True)
    undo(session)
    assert on_disk(root) == start


def test_what_a_forced_ops_undo_overwrote_comes_back_by_its_number(root: Path, session: Session) -> None:
    """ops undo after turns, through edits: forced, and taken back, to the byte."""
    turn(session, root, "one", a="1\n", b="1")
    turn(session, root, "two", a="2\n", b="2")
    undo(session)
    write(root / "a", "mine\n")
    turn(session, root, "another two", a="2b\n", c="c")
    write(root / "b", "mine too")
    mine = on_disk(root)
    refused(session, root, session.plan_ops_undo())
    moved = session.move(session.plan_ops_undo(policy=Policy(FORCE)))
    assert texts(root) == {"a": "2\n", "b": "2"}
    session.move(session.plan_ops_undo(moved.operation))
    assert on_disk(root) == mine
    assert_whole(session.store)


@pytest.mark.parametrize("how", [MERGE, MARKERS])
def test_what_a_merge_made_is_held_by_a_ref_when_it_is_taken_back_G_17(root: Path, session: Session, how: str) -> None:
    """Merged, taken back, cleaned by git, and that taken back: the merged file must still be there to come back."""
    lines = [f"{number}\n" for number in range(20)]
    turn(session, root, "one", a="".join(lines))
    turn(session, root, "two", a="".join(["two\n", *lines[1:]]))
    write(root / "a", "".join(["two\n" if how == MERGE else "mine\n", *lines[1:19], "mine\n"]))
    mine = on_disk(root)
    session.move(session.plan_undo(policy=Policy(how)))
    merged = on_disk(root)
    assert merged != mine
    taken = session.move(session.plan_ops_undo())
    assert on_disk(root) == mine
    session.store.close()
    git(session.store.shadow.git_dir, "gc", "--quiet", "--prune=now")
    with Store.open(root) as store:
        again = store.session("s")
        again.move(again.plan_ops_undo(taken.operation))
        assert on_disk(root) == merged
        assert_whole(store)


def test_git_gc_between_any_two_moves_loses_nothing_G_17(root: Path, session: Session) -> None:
    """Forced, skipped, exact, each taken back and that taken back again, with a pruning gc after every step."""
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2", c="2")

    def clean() -> None:
        git(session.store.shadow.git_dir, "gc", "--quiet", "--prune=now")

    for how in ("forced", "skipped", "exact"):
        write(root / "b", f"by hand, before it is {how}")
        write(root / "new", f"new, before it is {how}")
        before = on_disk(root)
        clean()
        policy = Policy({"forced": FORCE, "skipped": SKIP}.get(how, REFUSE))
        session.move(session.plan_undo(policy=policy, exact=how == "exact"))
        after = on_disk(root)
        clean()
        taken = session.move(session.plan_ops_undo())
        assert on_disk(root) == before
        clean()
        again = session.move(session.plan_ops_undo(taken.operation))
        assert on_disk(root) == after
        clean()
        session.move(session.plan_ops_undo(again.operation))
        assert on_disk(root) == before and stands_at(session) == 2
    clean()
    assert_whole(session.store)


def test_undo_of_a_restore_of_a_restore(root: Path, session: Session) -> None:
    states = [on_disk(root)]
    for number in (1, 2):
        turn(session, root, f"turn {number}", a=str(number), b=str(number))
        states.append(on_disk(root))
    for address, path in (("1", b"a"), ("2", b"a"), ("1", b"b"), ("0", b"a")):
        session.move(session.plan_restore(address, [path]))
        states.append(on_disk(root))
    assert texts(root) == {"b": "1"}
    there_and_back(session, root, states)


def test_an_edit_in_the_same_tick_as_the_move_is_not_overwritten_G_33(root: Path, session: Session) -> None:
    """Same size, same clock tick, right after a move: the next move must see it, whatever the stat says."""
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    for number in range(25):
        session.move(session.plan_undo() if number % 2 == 0 else session.plan_redo())
        write(root / "a", "x")
        refused(session, root, session.plan_redo() if number % 2 == 0 else session.plan_undo())
        write(root / "a", "1" if number % 2 == 0 else "2")


def test_many_turns_of_edits_in_between_are_all_carried_along_C16(root: Path, session: Session) -> None:
    """After each turn a person adds a line of their own elsewhere; undo of all turns loses none of it."""
    for number in range(1, 7):
        turn(session, root, f"turn {number}", agent=f"{number}", **{f"made{number}": "x"})
        write(root / f"mine{number}", f"mine {number}")
    undo(session, 6)
    assert texts(root) == {f"mine{number}": f"mine {number}" for number in range(1, 7)}
    redo(session, None)
    everything = {f"mine{number}": f"mine {number}" for number in range(1, 7)}
    assert texts(root) == {**everything, "agent": "6", **{f"made{number}": "x" for number in range(1, 7)}}


@pytest.mark.parametrize(
    "way", ["undo", "undo with a file kept", "force", "revert", "restore", "exact", "two sessions"]
)
def test_a_file_brought_back_stays_tracked_though_ignored_by_now(root: Path, session: Session, way: str) -> None:
    """Whoever ignores a file after it was deleted has it back by undo: a tracked file, whatever the rules say."""
    other = session.store.session("other")
    turn(session, root, "one", **{"a.log": "1", "b": "1"})
    turn(session, root, "two", **{"a.log": None, "b": "2"})
    if way == "two sessions":
        turn(other, root, "theirs", theirs="1")
    write(root / ".gitignore", "*.log\n")
    if way == "two sessions":
        turn(other, root, "theirs", theirs="2")
    if way == "file kept":
        write(root / "b", "1")
    elif way == "force":
        write(root / "b", "mine")
    if way == "revert":
        session.move(session.plan_revert("2"))
    elif way == "restore":
        session.move(session.plan_restore("1", [b"a.log"]))
    elif way == "exact":
        session.move(session.plan_goto("1", exact=True))
        write(root / ".gitignore", "*.log\n")
    else:
        undo(session, policy=FORCE if way == "force" else REFUSE)
    assert texts(root)["a.log"] == "1"
    commit = turn(session, root, "three", q="q")
    assert touched(session.store, commit) == {b"q": "A"}
    assert in_commit(session.store, commit)[b"a.log"] == (b"100644", b"1")
    commit = turn(session, root, "four", **{"a.log": "4"})
    assert touched(session.store, commit) == {b"a.log": "M"}
    undo(session)
    assert texts(root)["a.log"] == "1"


@pytest.mark.parametrize("kept", [False, True], ids=["plain", "file kept"])
def test_a_large_file_brought_back_is_not_recorded_as_deleted_G_30(root: Path, session: Session, kept: bool) -> None:
    turn(session, root, "one", big="x" * 3000, b="1")
    turn(session, root, "two", big=None, b="2")
    session.store.configure(max_file_size=1000)
    if kept:
        write(root / "b", "1")
    undo(session)
    assert len(texts(root)["big"]) == 3000
    commit = turn(session, root, "three", q="q")
    assert b"big" in in_commit(session.store, commit)
    assert not [node for node in line(session.store, "s") if touched(session.store, node["commit"]).get(b"big") == "D"]


def test_a_plan_whose_branch_was_renamed_meanwhile_is_stale_G_08(root: Path, session: Session) -> None:
    """Carried out all the same, the session would stand on a branch that is not there."""
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    undo(session)
    plan = session.plan_redo()
    Branches(session).rename("main", "other")
    refused(session, root, plan)
    redo(session)
    assert (texts(root), Graph(session.store, "s").branch) == ({"a": "2"}, "other")


@pytest.mark.parametrize("what", ["kept", "forced", "skipped", "merged", "plain", "exact"])
def test_a_plan_is_stale_once_one_of_its_files_changed_G_08(root: Path, session: Session, what: str) -> None:
    lines = [f"{number}\n" for number in range(12)]
    turn(session, root, "one", a="".join(lines), b="1")
    turn(session, root, "two", a="".join(["two\n", *lines[1:]]), b="2")
    how = {"forced": FORCE, "skipped": SKIP, "merged": MERGE}.get(what, REFUSE)
    if what == "kept":
        write(root / "a", "".join(lines))
    elif what not in ("plain", "exact"):
        write(root / "a", "".join(["two\n", *lines[1:11], "mine\n"]))
    plan = session.plan_undo(policy=Policy(how), exact=what == "exact")
    write(root / "a", "written since the plan was made")
    refused(session, root, plan)


@pytest.mark.parametrize("edited", ["rewritten", "deleted", "folder", "link"])
def test_what_is_edited_between_a_kill_and_the_next_command_is_kept_G_38(
    root: Path, session: Session, edited: str
) -> None:
    """The kill leaves a move half done; the user, who does not know, edits a file of it; then any command."""
    write(root / "z", "0")
    for number in ("1", "2"):
        turn(session, root, number, a=number, b=number, z=number, **{f"d__{number}": number})
    old = texts(root)
    new = {"a": "1", "b": "1", "z": "1", "d/1": "1"}
    store = session.store
    for nth in range(5, 150, 7):
        plan = session.plan_undo()
        killed = killed_at(nth, partial(session.move, plan))
        if not killed:
            break
        remove(root / "b")
        if edited == "rewritten":
            write(root / "b", "edited after the kill")
        elif edited == "folder":
            write(root / "b/c", "edited after the kill")
        elif edited == "link":
            (root / "b").symlink_to("a")
        mine = {path: entry for path, entry in on_disk(root).items() if path.split(b"/")[0] == b"b"}
        store.close()
        store = Store.open(root)
        session = store.session("s")
        here = on_disk(root)
        assert {path: entry for path, entry in here.items() if path.split(b"/")[0] == b"b"} == mine
        rest = {name: text for name, text in texts(root).items() if name.split("/")[0] != "b"}
        assert rest in [{name: text for name, text in side.items() if name != "b"} for side in (old, new)]
        assert (stands_at(session) == 1) == (rest["a"] == "1")
        assert_cache_adds_up(store)
        remove(root / "b")
        write(root / "b", "2" if stands_at(session) == 2 else "1")
        if stands_at(session) == 1:
            redo(session)
        assert texts(root) == old
    assert not killed
    assert_whole(store)


def test_moves_under_an_open_turn_of_another_session_are_not_its_doing_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    turn(one, root, "one", a="1")
    turn(one, root, "two", a="2", b="2")
    open_turn = two.begin("at work all the while")
    undo(one)
    write(root / "c", "by two")
    redo(one)
    one.move(one.plan_revert("2"))
    undo(one)
    commit = open_turn.end().hex()
    assert touched(store, commit) == {b"c": "A"}
    undo(two)
    assert texts(root) == {"a": "2", "b": "2"}


def test_what_an_open_turn_wrote_and_a_forced_move_overwrote_is_saved_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    turn(one, root, "one", a="1")
    turn(one, root, "two", a="2")
    open_turn = two.begin("at work")
    write(root / "a", "two's first try")
    moved = one.move(one.plan_undo(policy=Policy(FORCE)))
    assert in_commit(store, all_refs(store)[moved.safety_ref or ""])[b"a"][1] == b"two's first try"
    write(root / "a", "two's second try")
    open_turn.end()
    undo(two)
    assert texts(root) == {"a": "1"}


def test_several_processes_undo_and_redo_at_once_G_08(root: Path, session: Session) -> None:
    """Whatever each of them gets to do: files and cursor agree in the end, and no turn is lost."""
    turn(session, root, "one", a="1", b="1", d__c="1")
    turn(session, root, "two", a="2", b="2", d__c="2")
    session.store.close()

    def hammer(number: int) -> None:
        for step in range(12):
            with Store.open(root) as store:
                mine = store.session("s")
                try:
                    mine.move(mine.plan_undo() if (step + number) % 2 else mine.plan_redo())
                except (Conflict, Unknown):
                    pass  # another was quicker

    children = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                hammer(number)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    with Store.open(root) as store:
        again = store.session("s")
        here = stands_at(again)
        assert set(texts(root).values()) == ({str(here)} if here else set())
        assert_cache_adds_up(store)
        again.move(again.plan_goto("2"))
        assert set(texts(root).values()) == {"2"} and len(texts(root)) == 3
        assert_whole(store)
