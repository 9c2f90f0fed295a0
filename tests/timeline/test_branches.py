"""Branches and checkpoints of a session: names travel, nodes stay, and every change can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest
from garden import Garden, forked
from helpers import all_refs, assert_whole, git, line

from snapstore import Store
from snapstore.base import files as durable
from snapstore.errors import Conflict, SnapstoreError, Unknown, Unsafe, Usage
from snapstore.store.state import SessionState, encode
from snapstore.timeline.history.operations import Operation, Operations
from snapstore.timeline.moves.branches import Branches


class Grove(Garden):
    """A garden whose branches can be changed, and changes taken back as `ops undo` does."""

    @property
    def branches(self) -> Branches:
        return Branches(self.store.session(self.session))

    def listed(self) -> list[str]:
        return list(self.graph().branches)

    def archived(self) -> list[str]:
        return list(self.graph().archived)

    def state(self) -> SessionState:
        found = self.store.documents.session(self.session)
        assert found is not None
        return found

    def refs(self) -> dict[str, str]:
        """Every ref as git sees it, symbolic ones with what they stand for."""
        found = all_refs(self.store)
        for name in ("HEAD", f"refs/snapstore/cursor/{self.session}"):
            found[name] = str(self.store.shadow.refs.value(name))
        return found

    def undo_operations(self, *operations: Operation) -> None:
        moves, files, _ = self.branches.undo_operations(*operations)
        self.store.journal.carry_out(moves, files, what="taking back")

    def fork(self, name: str, at: str = "1") -> None:
        """A branch of one turn."""
        self.stand(at)
        self.turn(name)


@pytest.fixture
def grove(root: Path) -> Iterator[Grove]:
    grown = Grove(root)
    yield grown
    grown.close()


@pytest.fixture
def wood(grove: Grove) -> Grove:
    """main, main-2, main-3, main-4; the session stands on main-4."""
    forked(grove)
    return grove


def assert_sound(grove: Grove) -> None:
    """Ordinary git finds nothing wrong, and a gc by anyone loses no turn ever taken."""
    git(grove.store.shadow.git_dir, "gc", "-q", "--prune=now")
    grove.store.shadow.objects.refresh()
    assert_whole(grove.store)
    for oid in grove.made.values():
        git(grove.store.shadow.git_dir, "cat-file", "-e", f"{oid.hex()}^{{tree}}")


# The list


def test_a_branch_says_where_it_parted_what_is_its_own_and_its_state(wood: Grove) -> None:
    """S0-06, S1-38, S1-43: many from one turn, nested, with names until they get one."""
    found = {branch.name: branch for branch in wood.branches.list()}
    shown = {name: (b.label, b.turns, b.own, b.fork_turn, b.state, b.prompt) for name, b in found.items()}
    assert shown == {
        "main-4": ("main-4", 3, 1, 2, "current", "3d"),
        "main-3": ("Branch from turn 3", 5, 2, 3, "listed", "5c"),
        "main-2": ("Branch from turn 3", 4, 1, 3, "listed", "4b"),
        "main": ("Branch from turn 2", 4, 2, 2, "listed", "4"),
    }
    assert list(found) == ["main-4", "main-3", "main-2", "main"]
    wood.branches.archive("main-2")
    assert [(b.name, b.state) for b in wood.branches.list()][-1] == ("main-2", "archived")
    assert len(wood.branches.list(archived=False)) == 3


def test_a_checkpoint_pins_the_branch_whose_own_part_it_is_on(wood: Grove) -> None:
    wood.branches.checkpoint("deep", wood.made["4c"])
    wood.branches.checkpoint("shared", wood.made["3b"])
    assert {b.name: b.pinned for b in wood.branches.list()} == {
        "main-4": [],
        "main-3": ["deep"],
        "main-2": [],
        "main": [],
    }


# Renaming


@pytest.mark.parametrize("standing", ["at the tip", "on an earlier turn"])
def test_the_branch_stood_on_is_renamed_with_cursor_head_and_document(wood: Grove, standing: str) -> None:
    if standing != "at the tip":
        wood.stand("2")
    operation = wood.branches.rename("main-4", "login")
    heads = "refs/heads/s1/login"
    assert wood.graph().branch == wood.state().branch == "login"
    assert wood.store.shadow.refs.value("HEAD") == heads
    if standing == "at the tip":
        assert wood.store.shadow.refs.value("refs/snapstore/cursor/s1") == heads
    assert wood.graph().label("login") == "login"
    assert operation.kind == "branch rename"
    assert Operations(wood.store).get(operation.number).refs == operation.refs
    assert_sound(wood)


def test_the_session_goes_on_under_the_new_name(wood: Grove) -> None:
    wood.branches.rename("main-4", "login")
    wood.turn("4d")
    assert wood.graph().branches["login"] == wood.made["4d"]
    assert sorted(wood.listed()) == ["login", "main", "main-2", "main-3"]


def test_a_renamed_branch_that_grew_takes_that_back_with_it(wood: Grove) -> None:
    operation = wood.branches.rename("main-4", "login")
    tip = wood.turn("4d")
    wood.undo_operations(operation)
    assert wood.graph().branches["main-4"] == tip
    assert wood.graph().branch == wood.state().branch == "main-4"
    assert "login" not in wood.listed()
    assert_sound(wood)


BAD_NAMES = ["-rf", "../x", "x.lock", "@{u}", "@", "", ".x", "a b", "a:b", "a/b", "a\nb", "~", "x" * 201, "\udcff\x1b["]
BAD_NAMES += ["5", "007", "#12", "90s", "10m", "2h", "1d", "a" * 40]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_git_or_an_address_could_take_amiss_is_unsafe(wood: Grove, name: str) -> None:
    before = wood.refs()
    for attempt in (
        lambda: wood.branches.rename("main", name),
        lambda: wood.branches.checkpoint(name, wood.made["1"]),
    ):
        with pytest.raises(Unsafe):
            attempt()
    assert wood.refs() == before
    assert Operations(wood.store).next_number() == 1


@pytest.mark.parametrize("name", ["main", "MAIN", "pin", "old"])
def test_a_name_is_one_thing_only(wood: Grove, name: str) -> None:
    """Also where a file system does not tell capitals, and for what is out of the list."""
    wood.branches.checkpoint("pin", wood.made["1"])
    wood.branches.rename("main-2", "old")
    wood.branches.archive("old")
    before = wood.refs()
    with pytest.raises(Usage, match="already"):
        wood.branches.rename("main-3", name)
    if name != "pin":
        with pytest.raises(Usage, match="already"):
            wood.branches.checkpoint(name, wood.made["1"])
    assert wood.refs() == before


# Deleting


def test_a_deleted_branch_is_out_of_every_list_and_lost_to_no_gc(wood: Grove) -> None:
    """S1-50"""
    tip = wood.graph().branches["main-3"]
    operation = wood.branches.delete("main-3")
    assert "main-3" not in wood.listed() + wood.archived()
    assert all_refs(wood.store)[f"refs/snapstore/deleted/s1/{operation.number}/main-3"] == tip.hex()
    assert_sound(wood)


def test_sequence_numbers_and_made_names_are_never_given_again(wood: Grove) -> None:
    """S3-06: the highest number may be on a branch that is gone."""
    wood.stand("1")
    wood.turn("2e")
    highest = wood.graph().by_seq()[-1].seq
    wood.stand("1", branch="main")
    wood.branches.delete("main-5")
    durable.remove(f"{wood.store.state}/sessions/s1.json")  # lost, it is made again from the refs
    wood.turn("2f")
    assert [commit["trailers"]["Seq"] for commit in line(wood.store, "s1")][-1] == str(highest + 1)
    assert "main-6" in wood.listed()
    assert "main-5" not in wood.listed()
    assert_sound(wood)


def test_numbers_stay_taken_after_the_deleted_is_pruned(wood: Grove) -> None:
    wood.stand("1")
    wood.turn("2e")
    highest = wood.graph().by_seq()[-1].seq
    wood.stand("1", branch="main")
    durable.write(f"{wood.store.state}/sessions/s1.json", encode(SessionState(session="s1", branch="main", floor=3)))
    operation = wood.branches.delete("main-5")
    wood.ref(f"refs/snapstore/deleted/s1/{operation.number}/main-5", None)
    del wood.made["2e"]
    wood.turn("2f")
    assert wood.graph().by_seq()[-1].seq == highest + 1


@pytest.mark.parametrize("what", ["delete", "archive"])
def test_the_branch_under_the_cursor_stays(wood: Grove, what: str) -> None:
    before = wood.refs()
    with pytest.raises(Usage, match="you are on branch main-4") as refusal:
        getattr(wood.branches, what)("main-4")
    assert "snapstore switch" in refusal.value.hint
    wood.stand("2")  # still the branch last stood on: redo would follow it
    with pytest.raises(Usage):
        getattr(wood.branches, what)("main-4")
    assert wood.refs().keys() == before.keys()


def test_branches_are_deleted_by_age_and_by_where_they_lie(wood: Grove) -> None:
    """S1-51"""
    wood.ref("refs/heads/s1/part", "3")  # its tip lies on main's line
    wood.clock.now += 40 * 86400
    wood.turn("4d")
    wood.branches.checkpoint("keep", wood.made["4b"])
    going, kept = wood.branches.matching(older_seconds=30 * 86400)
    assert ({b.name for b in going}, {b.name for b in kept}) == ({"main", "main-3", "part"}, {"main-2"})
    going, _ = wood.branches.matching(merged_into="main")
    assert [b.name for b in going] == ["part"]
    assert wood.branches.matching(older_seconds=1e9) == ([], [])
    going, _ = wood.branches.matching(older_seconds=30 * 86400)
    operation = wood.branches.delete_all([b.name for b in going], tips={b.name: b.tip for b in going})
    assert wood.listed() == ["main-2", "main-4"]
    assert_sound(wood)
    wood.undo_operations(operation)
    assert wood.listed() == ["main", "main-2", "main-3", "main-4", "part"]


def test_the_archive_is_swept_only_when_asked(wood: Grove) -> None:
    wood.branches.archive("main-2")
    wood.clock.now += 40 * 86400
    assert "main-2" not in [b.name for b in wood.branches.matching(older_seconds=86400)[0]]
    assert "main-2" in [b.name for b in wood.branches.matching(older_seconds=86400, archived=True)[0]]


def test_a_branch_that_grew_while_a_person_was_asked_is_not_deleted(wood: Grove) -> None:
    with pytest.raises(Conflict, match="has moved since you looked"):
        wood.branches.delete_all(["main-3"], tips={"main-3": wood.made["4c"]})
    assert "main-3" in wood.listed()


def test_what_is_not_there_is_unknown(wood: Grove) -> None:
    for attempt in (
        lambda: wood.branches.delete("nope"),
        lambda: wood.branches.rename("nope", "new"),
        lambda: wood.branches.archive("nope"),
        lambda: wood.branches.unarchive("nope"),
        lambda: wood.branches.promote("nope"),
        lambda: wood.branches.delete_checkpoint("nope"),
    ):
        with pytest.raises(Unknown, match=r"no (branch|checkpoint) 'nope'"):
            attempt()
    with pytest.raises(Usage, match="no branch to delete"):
        wood.branches.delete_all([])


def test_a_sessions_branches_are_its_own(wood: Grove) -> None:
    wood.store.session("s2").begin("x").end()
    wood.store.session("s1").begin("back").end()
    with pytest.raises(Unknown):
        Branches(wood.store.session("s2")).delete("main-3")
    operation = Branches(wood.store.session("s2")).rename("main", "other")
    assert [name for name, _, _ in operation.refs if "/s1/" in name] == []
    assert "main" in wood.listed()


# The archive


def test_archived_and_listed_again(wood: Grove) -> None:
    tip = wood.graph().branches["main-2"]
    wood.branches.archive("main-2")
    assert (wood.archived(), "main-2" in wood.listed()) == (["main-2"], False)
    assert all_refs(wood.store)["refs/snapstore/archive/s1/main-2"] == tip.hex()
    assert_sound(wood)
    with pytest.raises(Usage, match="already"):
        wood.branches.archive("main-2")
    wood.branches.rename("main-2", "attempt")
    assert wood.archived() == ["attempt"]
    wood.branches.unarchive("attempt")
    assert (wood.archived(), wood.graph().branches["attempt"]) == ([], tip)
    with pytest.raises(Usage, match="is not archived"):
        wood.branches.unarchive("attempt")


def test_a_session_that_went_to_an_archived_branch_goes_on_with_it_once_it_is_listed(wood: Grove) -> None:
    wood.branches.archive("main-2")
    wood.stand("4b", branch="main-2")
    assert next((b.name, b.state) for b in wood.branches.list(archived=False)) == ("main-2", "current")
    wood.branches.rename("main-2", "attempt")
    assert wood.state().branch == "attempt"
    with pytest.raises(Usage, match="you are on branch"):
        wood.branches.delete("attempt")
    listed = wood.branches.unarchive("attempt")
    assert wood.store.shadow.refs.value("refs/snapstore/cursor/s1") == "refs/heads/s1/attempt"
    wood.turn("5b")
    assert wood.graph().branches["attempt"] == wood.made["5b"]
    with pytest.raises(Conflict, match="you are on"):
        wood.undo_operations(listed)
    assert_sound(wood)


# Promoting


def test_a_promoted_branch_is_main_and_the_former_one_goes_to_the_archive(wood: Grove) -> None:
    """S1-39, C19: a swap of names; no node, no file and no place to stand changes."""
    tips = wood.graph().branches
    operation = wood.branches.promote("main-4")
    assert operation is not None
    assert wood.graph().branches["main"] == tips["main-4"]
    assert wood.graph().archived == {"archive-main": tips["main"]}
    assert (wood.graph().branch, wood.graph().cursor) == ("main", wood.made["3d"])
    assert wood.state().branch == "main"
    assert wood.branches.previous_main(operation) == "archived branch archive-main"
    assert wood.branches.promote("main") is None
    assert_sound(wood)
    wood.branches.promote("main-3")
    assert wood.graph().branch == "archive-main-2"  # stood on, so it stays in the list
    assert wood.graph().branches["archive-main-2"] == tips["main-4"]
    assert wood.graph().branches["main"] == tips["main-3"]


def test_an_archived_branch_can_be_promoted(wood: Grove) -> None:
    tips = wood.graph().branches
    wood.branches.archive("main")
    wood.branches.archive("main-2")
    wood.branches.promote("main-2")
    assert wood.graph().branches["main"] == tips["main-2"]
    assert wood.graph().archived == {"archive-main": tips["main"]}
    assert_sound(wood)


# Checkpoints


def test_turns_are_marked_listed_and_unmarked(wood: Grove) -> None:
    """S1-55, S3-04"""
    assert wood.branches.checkpoint("good", wood.made["3b"]) is not None
    assert wood.branches.checkpoint("good", wood.made["3b"]) is None
    assert wood.graph().checkpoints == {"good": wood.made["3b"]}
    with pytest.raises(Usage, match="already"):
        wood.branches.checkpoint("good", wood.made["1"])
    moved = wood.branches.checkpoint("good", wood.made["1"], force=True)
    assert moved is not None
    assert wood.graph().checkpoints == {"good": wood.made["1"]}
    wood.undo_operations(moved)
    assert wood.graph().checkpoints == {"good": wood.made["3b"]}
    wood.branches.delete_checkpoint("good")
    assert wood.graph().checkpoints == {}
    assert_sound(wood)


def test_a_checkpoint_is_on_a_node_of_its_session(wood: Grove) -> None:
    wood.store.session("s2").begin("x").end()
    other = wood.store.shadow.refs.read("refs/heads/s2/main")
    assert other is not None
    with pytest.raises(Usage, match="not a node of session s1"):
        wood.branches.checkpoint("good", other)


def test_a_checkpoint_alone_holds_its_turns(wood: Grove) -> None:
    wood.branches.checkpoint("good", wood.made["5c"])
    operation = wood.branches.delete("main-3")
    wood.ref(f"refs/snapstore/deleted/s1/{operation.number}/main-3", None)
    assert_sound(wood)


# The way back


def changes(wood: Grove) -> Iterator[Operation | None]:
    found = wood.branches
    yield found.checkpoint("pin", wood.made["4b"])
    yield found.rename("main-4", "login")
    yield found.archive("main-2")
    yield found.checkpoint("pin", wood.made["1"], force=True)
    yield found.promote("login")
    yield found.rename("main", "trunk")
    yield found.delete_all(["main-3", "archive-main"])
    yield found.unarchive("main-2")
    yield found.promote("main-2")
    yield found.delete_checkpoint("pin")


def test_every_change_can_be_taken_back_one_at_a_time_or_all_at_once(root: Path, tmp_path: Path) -> None:
    for at_once in (False, True):
        folder = tmp_path / f"all-{at_once}"
        folder.mkdir()
        wood = Grove(folder)
        forked(wood)
        states, done = [(wood.refs(), wood.state().branch)], []
        for operation in changes(wood):
            assert operation is not None
            done.append(operation)
            states.append((wood.refs(), wood.state().branch))
        assert [operation.number for operation in done] == list(range(1, 11))
        if at_once:
            wood.undo_operations(*reversed(done))
        while done and not at_once:
            operation = done.pop()
            assert states.pop() == (wood.refs(), wood.state().branch)
            after = wood.branches.undo_operations(operation)[2]
            wood.undo_operations(operation)
            assert wood.graph().branch == after
        assert states[0] == (wood.refs(), wood.state().branch)
        assert_sound(wood)
        wood.close()


def test_no_moment_of_a_change_leaves_a_node_to_a_gc_or_the_cursor_without_its_branch(wood: Grove) -> None:
    def tips(refs: dict[str, object]) -> set[object]:
        return {value for value in refs.values() if isinstance(value, bytes)}

    def now() -> dict[str, object]:
        refs = wood.store.shadow.refs
        names = ["HEAD", *(name for name in refs.list("refs/") if "notes" not in name)]
        return {name: refs.value(name) for name in names}

    before = now()
    for operation in changes(wood):
        assert operation is not None
        for moves in (operation.refs, wood.branches.undo_operations(operation)[0]):
            refs = dict(before)
            for name, old, new in moves:
                assert refs.get(name) == old
                refs[name] = new
                assert tips(before) <= tips(refs) | {oid for oid in tips(before) if _held(wood, oid, tips(refs))}
                for symbolic in ("HEAD", "refs/snapstore/cursor/s1"):
                    target = refs[symbolic]
                    assert not isinstance(target, str) or refs.get(target) is not None, (operation.what, name)
            before = now()


def _held(wood: Grove, oid: object, tips: set[object]) -> bool:
    return any(oid in wood.graph().line(tip) for tip in tips if isinstance(tip, bytes))


def test_what_was_taken_back_can_be_done_again(wood: Grove) -> None:
    for make in (
        lambda: wood.branches.delete("main-3"),
        lambda: wood.branches.checkpoint("pin", wood.made["1"]),
        lambda: wood.branches.promote("main-4"),
    ):
        before = wood.refs()
        operation = make()
        assert operation is not None
        after = wood.refs()
        undone = Operation(
            number=99, session="s1", kind="ops undo", at="", what="", refs=wood.branches.undo_operations(operation)[0]
        )
        wood.undo_operations(operation)
        assert wood.refs() == before
        wood.undo_operations(undone)
        assert wood.refs() == after
        wood.undo_operations(operation)


def test_a_later_change_in_the_way_is_a_conflict(wood: Grove) -> None:
    deleted = wood.branches.delete("main-3")
    wood.branches.rename("main-2", "main-3")
    with pytest.raises(Conflict, match="another branch main-3"):
        wood.undo_operations(deleted)
    renamed = wood.branches.rename("main", "old")
    wood.branches.rename("old", "older")
    with pytest.raises(Conflict, match="branch old no longer exists"):
        wood.undo_operations(renamed)
    pinned = wood.branches.checkpoint("pin", wood.made["1"])
    assert pinned is not None
    wood.branches.checkpoint("pin", wood.made["2"], force=True)
    with pytest.raises(Conflict, match="checkpoint pin has changed"):
        wood.undo_operations(pinned)


def test_a_branch_stood_on_by_now_is_not_sent_to_the_archive(wood: Grove) -> None:
    wood.branches.archive("main-2")
    listed = wood.branches.unarchive("main-2")
    wood.stand("4b", branch="main-2")
    before = wood.refs()
    with pytest.raises(Conflict, match="you are on branch main-2"):
        wood.undo_operations(listed)
    assert wood.refs() == before


def test_a_change_cut_short_is_finished_by_the_next_command(wood: Grove, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change is one journal entry: with a kill after any number of refs, the next opening finishes it."""
    refs = wood.store.shadow.refs
    update = type(refs).update
    for after in range(4):
        done = 0

        def counted(self: object, name: str, old: object, new: object, limit: int = after) -> None:
            nonlocal done
            if done == limit:
                raise SystemExit
            done += 1
            update(self, name, old, new)  # type: ignore[arg-type]

        with monkeypatch.context() as patched:
            patched.setattr(type(refs), "update", counted)
            patched.setattr(type(wood.store.journal), "_undo_failed", lambda *_: None)  # the kill
            with pytest.raises(SystemExit):
                wood.branches.rename("main-4" if after % 2 == 0 else "login", "login" if after % 2 == 0 else "main-4")
        with Store.open(wood.root) as again:
            assert again.recovered is not None
        assert wood.graph().branch == ("login" if after % 2 == 0 else "main-4") == wood.state().branch
        assert len(wood.listed()) == 4
        assert_whole(wood.store)


# The limit


def test_past_the_limit_the_oldest_goes_to_the_archive_with_the_turn(grove: Grove) -> None:
    """C4, S0-48, S0-49, S1-64: warned from 15 on, 20 listed at most, no turn refused, nothing lost."""
    said: list[str] = []
    grove.store.say = said.append
    grove.turns("1", "2")
    for number in range(2, 21):
        grove.fork(f"b{number}")
        warned = [text for text in said if "branches" in text]
        assert bool(warned) == (number >= 15), number
    assert len(grove.listed()) == 20
    grove.branches.checkpoint("pin", grove.made["2"])
    said.clear()
    grove.fork("b21")
    assert len(grove.listed()) == 20
    assert grove.archived() == ["main-2"]  # main is older, but pinned
    assert any("so main-2 was archived" in text and "ops undo 2" in text for text in said)
    grove.fork("b22")
    assert grove.archived() == ["main-2", "main-3"]
    assert grove.graph().branch == "main-22"
    archived = Operations(grove.store).get(3)
    assert (archived.kind, archived.arguments) == ("branch archive", ["main-3"])
    with pytest.raises(Usage, match="20 is the limit"):
        grove.branches.unarchive("main-2")
    grove.branches.unarchive("main-2", force=True)
    assert len(grove.listed()) == 21
    grove.undo_operations(archived)
    assert len(grove.listed()) == 22
    assert_sound(grove)


def test_a_node_made_by_a_move_keeps_its_own_record_past_the_limit(grove: Grove) -> None:
    """A revert off the tip starts a branch too, and brings an operation of its own."""
    session = grove.store.session("s1")
    grove.store.header.max_branches = 2
    grove.turns("1", "2")
    grove.fork("2b")
    session.move(session.plan_undo(1))
    session.move(session.plan_revert("1"))
    assert grove.archived() == ["main"]
    found = {operation.number: operation.kind for operation in Operations(grove.store).newest_first()}
    assert found == {3: "branch archive", 2: "revert", 1: "undo"}
    assert_sound(grove)


def test_the_branch_just_left_is_never_archived(grove: Grove) -> None:
    """S0-05: the undone future is listed."""
    grove.store.header.max_branches = 1
    grove.turns("1", "2")
    grove.stand("1")
    grove.turn("2b")
    assert sorted(grove.listed()) == ["main", "main-2"]
    grove.stand("1")
    grove.turn("2c")
    assert sorted(grove.listed()) == ["main-2", "main-3"]
    assert grove.archived() == ["main"]


def test_no_limit_and_no_warning_when_there_is_none(grove: Grove) -> None:
    """S3-10"""
    said: list[str] = []
    grove.store.say = said.append
    grove.store.header.max_branches = 0
    grove.turn("1")
    for number in range(25):
        grove.fork(f"b{number}")
    assert len(grove.listed()) == 26
    assert said == []


def test_no_turn_fails_because_a_branch_is_damaged(grove: Grove) -> None:
    grove.store.header.max_branches = 2
    grove.turns("1", "2")
    grove.fork("b")
    grove.stand("1")
    path = Path(grove.store.shadow.git_dir) / "refs/heads/s1/broken"
    path.write_text("12" * 20 + "\n")
    grove.turn("c")
    assert "main-3" in grove.listed()
    assert "stays in the list" in (Path(grove.store.folder) / "log/errors").read_text()


def test_five_hundred_branches_are_listed_and_left_quickly(grove: Grove) -> None:
    """A new branch costs about the same with 500 others as with 20."""
    from garden import plant

    grove.store.header.max_branches = 0
    plant(grove.store, 5000, 500)
    grove.graph().nodes  # noqa: B018 - the cache is written once
    start = perf_counter()
    assert len(grove.branches.list()) >= 500
    listing = perf_counter() - start
    grove.made["base"] = grove.graph().line(grove.graph().cursor)[0]
    grove.stand("base")
    start = perf_counter()
    grove.turn("new")
    turning = perf_counter() - start
    assert listing < 2, listing
    assert turning < 2, turning


def test_a_turn_on_a_branch_lists_no_refs(wood: Grove, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the limit costs is paid by new branches only."""
    refs = type(wood.store.shadow.refs)
    listed: list[str] = []
    original = refs.list

    def counted(self: object, prefix: str) -> dict[str, bytes]:
        listed.append(prefix)
        return original(self, prefix)  # type: ignore[arg-type]

    monkeypatch.setattr(refs, "list", counted)
    wood.turn("ordinary")
    assert [prefix for prefix in listed if "heads" in prefix or "deleted" in prefix] == []


def test_refusals_are_of_the_family(wood: Grove) -> None:
    with pytest.raises(SnapstoreError):
        Branches(wood.store.session("nobody")).list()
