"""Several sessions in one root: what one captured is not attributed to the other (G-31)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import all_refs, assert_equal, assert_whole, git, in_commit, kinds, line, on_disk, record, touched, write

from snapstore import Store


def test_overlapping_scanned_turns_do_not_share_what_one_captured_G_31(root: Path, store: Store) -> None:
    """Nobody named anything: the first to end takes all it sees, and the other does not take it again."""
    write(root / "old", "x")
    one, two = store.session("one").begin("first"), store.session("two").begin("second")
    write(root / "a", "by one")
    write(root / "b", "by two")
    first = one.end()
    write(root / "c", "by two, later")
    second = two.end()
    assert touched(store, first) == {b"a": "A", b"b": "A"}
    assert touched(store, second) == {b"c": "A"}
    for commit in (first, second):
        assert b"old" in in_commit(store, commit)
    assert_equal(store, second, on_disk(root))
    assert_whole(store)


def test_what_another_turn_may_have_written_is_not_claimed_without_a_word_G_31(root: Path, store: Store) -> None:
    """Nobody can tell whose `a` is; whoever reads the turn or undoes it must know that."""
    one, two = store.session("one"), store.session("two")
    first, second = one.begin("first"), two.begin("second")
    write(root / "a", "by one")
    write(root / "b", "by two")
    commit = second.end()
    assert record(store, commit)["beside"] == ["one"]
    said = "While turn 1 ran, a turn of session one was open: its changes may be among these files."
    assert two.plan_undo().notes == [said]
    third = two.begin("changes nothing").end()
    write(root / "c", "by one")
    assert record(store, first.end())["beside"] == []  # nobody else's turn is open
    assert record(store, third)["beside"] == []

    # One that tells of every file before it writes keeps its own apart.
    hooked = store.session("three").begin("names all", origin={"session": "x", "tells": "before"})
    hooked.touch(root / "d")
    with one.turn("scans") as alone:
        write(root / "d", "by three")
        write(root / "e", "by one")
    assert alone.commit is not None
    assert record(store, alone.commit)["beside"] == []
    hooked.touch(shell=True)
    with one.turn("scans again") as mixed:
        write(root / "f", "by whom?")
    assert mixed.commit is not None
    assert record(store, mixed.commit)["beside"] == ["three"]


def test_what_a_session_named_is_its_own_though_another_scans_G_31(root: Path, store: Store) -> None:
    write(root / "shared", "0")
    one, two = store.session("one").begin("scans"), store.session("two").begin("names")
    two.touch(root / "b", root / "folder")
    write(root / "a", "by one")
    write(root / "b", "by two")
    write(root / "folder/deep/c", "by two")
    first = one.end()
    second = two.end()
    assert touched(store, first) == {b"a": "A"}
    assert touched(store, second) == {b"b": "A", b"folder/deep/c": "A"}
    # On each line the other's work is a matter of edits.
    store.session("one").begin("next").end()
    store.session("two").begin("next").end()
    assert kinds(store, "one") == ["baseline", "turn", "edits", "turn"]
    assert touched(store, line(store, "one")[2]["commit"]) == {b"b": "A", b"folder/deep/c": "A"}
    for name in ("one", "two"):
        assert_equal(store, line(store, name)[-1]["commit"], on_disk(root))
    assert_whole(store)


def test_both_name_their_files_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one").begin("names"), store.session("two").begin("names too")
    one.touch(root / "a")
    two.touch(root / "b")
    write(root / "a", "1")
    write(root / "b", "2")
    second = two.end()
    first = one.end()
    assert touched(store, first) == {b"a": "A"}
    assert touched(store, second) == {b"b": "A"}


def test_both_change_the_same_file_one_after_the_other_G_31(root: Path, store: Store) -> None:
    """Overlap: the second's turn starts from what the first left, so that each step is someone's."""
    write(root / "file", "0")
    one, two = store.session("one").begin("first"), store.session("two").begin("second")
    one.touch(root / "file")
    write(root / "file", "1 by one")
    first = one.end()
    two.touch(root / "file")
    write(root / "file", "2 by two")
    second = two.end()
    assert touched(store, first) == touched(store, second) == {b"file": "M"}
    before = line(store, "two")[-2]["commit"]
    assert in_commit(store, before)[b"file"][1] == b"1 by one"
    assert in_commit(store, second)[b"file"][1] == b"2 by two"


def test_a_file_changed_again_after_another_captured_it_is_the_later_one_s_G_31(root: Path, store: Store) -> None:
    write(root / "file", "0")
    one, two = store.session("one").begin("first"), store.session("two").begin("second")
    write(root / "file", "1")
    first = one.end()
    write(root / "file", "2")
    second = two.end()
    assert in_commit(store, first)[b"file"][1] == b"1"
    assert in_commit(store, line(store, "two")[-2]["commit"])[b"file"][1] == b"1"
    assert touched(store, second) == {b"file": "M"}


def test_edits_recorded_by_one_session_s_begin_do_not_vanish_from_the_other_G_31(root: Path, store: Store) -> None:
    one = store.session("one").begin("open all along")
    write(root / "a", "by one")
    store.session("two").begin("sees it as edits").end()
    assert touched(store, one.end()) == {b"a": "A"}


def test_a_third_session_starts_from_what_is_on_disk_G_31(root: Path, store: Store) -> None:
    one = store.session("one").begin("open")
    one.touch(root / "a")
    write(root / "a", "by one")
    commit = store.session("three").begin("new here").end()
    assert kinds(store, "three") == ["baseline", "turn"]
    assert_equal(store, commit, on_disk(root))
    assert touched(store, one.end()) == {b"a": "A"}


def test_first_seen_files_are_nobody_s_G_25_G_31(root: Path, store: Store) -> None:
    write(root / ".gitignore", "secret\n")
    write(root / "secret", "older than both")
    one, two = store.session("one").begin("unignores"), store.session("two").begin("innocent")
    write(root / ".gitignore", "")
    first = one.end()
    second = two.end()
    assert b"secret" not in touched(store, first)
    assert b"secret" not in touched(store, second)
    assert record(store, first)["first_seen"] == ["secret"]
    assert_equal(store, second, on_disk(root))


def test_a_cancelled_turn_s_claims_are_given_up_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one").begin("scans"), store.session("two").begin("claims, then gives up")
    two.touch(root / "b")
    write(root / "b", "x")
    two.cancel()
    assert touched(store, one.end()) == {b"b": "A"}


def test_the_state_of_the_disk_survives_gc_while_turns_overlap_G_17_G_31(root: Path, store: Store) -> None:
    """What one session's scan saw of another's open turn hangs from no commit yet."""
    one, two = store.session("one").begin("scans"), store.session("two").begin("names")
    two.touch(root / "b")
    write(root / "b", "only ever seen in passing")
    one.end()
    git(store.shadow.git_dir, "reflog", "expire", "--expire=now", "--all")
    git(store.shadow.git_dir, "gc", "--quiet", "--prune=now")
    assert_whole(store)
    with Store.open(root) as again:
        commit = again.session("two").end()
        assert touched(again, commit) == {b"b": "A"}
        assert_equal(again, commit, on_disk(root))
        assert_whole(again)


def test_a_store_kept_open_does_not_trust_objects_that_gc_has_pruned_G_17(root: Path, store: Store) -> None:
    """It remembers which packs held what; git may have thrown the unreachable away since."""
    for number in range(2):
        one, two = store.session("one").begin("scans"), store.session("two").begin("names")
        two.touch(root / "b")
        write(root / "b", f"passing state {number}")
        one.end()  # the disk's tree, with b in it, is held by refs/snapstore/disk until the next round
        write(root / "b", f"state {number}")
        two.end()
    git(store.shadow.git_dir, "reflog", "expire", "--expire=now", "--all")
    git(store.shadow.git_dir, "gc", "--quiet", "--prune=now")
    git(store.shadow.git_dir, "repack", "-adf", "--quiet")
    git(store.shadow.git_dir, "prune", "--expire=now")
    for number in range(2):
        with store.session("one").turn("the same bytes again") as turn:
            write(root / "b", f"passing state {number}")
        assert turn.commit is not None
        assert_equal(store, turn.commit, on_disk(root))
    assert_whole(store)


def test_another_store_s_captures_are_seen_by_one_kept_open(root: Path, store: Store) -> None:
    """Two processes, each with its own memory of the disk: a file that came and went between is not there."""
    session = store.session("one")
    turn = session.begin("kept open")
    with Store.open(root) as other, other.session("two").turn("passing"):
        write(root / "came", "x")
        write(root / "sub/came", "x")
    turn.touch(root / "named")
    write(root / "named", "1")
    (root / "came").unlink()
    (root / "sub/came").unlink()
    turn.end()
    session.begin("look").end()
    assert_equal(store, line(store, "one")[-1]["commit"], on_disk(root))
    # and with its memory dropped it sees the same
    store.cache.drop()
    session.begin("look again").end()
    assert_equal(store, line(store, "one")[-1]["commit"], on_disk(root))
    assert touched(store, line(store, "one")[-1]["commit"]) == {}


WORKER = """
import sys
from snapstore import Store
root, name, rounds, mode = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
store = Store.open(root)
for number in range(rounds):
    if mode == "reopened":
        store.close()
        store = Store.open(root)
    turn = store.session(name).begin(f"round {number}")
    for file in ("one", "two"):
        turn.touch(f"{root}/{name}/{file}")
    import os
    os.makedirs(f"{root}/{name}", exist_ok=True)
    for file in ("one", "two"):
        open(f"{root}/{name}/{file}", "w").write(f"{name} {number}")
    turn.end(scan=number % 3 == 0)
"""


@pytest.mark.parametrize("mode", ["kept open", "reopened"])
def test_four_processes_record_at_the_same_time_G_08_G_31(root: Path, store: Store, mode: str) -> None:
    """Each names its files and scans now and then: every turn holds its own two files and nothing else."""
    names, rounds = ["w0", "w1", "w2", "w3"], 8
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(root), name, str(rounds), mode], stderr=subprocess.PIPE)
        for name in names
    ]
    for worker in workers:
        _, said = worker.communicate(timeout=120)
        assert worker.returncode == 0, said.decode()
    for name in names:
        turns = [commit for commit in line(store, name) if commit["trailers"]["Kind"] == "turn"]
        assert [commit["trailers"]["Turn"] for commit in turns] == [str(number + 1) for number in range(rounds)]
        for number, commit in enumerate(turns):
            own = {f"{name}/one".encode(), f"{name}/two".encode()}
            assert touched(store, commit["commit"]).keys() == own
            files = in_commit(store, commit["commit"])
            assert {files[path][1] for path in own} == {f"{name} {number}".encode()}
        numbers = [int(commit["trailers"]["Seq"]) for commit in line(store, name)]
        assert numbers == list(range(len(numbers)))
    store.session("last").begin("all of it").end()
    assert_equal(store, line(store, "last")[-1]["commit"], on_disk(root))
    assert {f"refs/heads/{name}/main" for name in names} <= all_refs(store).keys()
    assert_whole(store)
