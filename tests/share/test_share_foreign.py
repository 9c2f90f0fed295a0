"""P-05: what is of another machine is seen, gone to, continued, compared and applied, and never written to."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import all_refs, assert_equal, git, in_commit, on_disk, write
from machines import Machine, bare

from snapstore.errors import Usage
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import MERGE, Policy


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Machine, Machine]:
    """Ada and Bob each ran `init`, then share one project. Ada's turns are a session of their own at Bob's."""
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(poem="roses\n", same="s\n").remote(hub)
    ada.turn("Add violets", poem="roses\nviolets\n")
    ada.turn("Add a title", title="Poem\n")
    ada.push()
    bob = Machine(tmp_path, "bob").init(poem="roses\n", same="s\n", bobs="b\n")
    bob.turn("Bob's own", own="o\n")
    bob.attach(hub)
    assert "refs/heads/shell@ada/main" in bob.refs()
    return ada, bob


def foreign_tips(machine: Machine) -> dict[str, str]:
    with machine.open() as store:
        return {ref: oid for ref, oid in all_refs(store).items() if ref in store.foreign().refs}


def test_go_there_exactly_with_what_is_on_disk_saved_first(pair: tuple[Machine, Machine]) -> None:
    bob = pair[1]
    write(bob.root / "poem", "by hand\n")
    before, theirs = on_disk(bob.root), foreign_tips(bob)
    moved = bob.snap_json("goto", "--exact", "1", "--session", "shell@ada", "-y", "--json")
    assert moved["snapshot_restored"] and moved["safety_ref"]
    assert on_disk(bob.root) == {b"poem": (b"100644", b"roses\nviolets\n"), b"same": (b"100644", b"s\n")}
    with bob.open() as store:
        assert_equal(store, moved["safety"], before)
        assert store.active_session() == "shell@ada"
    assert foreign_tips(bob) == theirs
    bob.snap("ops", "undo", "-y")
    assert on_disk(bob.root) == before
    bob.whole()


def test_to_their_newest_and_on_from_there_on_a_branch_of_ones_own(pair: tuple[Machine, Machine]) -> None:
    ada, bob = pair
    theirs = foreign_tips(bob)
    bob.snap("goto", "--exact", "@", "--session", "shell@ada", "-y")
    assert on_disk(bob.root) == on_disk(ada.root)
    bob.turn("Bob goes on", session="shell@ada", title="Poem, by Bob\n")
    assert foreign_tips(bob) == theirs
    with bob.open() as store:
        graph = Graph(store, "shell@ada")
        assert graph.branch == "main-2" and graph.owner_of("main-2") is None
        assert (graph.owner_of("main") or {})["name"] == "ada"
        assert [node.turn for node in graph.upwards(graph.cursor) if node.turn] == [3, 2, 1]
    bob.push()
    ada.pull()
    # What Bob added to Ada's session is in Ada's session.
    assert ada.refs()["refs/heads/shell/main-2"] == bob.refs()["refs/heads/shell@ada/main-2"]
    bob.snap("undo", "-y")
    assert bob.read("title") == "Poem\n"
    bob.snap("redo", "-y")
    assert bob.read("title") == "Poem, by Bob\n"
    moved = ada.snap_json("goto", "--exact", "heads/main-2", "-y", "--json")
    assert moved["to"]["branch"] == "main-2" and ada.read("title") == "Poem, by Bob\n"
    ada.turn("Ada goes on from Bob's", title="Poem, by both\n")
    assert ada.refs()["refs/heads/shell/main-2"] == bob.refs()["refs/heads/shell@ada/main-2"]
    assert "refs/heads/shell/main-3" in ada.refs()


def test_a_pull_moves_their_branch_and_not_the_one_who_stands_on_it(pair: tuple[Machine, Machine]) -> None:
    ada, bob = pair
    bob.snap("goto", "--exact", "@", "--session", "shell@ada", "-y")
    before = on_disk(bob.root)
    with bob.open() as store:
        stood = store.shadow.refs.read("refs/snapstore/cursor/shell@ada")
        # However it came to be, a cursor on their branch stays where the files are.
        store.shadow.refs.update("refs/snapstore/cursor/shell@ada", stood, "refs/heads/shell@ada/main")
    ada.turn("Ada goes on", title="Poem!\n")
    ada.push()
    bob.pull()
    with bob.open() as store:
        assert store.shadow.refs.value("refs/snapstore/cursor/shell@ada") == stood
        assert on_disk(bob.root) == before
    bob.turn("Bob too", session="shell@ada", b="b\n")
    assert bob.refs()["refs/heads/shell@ada/main"] == ada.refs()["refs/heads/shell/main"]
    bob.snap("undo", "-y", "--session", "shell@ada")
    assert on_disk(bob.root) == before


def test_a_cursor_that_was_put_on_their_branch_still_does_not_advance_it(pair: tuple[Machine, Machine]) -> None:
    bob = pair[1]
    bob.snap("goto", "--exact", "@", "--session", "shell@ada", "-y")
    theirs = foreign_tips(bob)
    with bob.open() as store:
        stood = store.shadow.refs.read("refs/snapstore/cursor/shell@ada")
        store.shadow.refs.update("refs/snapstore/cursor/shell@ada", stood, "refs/heads/shell@ada/main")
    bob.turn("Bob's", session="shell@ada", b="b\n")
    assert foreign_tips(bob) == theirs
    bob.whole()


def test_a_single_turn_of_theirs_is_applied_three_ways(pair: tuple[Machine, Machine]) -> None:
    ada, bob = pair
    write(bob.root / "poem", "A poem\nroses\n")
    theirs = foreign_tips(bob)
    answer = bob.snap_json("apply", "shell@ada/main:1", "--json")
    assert bob.read("poem") == "A poem\nroses\nviolets\n"
    assert not (bob.root / "title").exists() and bob.read("own") == "o\n"
    assert answer["to"]["kind"] == "apply" and answer["to"]["session"] == "shell"
    assert foreign_tips(bob) == theirs
    bob.snap("undo", "-y")
    assert bob.read("poem") == "A poem\nroses\n"
    # By its hash too; where both changed the same lines nothing is written.
    write(bob.root / "poem", "thistles\n")
    commit = ada.snap_json("log", "--json")["nodes"][1]["commit"]
    assert bob.snap_json("apply", commit[:12], "--json", status=10)["error"] == "conflict"
    assert bob.read("poem") == "thistles\n"


def test_compare_diff_and_show_take_their_nodes(pair: tuple[Machine, Machine]) -> None:
    bob = pair[1]
    assert "+violets" in bob.snap("diff", "0", "shell@ada/main").stdout
    assert "Add a title" in bob.snap("show", "shell@ada/main").stdout
    bob.snap("goto", "--exact", "1", "--session", "shell@ada", "-y")
    bob.turn("Another title", session="shell@ada", title="Verse\n")
    compared = bob.snap_json("compare", "main", "main-2", "--session", "shell@ada", "--json")
    assert compared["parted_at"]["turn"] == 1
    assert [row["path"] for row in compared["files"]] == ["title"]
    # Two sessions without a common root share no turn: said, not guessed.
    assert bob.snap_json("compare", "main", "shell@ada/main", "--session", "shell", "--json", status=2)


@pytest.mark.parametrize(
    "words",
    [["undo"], ["redo"], ["goto", "1"], ["earlier"], ["revert", "1"], ["goto", "--exact", "1", "--files-only"]],
)
def test_nothing_else_moves_in_a_session_where_nobody_stands(pair: tuple[Machine, Machine], words: list[str]) -> None:
    bob = pair[1]
    before, refs = on_disk(bob.root), bob.refs("refs/")
    error = bob.snap_json(*words, "--session", "shell@ada", "-y", "--json", status=2)
    assert "ada" in error["message"] and "goto --exact" in error["hint"]
    assert on_disk(bob.root) == before and bob.refs("refs/") == refs


@pytest.mark.parametrize(
    "words",
    [
        ["branch", "rename", "main", "mine"],
        ["branch", "delete", "main", "-y"],
        ["branch", "archive", "main"],
        ["branch", "promote", "main"],
    ],
)
def test_their_branches_are_not_arranged_here(tmp_path: Path, pair: tuple[Machine, Machine], words: list[str]) -> None:
    bob = pair[1]
    bob.snap("goto", "--exact", "@", "--session", "shell@ada", "-y")
    bob.turn("Bob's", session="shell@ada", b="b\n")
    before = foreign_tips(bob)
    if words[1] != "promote":
        error = bob.snap_json(*words, "--session", "shell@ada", "--json", status=2)
        assert "belongs to ada" in error["message"]
    bob.snap("branch", "promote", "main-2", "--session", "shell@ada", status=2)
    assert foreign_tips(bob) == before


def test_their_branches_do_not_count_against_the_limit(tmp_path: Path) -> None:
    """S1-64, C4: the limit is on one's own; a line of another machine is neither counted nor archived."""
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(hub)
    ada.turn("First", f="1\n")
    for number in range(4):
        ada.snap("undo", "-y")
        ada.turn(f"Way {number}", f=f"{number}\n")
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.snap("config", "set", "max_branches", "2")
    theirs = foreign_tips(bob)
    assert len(theirs) == 5
    for number in range(4):
        bob.turn(f"Bob {number}", b=f"{number}\n")
        bob.snap("undo", "-y")
    listed = {ref for ref in bob.refs() if ref not in theirs}
    assert len(listed) == 2 and foreign_tips(bob) == theirs
    assert len(bob.refs("refs/snapstore/archive/")) == 2
    bob.push()
    ada.pull()
    assert {f"Bob {number}" for number in range(4)} <= ada.prompts()


def test_a_first_turn_in_a_session_of_theirs_goes_on_from_their_newest(tmp_path: Path) -> None:
    """Bob never went to Ada's `notes` and records in a session called so: it stays one tree, with a way to every turn.
    A pull in the middle of his turn moves nothing under it."""
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(hub)
    ada.turn("Ada's note", session="notes", f="1\n")
    ada.turn("Later", f="2\n")
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    with bob.open() as store:
        assert store.shadow.refs.value("refs/snapstore/cursor/notes") is None
        theirs = store.shadow.refs.read("refs/heads/notes/main")
        store.session("notes").begin("Bob's note")
    before = on_disk(bob.root)
    ada.turn("Meanwhile", session="notes", f="3\n")
    ada.push()
    bob.pull()
    write(bob.root / "g", "1\n")
    with bob.open() as store:
        store.session("notes").end()
        line = git(store.shadow.git_dir, "rev-list", "refs/heads/notes/main-2").decode().split()
        assert theirs is not None and theirs.hex() in line
        graph = Graph(store, "notes")
        assert len([node for node in graph.nodes.values() if node.parent is None]) == 1
    assert bob.push().refs["refs/heads/notes/main-2"] == "refs/heads/notes/main-2"
    ada.pull()
    assert {"refs/heads/notes/main", "refs/heads/notes/main-2"} <= set(ada.refs())
    bob.snap("undo", "-y", "--session", "notes")
    assert on_disk(bob.root) == before
    bob.snap("redo", "--session", "notes")
    bob.snap("compare", "main", "main-2", "--session", "notes")
    bob.snap("goto", "--exact", "main", "-y", "--session", "notes")
    assert on_disk(bob.root) == on_disk(ada.root)
    bob.snap("earlier", "1", "--exact", "-y", "--session", "notes")
    for machine in (ada, bob):
        machine.whole()


def test_a_merge_with_theirs_leaves_the_recording_sound(pair: tuple[Machine, Machine]) -> None:
    bob = pair[1]
    with bob.open() as store:
        session = store.session("shell")
        plan = session.plan_apply("shell@ada/main:2", policy=Policy(MERGE))
        session.move(plan)
        tip = store.shadow.refs.read("refs/heads/shell/main")
        assert tip is not None and in_commit(store, tip)[b"title"] == (b"100644", b"Poem\n")
        with pytest.raises(Usage):
            store.session("shell@ada").plan_undo()
    bob.whole()


def test_a_number_that_two_machines_gave_means_ours_where_that_can_be_told(tmp_path: Path) -> None:
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n")
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Bob's second", b="b\n")
    ada.turn("Ada's second", a="a\n")
    ada.push()
    bob.push()
    for machine in (ada, bob):
        machine.pull()
        assert machine.snap_json("show", "#2", "--json")["prompt"] == f"{machine.name.capitalize()}'s second"
    cy = Machine(tmp_path, "cy")
    cy.clone(hub)
    cy.snap("goto", "--exact", "1", "--session", "shell", "-y")
    cy.snap("show", "#1")


def test_the_page_knows_sessions_of_others(pair: tuple[Machine, Machine]) -> None:
    from snapstore.web.project import named

    with pair[1].open() as store:
        assert named(store, "shell@ada").name == "shell@ada"


def test_what_was_pruned_here_does_not_come_back_as_anothers(tmp_path: Path) -> None:
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n")
    ada.turn("Two", f="2\n")
    ada.push()
    ada.snap("undo", "-y")
    ada.turn("Another way", f="3\n")
    ada.snap("branch", "archive", "main")
    ada.push()
    ada.snap("prune", "--older", "0")
    ada.snap("gc", "--grace", "0")
    pulled = ada.pull()
    assert (pulled.updates, pulled.gone) == ([], [])
    assert set(ada.refs()) == {"refs/heads/shell/main-2"} and not ada.refs("refs/snapstore/archive/")
    ada.whole()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    assert "Two" in bob.prompts(), "what was shared is not taken from others"
    bob.turn("Bob's", f="4\n")
    bob.push()
    ada.pull()
    assert "Bob's" in ada.prompts()
