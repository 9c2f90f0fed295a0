"""What docs/requirements.md says about moving through the tree of turns."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import assert_whole, bit_by_bit, in_commit, killed_at, on_disk, record, remove, tip, turn, write
from move_stories import locks_of_the_dead_are_known_at_once, marks, redo, root, session, stands_at, texts, undo

from snapstore import Session, Store
from snapstore.surface.records.nodes import NodeRecord
from snapstore.surface.status import read_status
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import read_node
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import BOTH, CONVERSATION, FILES, FORCE, SKIP, Policy

__all__ = ["locks_of_the_dead_are_known_at_once", "root", "session"]  # fixtures


# The seeds' requirements about moving through the tree of turns.


def prompts(session: Session, *names: str) -> None:
    """Turns that each write their name into `file` and make a file of their own."""
    for name in names:
        turn(session, Path(os.fsdecode(session.store.root)), f"Do {name}", file=name, **{name: name})


def state(*names: str) -> dict[str, str]:
    return {**{name: name for name in names}, **({"file": names[-1]} if names else {})}


def log(session: Session) -> list[tuple[int | None, bool]]:
    return [(node.turn, node.undone) for node in History(session).nodes() if node.turn is not None]


def test_where_a_session_stands_survives_a_restart_S0_16_S0_21_G_05(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3", "t4")
    for move, stands, undone in (("undo 3", 1, 3), ("redo 1", 2, 2), ("redo 2", 4, 0), ("undo 1", 3, 1)):
        verb, _, count = move.partition(" ")
        with Store.open(root) as store:  # each in a process of its own, so to speak
            one = store.session("s")
            one.move((one.plan_undo if verb == "undo" else one.plan_redo)(int(count)))
        with Store.open(root) as store:
            status = read_status(store.session("s"))
            assert (status.turn, status.undone_turns) == (stands, undone)
            assert texts(root) == state(*("t1", "t2", "t3", "t4")[:stands])


def test_undone_turns_are_shown_as_such_and_redone_ones_are_not_S0_17_S0_22_S1_04(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3")
    assert log(session) == [(1, False), (2, False), (3, False)]
    undo(session, 2)
    assert log(session) == [(1, False), (2, True), (3, True)]
    shown = snap(root, "log", "--session", "s").stdout
    assert shown.count("[undone]") == 2 and shown.count("@") == 1
    redo(session)
    assert log(session) == [(1, False), (2, False), (3, True)]
    redo(session)
    assert log(session) == [(1, False), (2, False), (3, False)]
    assert "undone" not in snap(root, "log", "--session", "s").stdout


def test_the_count_of_undone_turns_is_at_hand_for_a_redo_bar_S0_18(root: Path, session: Session) -> None:
    """7 turns undone [Redo next] [Redo all]: the number, one step, and all of them."""
    prompts(session, *(f"t{number}" for number in range(1, 9)))
    undo(session, 7)
    status = snap_json(root, "status", "--session", "s", "--json")
    assert status["undone_turns"] == 7
    redo(session)
    assert snap_json(root, "status", "--session", "s", "--json")["undone_turns"] == 6
    redo(session, None)
    assert snap_json(root, "status", "--session", "s", "--json")["undone_turns"] == 0
    assert texts(root) == state(*(f"t{number}" for number in range(1, 9)))


def test_redo_offers_the_next_turn_or_a_chosen_one_S0_19(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3", "t4")
    undo(session, 4)
    redo(session)
    assert texts(root) == state("t1")
    session.move(session.plan_goto("3"))  # a chosen one of the dimmed
    assert texts(root) == state("t1", "t2", "t3")
    assert log(session) == [(1, False), (2, False), (3, False), (4, True)]


def test_a_prompt_at_turn_5_of_12_archives_the_rest_whole_S0_23_S0_24_S0_26(root: Path, session: Session) -> None:
    """S0-23, S0-24, S0-26, C1: nothing is cut off any file; the lines of turns 6 to 12 stay with their turns, on their
    branch, and the line gone on with does without them."""
    for number in range(1, 13):
        open_turn = session.begin(f"prompt {number}", agent="poet")
        write(root / "file", str(number))
        open_turn.end(
            replies=[f"reply {number}"],
            thinking=[f"thought {number}"],
            tool_calls=[{"type": "Write", "filePath": "file", "content": str(number)}],
            lines=[json.dumps({"uuid": number})],
        )
    session.move(session.plan_goto("5"))
    turn(session, root, "another way", file="6b")
    graph = Graph(session.store, "s")
    assert graph.turn_of(graph.cursor) == 6 and graph.branch == "main-2"
    current = [node.prompt for node in History(session).nodes() if node.turn is not None]
    assert current == [*(f"prompt {number}" for number in range(1, 6)), "another way"]
    archived = [graph.node(oid) for oid in graph.line(graph.branches["main"])]
    assert [node.turn for node in archived if node.turn is not None] == list(range(1, 13))
    for node in archived:
        if node.turn is not None:
            kept = record(session.store, node.oid)
            assert (kept["prompt"], kept["replies"]) == (f"prompt {node.turn}", [f"reply {node.turn}"])
            assert kept["thinking"] == [f"thought {node.turn}"] and kept["lines"] == [json.dumps({"uuid": node.turn})]
            assert kept["tool_calls"][0]["content"] == str(node.turn)
    assert graph.label("main") == "Branch from turn 5"


def test_the_branch_and_its_turns_are_at_hand_at_the_fork_S0_28_S1_07(root: Path, session: Session) -> None:
    """What a modal at turn 1 shows: the turns after it on the other line, each with its prompt and files."""
    prompts(session, "t1", "t2", "t3")
    undo(session, 2)
    prompts(session, "b2")
    graph = Graph(session.store, "s")
    assert graph.fork_of("main") is not None and graph.turn_of(graph.fork_of("main") or b"") == 1
    future = graph.path(graph.fork_of("main") or b"", graph.branches["main"])[1]
    nodes = [read_node(session.store.shadow, oid) for oid in future]
    assert [(node.turn, node.prompt) for node in nodes] == [(2, "Do t2"), (3, "Do t3")]
    assert [change.path for change in nodes[0].files] == [b"file", b"t2"]
    assert [branch.name for branch in Branches(session).list()] == ["main-2", "main"]


def test_switching_goes_to_a_turn_of_a_branch_and_keeps_what_is_left_S0_29_S0_31_S0_32(
    root: Path, session: Session
) -> None:
    prompts(session, "t1", "t2", "t3", "t4")
    undo(session, 3)
    prompts(session, "b2", "b3")
    session.move(session.plan_switch("main:3"))  # undoes b3, b2; does t2, t3; t4 stays undone
    assert texts(root) == state("t1", "t2", "t3")
    assert log(session) == [(1, False), (2, False), (3, False), (4, True)]
    assert Graph(session.store, "s").branches.keys() == {"main", "main-2"}
    session.move(session.plan_switch("main-2"))
    assert texts(root) == state("t1", "b2", "b3")
    prompts(session, "b4")
    session.move(session.plan_switch("main"))
    assert texts(root) == state("t1", "t2", "t3", "t4")
    session.move(session.plan_goto("main-2:4"))
    assert texts(root) == state("t1", "b2", "b3", "b4")


def test_the_conversation_goes_on_from_where_it_was_rewound_to_S1_02_S1_11(root: Path, session: Session) -> None:
    """S1-02, S1-03, S1-10, S1-11: rewind, continue, rewind again, continue: each time on a branch of its own, and none
    is lost."""
    prompts(session, "t1", "t2", "t3")
    seen = {"main": texts(root)}
    for depth, name in ((2, "x"), (1, "y"), (2, "z")):
        session.move(session.plan_goto(str(depth)))
        prompts(session, f"{name}1", f"{name}2")
        assert stands_at(session) == depth + 2
        graph = Graph(session.store, "s")
        assert record(session.store, graph.cursor)["prompt"] == f"Do {name}2"
        seen[graph.branch] = texts(root)
    assert len(seen) == 4
    for branch, files in seen.items():
        session.move(session.plan_switch(branch))
        assert texts(root) == files
    leaves = snap(root, "undolist", "--session", "s").stdout
    assert all(f"Do {name}2" in leaves for name in "xyz") and "Do t3" in leaves
    assert_whole(session.store)


def test_one_action_goes_back_to_where_it_all_stood_S1_08_S1_03_G_14(root: Path, session: Session) -> None:
    """S1-03, S1-08, G-14: fast-forward, unrevert: after any number of undos one move brings files and place back."""
    prompts(session, *(f"t{number}" for number in range(1, 6)))
    full = on_disk(root)
    for count in (1, 2, 1):
        undo(session, count)
    redo(session, None)
    assert on_disk(root) == full and stands_at(session) == 5
    undo(session, 4)
    session.move(session.plan_ops_undo())
    assert on_disk(root) == full and stands_at(session) == 5


def test_a_transcript_is_never_written_S1_09(root: Path, session: Session, tmp_path: Path) -> None:
    """An agent's own file, in the root or outside: identical to the bit after every move there is."""
    outside = tmp_path / "projects/session.jsonl"
    write(outside, '{"type": "user"}\n')
    write(root / ".gitignore", "*.jsonl\n")
    write(root / "session.jsonl", '{"type": "user"}\n')
    before = bit_by_bit(tmp_path), marks(root)["session.jsonl"]
    prompts(session, "t1", "t2", "t3")
    session.move(session.plan_goto("1"))
    session.move(session.plan_redo(None))
    session.move(session.plan_undo(2, scope=CONVERSATION))
    prompts(session, "t2b")
    session.move(session.plan_switch("main", policy=Policy(FORCE)))
    session.move(session.plan_goto("0", exact=True))
    assert (bit_by_bit(tmp_path), marks(root)["session.jsonl"]) == before


def test_messages_leave_the_active_path_with_their_turn_S2_02_S2_09(root: Path, session: Session) -> None:
    """S2-02, S2-09, C2: a turn is a prompt and all that was answered to it. It leaves the active path whole, its prompt
    is handed back to be sent again or not, and stays in the store."""
    for number, replies in ((1, ["a"]), (2, ["b", "c"]), (3, [])):
        open_turn = session.begin(f"prompt {number}")
        write(root / "file", str(number))
        open_turn.end(replies=replies)
    moved = session.move(session.plan_undo(2))
    assert moved.messages_removed == 1 + 2 + 1
    assert moved.plan.prompt == "prompt 2"
    nodes = [node for node in History(session).nodes() if node.turn is not None]
    assert [(node.prompt, node.undone) for node in nodes] == [
        ("prompt 1", False),
        ("prompt 2", True),
        ("prompt 3", True),
    ]
    assert nodes[1].record["replies"] == ["b", "c"]


def test_the_prompt_stays_in_the_conversation_where_only_files_are_undone_S2_03(root: Path, session: Session) -> None:
    """S2-03: whether the prompting message leaves is chosen with the scope of the undo; the files are the same."""

    def undone(scope: str) -> tuple[int, str | None, list[bool]]:
        moved = session.move(session.plan_undo(scope=scope))
        assert (root / "file").read_text() == "0"
        turns = [node for node in History(session).nodes() if node.turn is not None]
        return moved.messages_removed, moved.plan.prompt, [node.undone for node in turns]

    write(root / "file", "0")
    open_turn = session.begin("prompt 1")
    write(root / "file", "1")
    open_turn.end(replies=["a"])
    assert undone(FILES) == (0, None, [False])
    assert undone(BOTH) == (2, "prompt 1", [True])


def test_only_that_turns_changes_are_reverted_S2_04_S2_18(root: Path, session: Session) -> None:
    """S2-04, C12: no other file is written. S2-18, M-13: further back than there are snapshots there is none, and that
    is said."""
    write(root / "other", "0")
    prompts(session, "t1")
    write(root / "other", "edited since")
    prompts(session, "t2")
    before = marks(root, "file", "t2")
    moved = session.move(session.plan_undo())
    assert sorted(moved.files_reverted) == [b"file", b"t2"]
    assert marks(root, "file", "t2") == before
    assert "There was only 1 turn to undo." in session.plan_undo(2).notes


def test_undos_in_sequence_and_their_limit_S2_06_S2_15_M_13(root: Path, session: Session) -> None:
    """S2-06: down to the start; S2-15, M-13: more than there are undoes all there are, and says how many."""
    prompts(session, "t1", "t2", "t3")
    for left in (2, 1, 0):
        undo(session)
        assert stands_at(session) == left
    assert session.plan_undo().nothing_to_do
    redo(session, None)
    plan = session.plan_undo(10**9)
    assert "There were only 3 turns to undo." in plan.notes
    session.move(plan)
    assert (texts(root), stands_at(session)) == ({}, 0)


def test_the_first_turn_can_be_undone_and_is_the_last_one_S2_14_S2_27(root: Path, session: Session) -> None:
    """C3: the root is a node that can be stood on. That one turn must remain (S2-14) holds at the seed's own address
    only: `test_the_second_seeds_undo`."""
    prompts(session, "t1")
    undo(session)
    assert (texts(root), stands_at(session)) == ({}, 0)
    done = snap(root, "undo", "--session", "s")
    assert "Nothing to undo" in done.stdout
    redo(session)
    assert texts(root) == state("t1")


@pytest.mark.parametrize("count", ["0", "-1", "x", "1e9", "10x"])
def test_a_count_that_is_none_is_refused_at_the_command_line_S2_08(root: Path, session: Session, count: str) -> None:
    """S2 would count it as 1; a typing error must not undo a turn. Without a number it is one."""
    prompts(session, "t1", "t2")
    snap(root, "undo", "--session", "s", "--", count, status=2)
    assert stands_at(session) == 2
    snap(root, "undo", "--session", "s")
    assert stands_at(session) == 1


def test_undo_goes_together_with_revert_and_its_undoing_S2_10(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2")
    full = on_disk(root)
    session.move(session.plan_revert("1", policy=Policy(SKIP)))
    assert "t1" not in texts(root) and stands_at(session) == 3
    undo(session)
    assert on_disk(root) == full
    redo(session)
    undo(session, 2)
    assert texts(root) == state("t1")
    redo(session, None)
    session.move(session.plan_revert("3"))  # unrevert: a revert of the revert
    assert on_disk(root) == full


def test_every_turn_has_its_snapshot_before_and_after_S2_17(root: Path, session: Session) -> None:
    """S2-17: history[0] is the initial one and history[i+1] the one after turn i, each with the turn it follows, its id
    and its time."""
    states = [texts(root)]
    for number in range(1, 4):
        prompts(session, f"t{number}")
        states.append(texts(root))
    nodes = [node for node in History(session).nodes() if node.kind in ("baseline", "turn")]
    assert len(nodes) == 4
    for node, files in zip(nodes, states, strict=True):
        kept = {os.fsdecode(path): data.decode() for path, (_, data) in in_commit(session.store, node.commit).items()}
        assert kept == files and NodeRecord.of(node).commit == node.commit
    assert [node.turn for node in nodes] == [None, 1, 2, 3] and all(node.ended_at for node in nodes[1:])


def test_the_library_gives_what_an_undo_did_S2_23_S2_24(root: Path, session: Session) -> None:
    """S2-23, S2-24."""
    prompts(session, "t1", "t2")
    moved = session.move(session.plan_undo())
    found = (moved.turns_undone, moved.messages_removed, sorted(moved.files_reverted), moved.snapshot_restored)
    assert found == (1, 1, [b"file", b"t2"], Graph(session.store, "s").cursor.hex())


def test_without_files_to_move_the_conversation_still_moves_S2_26_G_13(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2")
    moved = session.move(session.plan_undo(scope=CONVERSATION))
    assert (moved.turns_undone, moved.files_reverted, moved.snapshot_restored) == (1, [], None)
    assert any("left as they are" in text for text in moved.plan.notes)
    assert texts(root) == state("t1", "t2") and stands_at(session) == 1


def test_a_turn_of_which_no_file_was_recorded_is_undone_without_files(root: Path, session: Session) -> None:
    """S2-26, G-13, G-30: the conversation goes back, nothing is claimed, and the file that stays is named."""
    session.store.configure(max_file_size=1000)
    prompts(session, "t1")
    turn(session, root, "Fetch the data", data="x" * 5000)
    moved = session.move(session.plan_undo())
    assert (moved.turns_undone, moved.files_reverted, moved.snapshot_restored) == (1, [], None)
    assert moved.plan.prompt == "Fetch the data" and stands_at(session) == 1
    assert moved.plan.notes == ["turn 2 could not record data (larger than max_file_size): it stays as it is."]
    assert texts(root) == {**state("t1"), "data": "x" * 5000}


def test_what_was_never_recorded_and_a_turn_took_away_is_named_G_30(root: Path, session: Session) -> None:
    """ "Undone" alone would say that all is as it was."""
    session.store.configure(max_file_size=1000)
    write(root / "large", "x" * 5000)
    write(root / "grown", "small")
    write(root / "by hand", "x" * 5000)
    turn(session, root, "Grow", grown="x" * 5000)
    remove(root / "by hand")
    turn(session, root, "Clean up", large=None, grown=None, a="1")
    assert [(item["path"], item["why"]) for item in record(session.store, tip(session.store, "s"))["left_out"]] == [
        ("grown", "removed; larger than max_file_size"),
        ("large", "removed; larger than max_file_size"),
    ]
    assert session.move(session.plan_undo()).plan.notes == [
        "turn 2 removed grown (larger than max_file_size): only content recorded earlier can be restored.",
        "turn 2 removed large (larger than max_file_size): it cannot be restored.",
    ]
    assert texts(root) == {"grown": "small"}


def test_what_only_came_into_view_in_a_turn_is_named_when_it_stays_G_30(root: Path, session: Session) -> None:
    session.store.configure(max_file_size=1000)
    write(root / "data", "x" * 5000)
    turn(session, root, "Look at it")
    turn(session, root, "Shrink it", data="small")
    assert session.move(session.plan_undo()).plan.notes == [
        "data first became visible in turn 2, and the state before is unknown: it stays as it is."
    ]
    write(root / ".gitignore", "*.log\n")
    for number in range(5):
        write(root / f"{number}.log", "old")
    turn(session, root, "No rules", **{".gitignore": None})
    assert session.move(session.plan_undo()).plan.notes == [
        "0.log, 1.log, 2.log and 2 more first became visible in turn 2, and the state before is unknown: "
        "they stay as they are."
    ]


def test_a_node_says_what_changed_from_what_to_what_S3_11(root: Path, session: Session) -> None:
    """S3-11: range, old text and new text, worked out from the two trees."""
    write(root / "a", "one\ntwo\n")
    commit = turn(session, root, "change a line", a="one\nTWO\n")
    node = read_node(session.store.shadow, bytes.fromhex(commit), counts=True)
    [change] = node.files
    assert (change.path, change.added, change.removed) == (b"a", 1, 1)
    patch = b"".join(History(session).patch(node.files)).decode()
    assert "@@ -1,2 +1,2 @@\n" in patch and "-two\n+TWO\n" in patch


def test_undo_moves_to_the_parent_and_redo_to_the_preferred_child_S3_12_S3_13(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2")
    undo(session)
    prompts(session, "b2")
    graph = Graph(session.store, "s")
    undo(session)
    assert Graph(session.store, "s").cursor == graph.node(graph.cursor).parent
    redo(session)
    assert Graph(session.store, "s").cursor == graph.cursor
    assert texts(root) == state("t1", "b2")


def test_a_jump_across_the_tree_is_one_transaction_S3_21(root: Path, session: Session) -> None:
    """Many turns left and entered, each path written once; killed anywhere in between it is all or nothing."""
    prompts(session, "t1", "t2", "t3", "t4")
    undo(session, 3)
    prompts(session, "b2", "b3")
    start = texts(root)
    store = session.store
    ends = set()
    for nth in range(3, 200, 9):
        plan = session.plan_goto("main:4")
        assert [move.path for move in plan.changing] == sorted({move.path for move in plan.changing})
        killed = killed_at(nth, partial(session.move, plan))
        store.close()
        store = Store.open(root)
        session = store.session("s")
        ends.add(stands_at(session))
        assert texts(root) == (state("t1", "t2", "t3", "t4") if stands_at(session) == 4 else start)
        if not killed:
            break
        if stands_at(session) == 4:
            session.move(session.plan_switch("main-2"))
    assert ends == {3, 4}


def test_the_difference_to_a_node_is_shown_before_going_there_S3_22(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3")
    shown = snap(root, "diff", "1", "--session", "s").stdout
    assert "t2" in shown and "t3" in shown and "t1" not in shown.replace("-t1", "").replace("+t1", "")
    preview = snap_json(root, "goto", "1", "--preview", "--session", "s", "--json")
    assert (preview["removed"], preview["written"], preview["preview"]) == (["t2", "t3"], ["file"], True)
    assert texts(root) == state("t1", "t2", "t3")


def test_a_move_is_done_when_it_returns_S3_28_S3_29(root: Path, session: Session) -> None:
    """S3-28: files, cursor and what another process sees agree at once. S3-29 would let the saving come later; it does
    not."""
    prompts(session, "t1", "t2")
    for number in (1, 2, 1):
        session.move(session.plan_goto(str(number)))
        with Store.open(root) as other:
            assert stands_at(other.session("s")) == number
            assert History(other.session("s")).edits() == []
        assert texts(root) == state(*("t1", "t2")[:number])


def test_losing_what_only_saves_time_does_not_harm_the_tree_S3_33(root: Path, session: Session) -> None:
    """S3-33, C17: the session document, the caches: gone, and the tree, the place and the numbers are as they were."""
    prompts(session, "t1", "t2", "t3")
    undo(session, 2)
    prompts(session, "b2")
    undo(session)
    graph = Graph(session.store, "s")
    known = [(node.oid, node.seq) for node in graph.by_seq()]
    folder = session.store.state
    session.store.close()
    for name in ("stat", "stat.log", "graph-s", "sessions/s.json"):
        Path(folder, name).unlink(missing_ok=True)
    with Store.open(root) as store:
        again = store.session("s")
        assert [(node.oid, node.seq) for node in Graph(store, "s").by_seq()] == known
        assert stands_at(again) == 1
        prompts(again, "c2")
        graph = Graph(store, "s")
        assert len({node.seq for node in graph.by_seq()}) == len(known) + 1
        for branch, files in (("main", ("t1", "t2", "t3")), ("main-2", ("t1", "b2")), (graph.branch, ("t1", "c2"))):
            again.move(again.plan_switch(branch))
            assert texts(root) == state(*files)
        assert_whole(store)


def test_nested_branches_stay_attached_when_undoing_past_their_point_G_11(root: Path, session: Session) -> None:
    """G-11."""
    prompts(session, "t1", "t2", "t3")
    undo(session)
    prompts(session, "b3", "b4")
    undo(session)
    prompts(session, "c4")
    undo(session, 4)  # past every fork
    prompts(session, "d1")
    for branch, files in (
        ("main", ("t1", "t2", "t3")),
        ("main-2", ("t1", "t2", "b3", "b4")),
        ("main-3", ("t1", "t2", "b3", "c4")),
        ("main-4", ("d1",)),
    ):
        session.move(session.plan_switch(branch))
        assert texts(root) == state(*files)
    graph = Graph(session.store, "s")
    names = ("main", "main-2", "main-3", "main-4")
    assert [graph.turn_of(graph.fork_of(name) or b"") for name in names] == [2, 3, 3, 0]


def test_a_new_line_starts_from_the_snapshot_of_its_fork_point_G_24(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3")
    session.move(session.plan_goto("1", exact=True))
    prompts(session, "b2")
    graph = Graph(session.store, "s")
    parent = graph.node(graph.cursor).parent
    assert parent is not None and graph.node(parent).turn == 1
    assert in_commit(session.store, parent).keys() == {b"file", b"t1"}
    assert in_commit(session.store, graph.cursor).keys() == {b"file", b"t1", b"b2"}
