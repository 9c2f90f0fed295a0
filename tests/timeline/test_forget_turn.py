"""`forget` takes a turn out of all that was recorded, as if it had never been."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from commands import snap
from forgetting import SECRET, assert_gone, forget_turn, holds, states
from helpers import (
    all_refs,
    assert_cache_adds_up,
    assert_whole,
    difference,
    git,
    in_commit,
    kinds,
    line,
    on_disk,
    tip,
    touched,
    turn,
    write,
)

from snapstore import Store
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.moves.branches import Branches

# A turn.


def test_a_turn_goes_as_if_it_had_never_been(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="1", b="1", gone="x")
    two = turn(session, root, f"Two {SECRET}", a="2" + SECRET, b="2", new=SECRET, gone=None)
    turn(session, root, "Three", b="3", c="3")
    turn(session, root, "Four", a="4")
    forgotten = forget_turn(store, two)
    assert forgotten.paths == [b"a", b"b", b"gone", b"new"]
    assert forgotten.on_disk == [b"new"]  # a and b were changed since
    found = [{path.decode(): data.decode() for path, (_, data) in files.items()} for files in states(store, "s1")]
    one = {"a": "1", "b": "1", "gone": "x"}
    assert found == [{}, one, {**one, "b": "3", "c": "3"}, {**one, "b": "3", "c": "3", "a": "4"}]
    assert [commit["trailers"].get("Turn") for commit in line(store, "s1")] == [None, "1", "2", "3"]
    assert [commit["trailers"]["Seq"] for commit in line(store, "s1")] == ["0", "1", "3", "4"]
    assert [commit["record"].get("turn") for commit in line(store, "s1")] == [None, 1, 2, 3]
    assert_gone(store)
    assert_cache_adds_up(store)


def test_what_the_turn_left_on_disk_is_recorded_as_edits_next(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="1")
    two = turn(session, root, "Two", a="2", deep__new="2")
    forget_turn(store, two)
    turn(session, root, "Three", c="3")
    assert kinds(store, "s1") == ["baseline", "turn", "edits", "turn"]
    assert touched(store, line(store, "s1")[2]["commit"]) == {b"a": "M", b"deep/new": "A"}
    session.move(session.plan_undo(1))
    assert (root / "a").read_text() == "2" and (root / "deep/new").read_text() == "2"
    assert_whole(store)


def test_the_turn_stood_on_and_one_that_is_undone(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="1")
    two = turn(session, root, "Two", a="2")
    three = turn(session, root, "Three", a="3")
    session.move(session.plan_undo(1))
    forget_turn(store, three)
    assert tip(store, "s1") == two
    assert store.shadow.refs.value("refs/snapstore/cursor/s1") == "refs/heads/s1/main"  # at its end again
    forget_turn(store, two)
    turn(session, root, "Four", b="4")
    assert [commit["subject"] for commit in line(store, "s1")] == ["Baseline", "One", "Edits: 1 file", "Four"]
    assert list(all_refs(store)).count("refs/heads/s1/main-2") == 0
    assert_whole(store)


def test_a_turn_that_made_a_folder_of_a_file(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="file")
    with session.turn("Two") as two:
        (root / "a").unlink()
        write(root / "a/x", "x")
    turn(session, root, "Three", a__y="y")
    turn(session, root, "Four", a__y=None, a__x=None)
    assert two.commit is not None
    forget_turn(store, two.commit.hex())
    found = [{path.decode() for path in files} for files in states(store, "s1")]
    assert found == [set(), {"a"}, {"a/y"}, {"a"}] or found == [set(), {"a"}, {"a/y"}, set()]
    assert_whole(store)


def test_branches_that_grow_from_the_turn_stay(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="1")
    two = turn(session, root, "Two", b="2")
    turn(session, root, "Three", c="3")
    session.move(session.plan_undo(1))
    turn(session, root, "Other", d="4")
    Branches(session).checkpoint("here", bytes.fromhex(two))
    forget_turn(store, two)
    tips = {name: {path.decode() for path in in_commit(store, oid)} for name, oid in all_refs(store).items()
            if name.startswith(("refs/heads/s1/", "refs/tags/"))}  # fmt: skip
    assert tips == {
        "refs/heads/s1/main": {"a", "c"},
        "refs/heads/s1/main-2": {"a", "d"},
        "refs/tags/s1/here": {"a"},
    }
    assert_whole(store)


def test_undo_and_redo_after_a_turn_is_forgotten(root: Path, store: Store) -> None:
    session = store.session("s1")
    commits = [turn(session, root, f"{number}", a=f"{number}", **{f"f{number}": "x"}) for number in range(5)]
    forget_turn(store, commits[2])
    wanted = [in_commit(store, commit["commit"]) for commit in line(store, "s1")]
    turn(session, root, "Last", z="1")
    session.move(session.plan_undo(1))
    session.move(session.plan_undo(3))
    disk = on_disk(root)
    assert disk.pop(b"f2")  # nobody's turn any more
    assert not difference(wanted[1], disk)
    session.move(session.plan_redo(3))
    disk = on_disk(root)
    assert disk.pop(b"f2")
    assert not difference(wanted[4], disk)


def test_what_was_made_of_the_turn_no_longer_tells_what_it_was_asked_for(root: Path, store: Store) -> None:
    """Reverts and applies say in their subject, in their record and in the log of operations what they are of; and a
    revert of a revert does."""
    session = store.session("s1")
    turn(session, root, "One", a="1")
    two = turn(session, root, f"Two: the PIN is {SECRET}", b="2")
    session.move(session.plan_revert("2"))
    session.move(session.plan_apply("2"))
    session.move(session.plan_revert("4"))
    session.move(session.plan_revert("1"))
    told = ["Revert a forgotten turn", "Apply a forgotten turn", "Revert turn 4: Apply a forgotten turn"]
    forget_turn(store, two)
    assert_gone(store)
    nodes = line(store, "s1")[2:]
    assert [commit["subject"] for commit in nodes] == [*told, "Revert turn 1: One"]
    assert [commit["record"]["prompt"] for commit in nodes] == [*told, "Revert turn 1: One"]
    ids = [commit["commit"] for commit in line(store, "s1")]
    assert [commit["record"].get("of") for commit in nodes] == [None, None, ids[3], ids[1]]
    whats = [operation.what for operation in Operations(store).newest_first()]
    assert whats[::-1] == [text[:1].lower() + text[1:] for text in [*told, "Revert turn 1: One"]]


def test_an_operation_whose_node_is_gone_does_not_tell_either(root: Path, store: Store) -> None:
    session, git_dir = store.session("s1"), store.shadow.git_dir
    one = turn(session, root, f"One {SECRET}", a="1")
    session.move(session.plan_revert("1"))
    node = tip(store, "s1")
    store.close()
    git(git_dir, "update-ref", "refs/heads/s1/main", one)
    git(git_dir, "notes", "--ref=turns", "remove", node)
    git(git_dir, "reflog", "expire", "--expire=now", "--all")
    git(git_dir, "gc", "-q", "--prune=now")
    assert not git(git_dir, "cat-file", "-t", node, may_fail=True)
    with Store.open(root) as again:
        forget_turn(again, one)
        assert holds(again, SECRET) == []
        assert [operation.what for operation in Operations(again).newest_first()] == ["revert a forgotten turn"]


def test_what_other_turns_brought_back_of_it_stays_and_is_named(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="1")
    two = turn(session, root, "Two", b="2", c="2", a="1 ", again="1")
    turn(session, root, "Three", b=None, c=None, a="3")
    session.move(session.plan_restore("2", [b"c"]))
    assert forget_turn(store, two, dry_run=True).copies == [b"c"]
    assert forget_turn(store, two).copies == [b"c"]
    assert [commit["subject"] for commit in line(store, "s1")][-1] == "Restore c from a forgotten turn"
    assert in_commit(store, tip(store, "s1"))[b"c"][1] == b"2"
    store.close()
    snap(root, "run", "-m", "Four", "--", "sh", "-c", "echo 4 > d")
    snap(root, "run", "-m", "Five", "--", "sh", "-c", "mv d e")
    assert "Other turns have the same version of e" in snap(root, "forget", "1", "--yes").stdout


@pytest.mark.parametrize("seed", range(4))
def test_any_turn_of_any_history(root: Path, store: Store, seed: int) -> None:
    """Turns that write, delete, and turn files into folders and back. Of each later state, what nobody changed since
    the forgotten turn is as before it, and all else as it was; said here anew, from what was on disk."""
    dice = random.Random(seed)
    session = store.session("s1")
    seen: list[dict[bytes, tuple[bytes, bytes]]] = [on_disk(root)]
    for number in range(12):
        with session.turn(f"Turn {number}"):
            for name in dice.sample(["a", "b", "c", "d/e", "d/f", "g/h/i", "g"], 3):
                path = root / name
                for above in (root / "d", root / "g", root / "g/h"):
                    if above in path.parents and above.is_file():
                        above.unlink()
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.exists() and dice.random() < 0.4:
                    path.unlink()
                    continue
                write(path, f"{number}{name}", executable=dice.random() < 0.2)
        seen.append(on_disk(root))
    gone = dice.randrange(1, 12)
    commits = [commit["commit"] for commit in line(store, "s1") if commit["trailers"]["Kind"] == "turn"]
    forget_turn(store, commits[gone - 1])
    before, left = seen[gone - 1], seen[gone]
    still = {path for path in before | left if before.get(path) != left.get(path)}
    found = states(store, "s1")
    assert len(found) == 12
    assert found[:gone] == seen[:gone]
    for number in range(gone + 1, 13):
        still = {path for path in still if seen[number].get(path) == seen[number - 1].get(path)}
        for path in seen[number] | found[number - 1]:
            now, was = found[number - 1].get(path), seen[number].get(path)
            if path in still and (now == before.get(path) or _in_the_way(path, found[number - 1])):
                continue
            assert now == was, (number, path)
    assert_whole(store)
    assert_cache_adds_up(store)


def _in_the_way(path: bytes, files: dict[bytes, tuple[bytes, bytes]]) -> bool:
    """Whether something that came later is where the file was."""
    return any(other.startswith(path + b"/") or path.startswith(other + b"/") for other in files)
