"""Pruning (C18, S1-60, S3-27): only what is out of the list for long, nothing that anybody stands on or pinned."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import assert_record, snap, snap_json
from helpers import all_refs, assert_equal, assert_whole, git, on_disk, tip, turn, write

from snapstore import Store
from snapstore.base import files
from snapstore.errors import Conflict, Failed, SnapstoreError, Unknown, Usage
from snapstore.git.maintenance import fold
from snapstore.git.objects import notes
from snapstore.store.state import encode
from snapstore.surface.records.keeping import PruneRecord
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.maintenance import auto, gc
from snapstore.timeline.maintenance.auto import Pruned
from snapstore.timeline.maintenance.prune import DAY, refuse_unknown
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import FORCE, Policy


class Grove:
    """A session with a trunk and side branches, and a clock that can be moved."""

    def __init__(self, root: Path) -> None:
        self.now = 1_700_000_000.0
        self.root = root
        self.store = Store.open(root, create=True, clock=lambda: self.now)
        self.session = self.store.session("s")
        self.tips: dict[str, str] = {}
        turn(self.session, root, "the trunk", a="trunk")

    def branch(self, name: str, text: str) -> None:
        """A branch of one turn beside the line, left again: the session stands on a newer one then."""
        self.move(self.session.plan_undo(1))
        commit = turn(self.session, self.root, name, a=text)
        grown = self.store.shadow.refs.value("refs/snapstore/cursor/s")
        assert isinstance(grown, str)
        self.branches.rename(grown.rpartition("/")[2], name)
        self.tips[name] = commit

    def move(self, plan: object) -> None:
        self.session.move(plan)  # type: ignore[arg-type]

    @property
    def branches(self) -> Branches:
        return Branches(self.session)

    def days(self, number: float) -> None:
        self.now += number * DAY

    def prune(self, **how: object) -> Pruned:
        return auto.prune(self.store, **how)  # type: ignore[arg-type]

    def names(self) -> list[str]:
        return sorted(branch.name for branch in self.branches.list())


@pytest.fixture
def grove(root: Path) -> Iterator[Grove]:
    made = Grove(root)
    for name in ("first", "second", "third"):
        made.branch(name, f"{name}\n" * 200)
    yield made
    made.store.close()


def gone(pruned: Pruned) -> list[str]:
    return [found.name for found in pruned.going]


def kept(pruned: Pruned) -> dict[str, str | None]:
    return {found.name: found.kept for found in pruned.staying}


# What goes


def test_only_archived_and_deleted_branches_older_than_the_limit_go(grove: Grove) -> None:
    """C18, S3-27: ninety days unless set; listed branches never, however old."""
    grove.branches.archive("first")
    grove.days(50)
    grove.branches.delete("second")
    assert gone(grove.prune()) == []
    grove.days(41)
    done = grove.prune()
    assert gone(done) == ["first"], "archived ninety-one days ago"
    assert grove.names() == ["main", "third"]
    grove.days(50)
    assert gone(grove.prune()) == ["second"], "deleted ninety-one days ago"
    assert gone(grove.prune()) == []
    assert grove.names() == ["main", "third"]
    assert_whole(grove.store)


def test_an_old_branch_that_was_archived_just_now_is_not_pruned_the_same_day(grove: Grove) -> None:
    """What counts is when it left the list: nobody could have looked for it before."""
    grove.days(400)
    grove.branches.archive("first")
    assert gone(grove.prune()) == []
    grove.days(91)
    assert gone(grove.prune()) == ["first"]


def test_the_limit_is_a_setting_and_none_is_never(grove: Grove) -> None:
    grove.branches.archive("first")
    grove.days(10_000)
    grove.store.configure(prune_after_days=0)
    assert gone(grove.prune()) == []
    grove.store.configure(prune_after_days=20_000)
    assert gone(grove.prune()) == []
    assert gone(grove.prune(older=5 * DAY)) == ["first"]


def test_deleted_checkpoints_go_too(grove: Grove) -> None:
    grove.branches.checkpoint("pin", bytes.fromhex(grove.tips["first"]))
    grove.branches.delete("first")
    grove.branches.delete_checkpoint("pin")
    grove.days(91)
    assert sorted(gone(grove.prune())) == ["first", "pin"]


# What stays


def test_a_branch_with_a_checkpoint_of_its_own_stays(grove: Grove) -> None:
    grove.branches.checkpoint("pin", bytes.fromhex(grove.tips["first"]))
    grove.branches.archive("first")
    grove.branches.archive("second")
    grove.days(91)
    done = grove.prune()
    assert (gone(done), kept(done)) == (["second"], {"first": "it has a checkpoint"})


def test_where_a_session_stands_nothing_goes(grove: Grove, root: Path) -> None:
    """Also where the branch under it was taken out of the list in another way than by us."""
    grove.branches.archive("first")
    refs, first = grove.store.shadow.refs, bytes.fromhex(grove.tips["first"])
    refs.update("refs/snapstore/cursor/s", refs.value("refs/snapstore/cursor/s"), first)
    grove.days(91)
    done = grove.prune()
    assert gone(done) == []
    assert kept(done) == {"first": "a session is on one of its turns"}
    refs.update("refs/snapstore/cursor/s", first, "refs/snapstore/archive/s/first")
    assert kept(grove.prune()) == {"first": "it is a session's current branch"}
    assert_whole(grove.store)


def test_what_an_open_turn_began_from_stays(grove: Grove) -> None:
    """Also where its cursor is somewhere else by now."""
    grove.branches.archive("first")
    other = grove.store.session("t")
    other.begin("open")
    open_turn = grove.store.documents.open_turn("t")
    assert open_turn is not None
    open_turn.before = grove.tips["first"]
    files.write(f"{grove.store.state}/open/t.json", encode(open_turn))
    grove.days(91)
    done = grove.prune()
    assert (gone(done), kept(done)) == ([], {"first": "a session is on one of its turns"})


def test_what_is_named_to_be_kept_stays(grove: Grove) -> None:
    grove.branches.archive("first")
    grove.branches.archive("second")
    grove.days(91)
    done = grove.prune(keep=["first"])
    assert (gone(done), kept(done)) == (["second"], {"first": "--keep names it"})
    assert kept(grove.prune(keep=["s/first"])) == {"first": "--keep names it"}
    assert gone(grove.prune(keep=["other/first"])) == ["first"]


def test_a_name_to_be_kept_that_nothing_has_is_a_slip(grove: Grove) -> None:
    refuse_unknown(grove.store, ["first", "s/first"])
    with pytest.raises(Usage, match="frist"):
        refuse_unknown(grove.store, ["frist"])


def test_what_a_remote_lacks_stays(grove: Grove) -> None:
    """C18: where there are remotes, only what each of them has may go; without remotes there is nothing to wait for."""
    grove.branches.archive("first")
    grove.branches.archive("second")
    grove.days(91)
    remotes = {"remotes": {"origin": {"url": "x"}, "backup": {"url": "y"}}}
    files.write(f"{grove.store.state}/remotes.json", json.dumps(remotes).encode())
    assert kept(grove.prune()) == {"first": "not every remote has it", "second": "not every remote has it"}
    os.mkdir(f"{grove.store.state}/shared")
    both, one = grove.tips["first"], grove.tips["second"]
    for name, commits in (("origin", [both, one]), ("backup", [both])):
        pushed = {f"refs/heads/s/{number}": ["there", commit] for number, commit in enumerate(commits)}
        files.write(f"{grove.store.state}/shared/{name}.json", json.dumps({"pushed": pushed}).encode())
    done = grove.prune()
    assert (gone(done), kept(done)) == (["first"], {"second": "not every remote has it"})


def test_what_another_machine_owns_stays(grove: Grove) -> None:
    from snapstore.store.owners import DOCUMENT, Owners

    grove.branches.archive("first")
    refs = {"refs/snapstore/archive/s/first": ["0123abcd", "refs/heads/s/first"]}
    files.write(f"{grove.store.state}/{DOCUMENT}", encode(Owners(refs=refs)))
    grove.days(91)
    done = grove.prune()
    assert (gone(done), kept(done)) == ([], {"first": "it belongs to another machine"})


# The way back, and the end


def test_one_ops_undo_brings_it_back_until_the_grace_is_over(grove: Grove) -> None:
    grove.branches.archive("first")
    grove.branches.delete("second")
    before = all_refs(grove.store)
    grove.days(91)
    done = grove.prune()
    assert sorted(gone(done)) == ["first", "second"]
    gc.collect(grove.store, grace=14 * DAY)
    grove.days(13)
    gc.collect(grove.store, grace=14 * DAY)
    grove.move(grove.session.plan_ops_undo(done.operations[0].number))
    assert all_refs(grove.store) == before
    assert grove.names() == ["first", "main", "third"]
    assert_whole(grove.store)


@pytest.mark.parametrize("way", [None, ""], ids=["git", "ourselves"])
def test_after_that_its_turns_and_conversations_are_gone_and_nothing_else(grove: Grove, way: str | None) -> None:
    grove.branches.archive("first")
    lost, kept_commit = bytes.fromhex(grove.tips["first"]), bytes.fromhex(grove.tips["third"])
    assert grove.store.shadow.note(lost) is not None
    grove.days(91)
    done = grove.prune()
    grove.days(15)
    assert gc.collect(grove.store, grace=0, pruned_grace=14 * DAY, git=way).expired == 1
    shadow = grove.store.shadow
    assert shadow.note(lost) is None
    assert not shadow.objects.contains(lost)
    assert shadow.note(kept_commit) is not None
    assert not any(name.startswith("refs/snapstore/pruned/") for name in all_refs(grove.store))
    with pytest.raises(Conflict, match="no longer exists"):
        grove.session.plan_ops_undo(done.operations[0].number)
    assert_whole(grove.store)
    assert_equal(grove.store, grove.tips["third"], on_disk(grove.root))


def test_a_gc_without_room_lets_nothing_expire(grove: Grove, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that nothing was changed."""
    grove.branches.archive("first")
    grove.days(91)
    done = grove.prune()
    before = all_refs(grove.store)
    with monkeypatch.context() as patch, pytest.raises(Failed, match="MB are free on the disk"):
        patch.setattr(fold, "SPARE", 1 << 60)
        gc.collect(grove.store, grace=0)
    assert all_refs(grove.store) == before
    grove.move(grove.session.plan_ops_undo(done.operations[0].number))
    assert_whole(grove.store)


def test_a_gc_that_fails_later_says_what_expired(grove: Grove, tmp_path: Path) -> None:
    grove.branches.archive("first")
    grove.days(91)
    grove.prune()
    failing = tmp_path / "git"
    write(failing, "#!/bin/sh\nexit 1\n", executable=True)
    with pytest.raises(Failed, match="could not pack") as refused:
        gc.collect(grove.store, grace=0, git=str(failing))
    assert "One step is done: 1 pruned branch had expired and can no longer be restored." in refused.value.hint
    with pytest.raises(Failed) as refused:
        gc.collect(grove.store, grace=0, git=str(failing))
    assert "can no longer be restored" not in refused.value.hint


def test_a_number_is_never_given_again(grove: Grove) -> None:
    """DESIGN: the sequence number of a turn is never reused within its session, though the turn is gone."""
    grove.move(grove.session.plan_switch("second"))
    grove.branches.archive("third")  # the newest: the highest number
    grove.days(91)
    grove.prune()
    grove.days(15)
    gc.collect(grove.store, grace=0)
    commit = turn(grove.session, grove.root, "after it", a="x")
    numbers = [
        int(git(grove.store.shadow.git_dir, "log", "-1", "--format=%(trailers:key=Snapstore-Seq,valueonly)", oid))
        for oid in (commit, tip(grove.store, "s"))
    ]
    assert numbers[0] == 5, "0 is the baseline, 1 the trunk, 2 to 4 the branches"


def test_two_sessions_are_two_operations(grove: Grove) -> None:
    other = grove.store.session("t")
    turn(other, grove.root, "one", b="1")
    other.move(other.plan_undo(1))
    turn(other, grove.root, "two", b="2")
    Branches(other).archive("main")
    grove.branches.archive("first")
    grove.days(91)
    done = grove.prune()
    assert sorted(operation.session for operation in done.operations) == ["s", "t"]
    other.move(other.plan_ops_undo(None))
    assert "refs/snapstore/archive/t/main" in all_refs(grove.store)
    assert "refs/snapstore/archive/s/first" not in all_refs(grove.store)


def test_what_a_person_did_is_taken_back_not_what_happened_by_itself(grove: Grove) -> None:
    grove.branches.archive("first")
    grove.days(91)
    before = on_disk(grove.root)
    grove.move(grove.session.plan_undo(1))
    auto.run(grove.store)
    assert "refs/snapstore/archive/s/first" not in all_refs(grove.store)
    plan = grove.session.plan_ops_undo()
    assert plan.arguments == [str(plan.undoes[0])] and len(plan.undoes) == 1
    grove.move(plan)
    assert on_disk(grove.root) == before
    assert "refs/snapstore/archive/s/first" not in all_refs(grove.store)


def test_what_was_done_to_a_pruned_branch_is_taken_back_with_its_prune(grove: Grove) -> None:
    before = all_refs(grove.store)
    grove.branches.archive("first")
    grove.days(91)
    auto.run(grove.store)
    plan = grove.session.plan_ops_undo()
    assert len(plan.undoes) == 2
    grove.move(plan)
    assert all_refs(grove.store) == before


@pytest.mark.parametrize("numbered", [False, True])
def test_a_prune_that_is_final_is_in_nobodys_way(grove: Grove, numbered: bool) -> None:
    grove.branches.archive("first")
    before = on_disk(grove.root)
    grove.move(grove.session.plan_undo(1))
    undone = Operations(grove.store).next_number() - 1
    grove.days(91)
    grove.prune()
    gc.collect(grove.store, grace=0)
    grove.move(grove.session.plan_ops_undo(undone if numbered else None))
    assert on_disk(grove.root) == before


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("how", ["archive", "delete"])
def test_what_was_done_to_a_branch_that_is_gone_is_in_nobodys_way_either(
    grove: Grove, how: str, numbered: bool
) -> None:
    before = on_disk(grove.root)
    grove.move(grove.session.plan_undo(1))
    undone = Operations(grove.store).next_number() - 1
    grove.branches.rename("first", "renamed")
    getattr(grove.branches, how)("renamed")
    grove.days(91)
    grove.prune()
    gc.collect(grove.store, grace=0)
    grove.move(grove.session.plan_ops_undo(undone if numbered else None))
    assert on_disk(grove.root) == before
    assert "renamed" not in grove.names() and "first" not in grove.names()


def test_a_move_from_a_turn_that_is_gone_says_so(grove: Grove) -> None:
    grove.move(grove.session.plan_switch("second"))
    grove.branches.archive("third")
    grove.days(91)
    grove.prune()
    gc.collect(grove.store, grace=0)
    with pytest.raises(Unknown, match="the turn before it was pruned"):
        grove.session.plan_ops_undo()
    assert_whole(grove.store)


def a_turn_left_behind(grove: Grove, root: Path) -> tuple[Store, str]:
    """A move away from a turn, whose branch was then deleted; a second program that has read all of that."""
    grove.branch("side", "beside")
    grove.move(grove.session.plan_goto("main"))
    other = Store.open(root, clock=lambda: grove.now)
    assert_equal(other, grove.tips["side"], {b"a": (b"100644", b"beside")})
    other.shadow.objects.read(bytes.fromhex(grove.tips["side"]))  # its pack is open from now on
    grove.branches.delete("side")
    return other, grove.tips["side"]


def let_go(grove: Grove) -> None:
    grove.days(91)
    grove.prune()
    gc.collect(grove.store, grace=0, git="")


def test_another_program_does_not_go_back_to_a_turn_that_is_gone(grove: Grove, root: Path) -> None:
    """G-16: it still has the removed pack open, so it could read the turn; a ref to the turn would lead to nothing."""
    other, gone = a_turn_left_behind(grove, root)
    with other:
        let_go(grove)
        before = all_refs(grove.store)
        with pytest.raises(Unknown, match="the turn before it was pruned"):
            other.session("s").plan_ops_undo(_last_move(other))
        assert not other.shadow.objects.contains(bytes.fromhex(gone))
        assert all_refs(grove.store) == before
        assert_whole(grove.store)


def test_a_plan_is_refused_if_its_turn_is_gone_by_the_time_of_the_move(grove: Grove, root: Path) -> None:
    other, _ = a_turn_left_behind(grove, root)
    with other:
        plan = other.session("s").plan_ops_undo(_last_move(other))
        let_go(grove)
        before = all_refs(grove.store)
        with pytest.raises(Unknown, match="was pruned after the plan was made"):
            other.session("s").move(plan)
        assert all_refs(grove.store) == before
        assert_whole(grove.store)


def _last_move(store: Store) -> int:
    return next(one.number for one in Operations(store).newest_first() if one.kind == "goto")


@pytest.mark.parametrize("gone_before", [True, False], ids=["lost before gc", "lost after gc"])
def test_a_session_whose_note_is_lost_stands_on_a_branch_that_is_there(grove: Grove, gone_before: bool) -> None:
    """DESIGN: state that can be made again may go at any time."""
    note = Path(grove.store.state, "sessions/s.json")
    for name in ("main", "first", "second"):
        grove.branches.archive(name)
    grove.move(grove.session.plan_undo(1))
    grove.days(91)
    assert sorted(gone(grove.prune())) == ["first", "main", "second"]
    for step in ("note", "gc") if gone_before else ("gc", "note"):
        if step == "gc":
            gc.collect(grove.store, grace=0)
        else:
            note.unlink()
    plan = grove.session.plan_apply(grove.tips["third"])
    assert plan.branch == "third"
    assert grove.session.move(plan).operation is not None
    assert grove.session.plan_undo(1).undone


# What was saved before forced moves


def forced(grove: Grove, text: str) -> str:
    """A move over what somebody has edited; gives the ref that holds the edit."""
    write(grove.root / "a", text)
    moved = grove.session.move(grove.session.plan_undo(1, policy=Policy(FORCE)))
    assert moved.safety_ref is not None
    grove.session.move(grove.session.plan_redo(1))
    return moved.safety_ref


def test_what_was_saved_before_moves_goes_only_where_somebody_asks_for_it(grove: Grove) -> None:
    old = forced(grove, "mine\n" * 1000)
    grove.days(91)
    young = forced(grove, "mine again")
    auto.run(grove.store)
    grove.prune(older=0)
    assert {old, young} <= all_refs(grove.store).keys()
    assert [found.ref for found in grove.prune(safety=True, dry_run=True).going] == [old]
    assert old in all_refs(grove.store)
    before = all_refs(grove.store)
    done = grove.prune(safety=True)
    assert old not in all_refs(grove.store) and young in all_refs(grove.store)
    grove.move(grove.session.plan_ops_undo())
    assert all_refs(grove.store) == before
    assert [found.state for found in done.going] == ["safety"]


@pytest.mark.parametrize("way", [None, ""], ids=["git", "ourselves"])
def test_after_the_grace_time_it_is_gone_and_the_move_can_no_longer_be_taken_back(
    grove: Grove, way: str | None
) -> None:
    ref = forced(grove, "mine\n" * 1000)
    saved = all_refs(grove.store)[ref]
    undone = Operations(grove.store).next_number() - 2
    grove.days(91)
    grove.prune(safety=True)
    gc.collect(grove.store, grace=0, git=way)
    assert not grove.store.shadow.objects.contains(bytes.fromhex(saved))
    disk = on_disk(grove.root)
    with pytest.raises(SnapstoreError):
        grove.move(grove.session.plan_ops_undo(undone))
    assert on_disk(grove.root) == disk
    for name in ("first", "second", "third"):
        assert grove.store.shadow.note(bytes.fromhex(grove.tips[name])) is not None
    assert_whole(grove.store)


def test_a_remote_has_nothing_to_do_with_it(grove: Grove) -> None:
    """What is saved stays at home."""
    ref = forced(grove, "mine")
    files.write(f"{grove.store.state}/remotes.json", json.dumps({"remotes": {"origin": {"url": "x"}}}).encode())
    grove.days(91)
    grove.prune(safety=True)
    assert ref not in all_refs(grove.store)


def test_it_happens_by_itself(grove: Grove) -> None:
    """S1-60, S3-27: with the gc that runs by itself, once the archived branch is older than `prune_after_days`."""
    grove.branches.archive("first")
    grove.days(89)
    auto.run(grove.store)
    assert grove.names() == ["first", "main", "second", "third"]
    grove.days(2)
    auto.run(grove.store)
    assert grove.names() == ["main", "second", "third"]
    grove.branches.archive("second")
    grove.store.configure(prune_after_days=0)
    grove.days(1000)
    auto.run(grove.store)
    assert grove.names() == ["main", "second", "third"], "0 is never"


def test_over_its_limit_a_store_lets_go_of_pruned_branches_at_once(grove: Grove) -> None:
    """S1-64: what policy allows, and no more."""
    grove.branches.archive("first")
    for path in Path(grove.store.shadow.objects.pack_folder).iterdir():
        os.utime(path, (1, 1))
    grove.days(91)
    grove.store.configure(max_store_size=1000)
    auto.run(grove.store)
    objects = grove.store.shadow.objects
    assert not objects.contains(bytes.fromhex(grove.tips["first"]))
    assert objects.contains(bytes.fromhex(grove.tips["second"]))
    assert_whole(grove.store)


def test_a_dry_run_says_what_would_go_and_how_much_it_frees(grove: Grove) -> None:
    grove.branches.archive("first")
    grove.days(91)
    before = all_refs(grove.store)
    done = grove.prune(dry_run=True)
    assert gone(done) == ["first"]
    assert done.size == done.going[0].size > 100
    assert all_refs(grove.store) == before
    assert grove.prune().size == done.size


def test_a_stranger_among_the_refs_is_passed_over(grove: Grove) -> None:
    refs = grove.store.shadow.refs
    refs.update(
        "refs/snapstore/archive/s/tree", None, grove.store.shadow.commit(bytes.fromhex(grove.tips["first"])).tree
    )
    refs.update("refs/snapstore/pruned/s/x/y", None, bytes.fromhex(grove.tips["first"]))
    grove.days(91)
    assert gone(grove.prune()) == []
    gc.collect(grove.store)
    assert refs.read("refs/snapstore/pruned/s/x/y") is not None
    assert refs.read(notes.REF) is not None


# On the command line


def a_branch(root: Path) -> None:
    for text in ("1", "2"):
        snap(root, "run", "--", "sh", "-c", f"echo {text} > file")
        snap(root, "undo", "--yes")
    snap(root, "branch", "archive", "main")


def test_prune_on_the_command_line(root: Path) -> None:
    a_branch(root)
    assert "Nothing to prune: no branch was archived or deleted more than 90d ago." in snap(root, "prune").stdout
    assert snap(root, "prune", "--safety").stdout == (
        "Nothing to prune: no state was saved before a move more than 90d ago.\n"
    )
    assert snap(root, "prune", "--safety", "--older", "0").stdout == (
        "Nothing to prune: no state was saved before a move.\n"
    )
    would = snap(root, "prune", "--dry-run", "--older", "0s").stdout
    assert "shell/main  archived" in would
    assert "Would prune 1 branch" in would
    assert "kept  shell/main" in snap(root, "prune", "--older", "0s", "--keep", "main").stdout
    document = snap_json(root, "prune", "--older", "0s", "--json")
    assert_record(PruneRecord, document)
    assert [branch["branch"] for branch in document["pruned"]] == ["main"]
    assert snap_json(root, "branches", "--all", "--json")["archived"] == 0
    assert document["undo"] is not None
    snap(root, *document["undo"].split()[1:], "--yes")
    assert snap_json(root, "branches", "--all", "--json")["archived"] == 1
    said = snap(root, "prune", "--older", "0s").stdout
    assert "Pruned 1 branch" in said
    assert "`snapstore ops undo" in said
    assert "intact" in snap(root, "check").stdout
    snap(root, "config", "set", "prune_after_days", "0")
    assert "prune_after_days is 0" in snap(root, "prune").stdout


def test_saved_states_on_the_command_line(root: Path) -> None:
    a_branch(root)
    snap(root, "redo")
    (root / "file").write_text("mine\n" * 1000)
    snap(root, "undo", "--force", "--yes")
    assert "of that, saved before a forced move: `snapstore prune --safety`" in snap(root, "du").stdout
    assert snap_json(root, "du", "--json")["safety_bytes"] > 0
    assert "Would prune 1 saved state" in snap(root, "prune", "--safety", "--older", "0", "--dry-run").stdout
    document = snap_json(root, "prune", "--safety", "--older", "0", "--json")
    assert_record(PruneRecord, document)
    assert [one["state"] for one in document["pruned"]] == ["safety"]
    assert snap_json(root, "du", "--json")["safety_bytes"] == 0
    snap(root, *document["undo"].split()[1:], "--yes")
    assert snap_json(root, "du", "--json")["safety_bytes"] > 0


@pytest.mark.parametrize("words", [["--older", "old"], ["--keep", "nothing"], ["--older", "-1d"]])
def test_what_makes_no_sense_is_refused(root: Path, words: list[str]) -> None:
    a_branch(root)
    assert snap_json(root, "prune", *words, "--json", status=2)["error"] == "usage"


def test_what_people_put_among_archived_branches_with_git_is_in_nobodys_way(grove: Grove) -> None:
    """A ref that stands for another one, or that leads to no commit."""
    git_dir = grove.store.shadow.git_dir
    grove.branches.archive("first")
    blob = git(git_dir, "hash-object", "-w", "--stdin", feed=b"mine").decode().strip()
    git(git_dir, "update-ref", "refs/snapstore/archive/s/content", blob)
    git(git_dir, "symbolic-ref", "refs/snapstore/archive/s/other", "refs/heads/s/third")
    grove.days(100)
    assert "first" in [branch.name for branch in grove.branches.list(archived=True)]
    assert gone(grove.prune()) == ["first"]
    assert git(git_dir, "symbolic-ref", "refs/snapstore/archive/s/other").strip() == b"refs/heads/s/third"
    assert all_refs(git_dir)["refs/snapstore/archive/s/content"] == blob


def test_a_dry_run_of_what_runs_by_itself_is_refused(root: Path) -> None:
    snap(root, "run", "--", "true")
    assert "exclude each other" in snap(root, "gc", "--auto", "--dry-run", status=2).stderr
