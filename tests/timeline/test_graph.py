"""A session's tree as data: lines, forks, what is undone, earlier and later; small ones, and one of thousands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from garden import Garden, forked, plant
from helpers import git

from snapstore.errors import Corrupt, Unknown
from snapstore.git.objects import commits
from snapstore.git.objects.ids import COMMIT
from snapstore.git.repository import SNAPSTORE
from snapstore.timeline.history.graph import Graph, is_generated


@pytest.fixture
def garden(root: Path) -> Iterator[Garden]:
    grown = Garden(root)
    yield grown
    grown.close()


# Lines and forks


def test_a_new_turn_after_an_undo_is_a_sibling_and_the_old_future_stays(garden: Garden) -> None:
    """S3-02, S3-07, S3-10, C9: one root; a parent with two children; nothing is lost."""
    graph = forked(garden).graph()
    made = garden.made
    assert graph.nodes.keys() == set(made.values())
    assert [node.oid for node in graph.nodes.values() if node.parent is None] == [made["root"]]
    assert garden.names(graph.children[made["2"]]) == ["3", "3b", "3d"]
    assert garden.names(graph.children[made["3b"]]) == ["4b", "4c"]
    assert graph.branches == {"main": made["4"], "main-2": made["4b"], "main-3": made["5c"], "main-4": made["3d"]}
    assert garden.names(graph.line(made["5c"])) == ["root", "1", "2", "3b", "4c", "5c"]


def test_a_node_carries_its_time_its_number_and_its_sequence(garden: Garden) -> None:
    """S3-01, S3-05, S3-06."""
    garden.turns("1")
    garden.edit("mine")
    garden.turns("2")
    graph = garden.graph()
    found = [(node.seq, node.turn, node.kind, node.subject, node.agent) for node in graph.by_seq()]
    assert found == [
        (0, None, "baseline", graph.by_seq()[0].subject, ""),
        (1, 1, "turn", "1", "claude"),
        (2, None, "edits", graph.by_seq()[2].subject, ""),
        (3, 2, "turn", "2", "claude"),
    ]
    assert [node.seconds for node in graph.by_seq()] == [1_700_000_000 + at for at in (0, 60, 120, 120)]
    commit = garden.store.shadow.commit(graph.cursor)
    assert (graph.nodes[graph.cursor].tree, graph.nodes[graph.cursor].parent) == (commit.tree, commit.parents[0])


def test_a_session_has_one_cursor_and_knows_the_branch_it_last_stood_on(garden: Garden) -> None:
    """S3-03, S3-09."""
    garden.turns("1", "2", "3")
    graph = garden.graph()
    assert (graph.cursor, graph.cursor_value, graph.branch) == (garden.made["3"], "refs/heads/s1/main", "main")
    assert graph.undone() == []
    garden.stand("1")
    graph = garden.graph()
    assert (graph.cursor, graph.cursor_value, graph.branch) == (garden.made["1"], garden.made["1"], "main")
    assert garden.names(graph.line(graph.tip)) == ["root", "1", "2", "3"]
    assert garden.names(graph.undone()) == ["2", "3"]


def test_redo_goes_along_the_branch_last_stood_on(garden: Garden) -> None:
    """S3-08, S3-13, C9: the last-used child is preferred, and the older ones are still there."""
    forked(garden)
    garden.stand("root")
    assert garden.names(garden.graph().undone()) == ["1", "2", "3d"]
    garden.stand("root", branch="main-2")
    assert garden.names(garden.graph().undone()) == ["1", "2", "3b", "4b"]


def test_a_cursor_off_its_branch_has_no_way_forward(garden: Garden) -> None:
    forked(garden)
    garden.stand("4", branch="main-2")
    assert garden.graph().undone() == []
    garden.stand("4", branch="gone")
    graph = garden.graph()
    assert (graph.tip, graph.undone()) == (garden.made["4"], [])


@pytest.mark.parametrize(
    ("a", "b", "fork", "left", "entered"),
    [
        ("4", "4", "4", [], []),
        ("4", "2", "2", ["4", "3"], []),
        ("1", "4", "1", [], ["2", "3", "4"]),
        ("5c", "4", "2", ["5c", "4c", "3b"], ["3", "4"]),
        ("4b", "5c", "3b", ["4b"], ["4c", "5c"]),
        ("3d", "root", "root", ["3d", "2", "1"], []),
    ],
)
def test_the_way_between_two_nodes(
    garden: Garden, a: str, b: str, fork: str, left: list[str], entered: list[str]
) -> None:
    graph = forked(garden).graph()
    made = garden.made
    assert garden.name(graph.fork_point(made[a], made[b])) == fork
    assert [garden.names(part) for part in graph.path(made[a], made[b])] == [left, entered]


def test_a_step_reads_no_more_than_its_neighbourhood(garden: Garden) -> None:
    """Undo of one turn costs the same whatever came before it."""
    plant(garden.store, 300, 1)
    graph = garden.graph()
    parent = graph.node(graph.cursor).parent
    assert parent is not None
    assert graph.path(graph.cursor, parent) == ([graph.cursor], [])
    assert graph.undone() == []
    assert len(graph._read) <= 4


def test_the_turn_a_node_belongs_to(garden: Garden) -> None:
    """C8: the root is 0; an edit belongs to the turn before it."""
    garden.turns("1")
    garden.edit("mine")
    garden.turns("2")
    graph = garden.graph()
    assert [graph.turn_of(node.oid) for node in graph.by_seq()] == [0, 1, 1, 2]


# Branches


def test_the_branch_to_stand_on_at_a_node(garden: Garden) -> None:
    graph = forked(garden).graph()
    homes = {name: graph.branch_of(oid) for name, oid in garden.made.items()}
    assert homes == {
        **dict.fromkeys(("root", "1", "2", "3d"), "main-4"),
        **dict.fromkeys(("3b", "4c", "5c"), "main-3"),
        "4b": "main-2",
        **dict.fromkeys(("3", "4"), "main"),
    }
    garden.stand("2", branch="main")
    assert garden.graph().branch_of(garden.made["2"]) == "main"
    garden.archive("main-3")
    assert garden.graph().branch_of(garden.made["3b"]) == "main-2"
    assert garden.graph().branch_of(garden.made["5c"]) == "main-3"


def test_a_branch_is_called_after_the_turn_it_parted_at_until_it_is_renamed(garden: Garden) -> None:
    """S1-38: alone it has nothing to be told from."""
    garden.turns("1")
    assert garden.graph().label("main") == "main"
    garden.stand("root")
    garden.turns("1b")
    graph = garden.graph()
    assert (graph.label("main"), graph.label("main-2")) == ("Branch from turn 0", "main-2")
    garden.ref("refs/heads/s1/faster", "1")
    garden.ref("refs/heads/s1/main", None)
    assert garden.graph().label("faster") == "faster"


def test_labels_of_a_branch_of_a_branch(garden: Garden) -> None:
    """S1-43, S1-38."""
    graph = forked(garden).graph()
    assert {name: graph.label(name) for name in graph.branches} == {
        "main": "Branch from turn 2",
        "main-2": "Branch from turn 3",
        "main-3": "Branch from turn 3",
        "main-4": "main-4",
    }
    garden.archive("main-2")
    assert garden.graph().label("main-2") == "Branch from turn 3"


def test_which_names_are_made() -> None:
    made = ["main", "main-2", "main-31"]
    others = ["main-1", "main-", "main-x", "mainly", "x", "main-2-3"]
    assert [name for name in [*made, *others] if is_generated(name)] == made


def test_what_only_a_checkpoint_or_the_archive_holds_is_in_the_tree(garden: Garden) -> None:
    """S3-04: a node can carry a name, and the name keeps it."""
    forked(garden)
    garden.checkpoint("good", "4b")
    garden.checkpoint("also", "4b")
    garden.archive("main")
    garden.ref("refs/heads/s1/main-2", None)
    graph = garden.graph()
    assert graph.nodes.keys() == set(garden.made.values())
    assert graph.archived == {"main": garden.made["4"]}
    assert graph.pinned == {garden.made["4b"]: ["also", "good"]}
    assert graph.branch_of(garden.made["4b"]) is None


def test_tags_and_commits_that_someone_made_with_git(garden: Garden) -> None:
    """An annotated tag leads to its commit; one on a tree is not ours; a commit of theirs has no number."""
    garden.turns("1", "2")
    git_dir = garden.store.shadow.git_dir
    git(git_dir, "tag", "-a", "-m", "a note", "s1/noted", garden.made["1"].hex())
    git(git_dir, "tag", "-a", "-m", "a note", "s1/twice", "s1/noted")
    git(git_dir, "tag", "s1/tree", f"{garden.made['1'].hex()}^{{tree}}")
    tree = garden.graph().node(garden.made["2"]).tree.hex()
    foreign = git(git_dir, "commit-tree", "-p", garden.made["2"].hex(), "-m", "By hand", tree).decode().strip()
    git(git_dir, "update-ref", "refs/heads/s1/theirs", foreign)
    graph = garden.graph()
    assert graph.checkpoints == {"noted": garden.made["1"], "twice": garden.made["1"]}
    assert graph.node(bytes.fromhex(foreign)).seq == 2
    last = graph.by_seq()[-1]
    assert (last.oid.hex(), last.seq, last.turn, last.subject) == (foreign, 2, None, "By hand")


def test_numbers_that_nobody_can_read_are_none(garden: Garden) -> None:
    """Nor are times that no calendar has."""
    garden.turns("1")
    text = commits.message("x", [], {"Kind": "turn", "Session": "s1", "Turn": "9" * 5000, "Seq": "-3"})
    data = commits.encode(
        garden.graph().node(garden.cursor()).tree, [garden.cursor()], SNAPSTORE, SNAPSTORE, 9**30, text
    )
    writer = garden.store.shadow.objects.writer()
    oid = writer.add(COMMIT, data)
    garden.store.shadow.objects.finish(writer)
    garden.ref("refs/heads/s1/odd", oid)
    node = garden.graph().nodes[oid]
    assert (node.seq, node.turn, node.seconds) == (1, None, 253_402_300_799)


def test_no_session_and_no_common_root_are_named(garden: Garden) -> None:
    with pytest.raises(Unknown, match="no session 's2'") as caught:
        Graph(garden.store, "s2")
    assert "s1" in caught.value.hint
    tree = garden.graph().node(garden.cursor()).tree.hex()
    other = bytes.fromhex(git(garden.store.shadow.git_dir, "commit-tree", "-m", "x", tree).decode().strip())
    with pytest.raises(Corrupt, match="no common root"):
        garden.graph().fork_point(garden.cursor(), other)


# Time


def test_earlier_and_later_reach_every_node_across_branches(garden: Garden) -> None:
    """S3-14, S3-15, S3-34."""
    forked(garden)
    seen = [garden.name(garden.cursor())]
    while (node := garden.graph().earlier(1)) is not None:
        seen.append(garden.name(node.oid))
        garden.stand(seen[-1])
    assert seen == ["3d", "5c", "4c", "4b", "3b", "4", "3", "2", "1", "root"]
    back = []
    while (node := garden.graph().later(1)) is not None:
        back.append(garden.name(node.oid))
        garden.stand(back[-1])
    assert back == seen[-2::-1]
    assert garden.graph().later(1) is None
    found = [garden.graph().earlier(count) for count in (3, 9, 10, 1000)]
    assert [garden.name(node and node.oid) for node in found] == ["4b", "root", "root", "root"]
    garden.stand("root")
    found = [garden.graph().later(count) for count in (2, 1000)]
    assert [garden.name(node and node.oid) for node in found] == ["2", "3d"]


def test_earlier_and_later_by_time_are_measured_from_the_current_node(garden: Garden) -> None:
    """S3-16, S3-17: turns are a minute apart, and 10 minutes before the last."""
    garden.turns("1", "2", "3")
    garden.turn("4", minutes=10)
    garden.turn("5", minutes=1)

    def earlier(seconds: float) -> str:
        return garden.name((node := garden.graph().earlier(seconds=seconds)) and node.oid)

    def later(seconds: float) -> str:
        return garden.name((node := garden.graph().later(seconds=seconds)) and node.oid)

    assert [earlier(s) for s in (1, 60, 61, 660, 661, 90000)] == ["4", "4", "3", "3", "2", "root"]
    assert later(10) == "none"
    garden.stand("3")
    assert [earlier(s) for s in (60, 61, 120)] == ["2", "1", "1"]
    assert [later(s) for s in (599, 600, 660, 90000)] == ["none", "4", "5", "5"]
    garden.stand("root")
    assert [earlier(60), later(120)] == ["none", "2"]


def test_a_clock_that_goes_backwards_does_not_break_the_order(garden: Garden) -> None:
    """S3-06, S3-34: the sequence decides what is earlier."""
    garden.turns("1", "2")
    garden.turn("3", minutes=-60)
    garden.turn("4", minutes=1)
    assert garden.names([node.oid for node in garden.graph().by_seq()]) == ["root", "1", "2", "3", "4"]
    assert garden.name(garden.graph().earlier(1).oid) == "3"  # type: ignore[union-attr]
    assert garden.name(garden.graph().earlier(seconds=120).oid) == "root"  # type: ignore[union-attr]
    garden.stand("2")
    assert garden.name(garden.graph().later(seconds=0).oid) == "4"  # type: ignore[union-attr]


# Thousands


def test_a_tree_of_thousands_of_nodes(garden: Garden) -> None:
    """S3-30, S3-32, S3-10: no recursion, nothing that grows with branches times nodes."""
    tips = plant(garden.store, 6000, 300)
    graph = garden.graph()
    assert len(graph.nodes) == 6001
    assert set(graph.branches.values()) == set(tips)
    assert {graph.branch_of(oid) for oid in graph.nodes} == set(graph.branches)
    assert all(graph.label(name).startswith("Branch from turn") for name in graph.branches if name != "main")
    first, last = graph.branches["main"], graph.branches["main-300"]
    left, entered = graph.path(first, last)
    assert graph.line(last)[-len(entered) :] == entered
    assert graph.line(first)[-len(left) :] == left[::-1]


def test_a_line_of_thousands_of_nodes(garden: Garden) -> None:
    (tip,) = plant(garden.store, 5000, 1)
    graph = garden.graph()
    assert graph.turn_of(tip) == 5000
    assert len(graph.line(graph.tip)) == 5001


# The cache


def everything(graph: Graph) -> list[tuple[object, ...]]:
    return [tuple(getattr(node, name) for name in node.__slots__) for node in graph.nodes.values()]


def test_what_commits_say_is_kept_and_never_decides_anything(garden: Garden) -> None:
    """Damaged, cut short, of another program, or unwritable: the tree is the same."""
    plant(garden.store, 500, 10)
    cold = everything(garden.graph())
    path = Path(garden.store.state, "graph-s1")
    good = path.read_bytes()
    assert everything(garden.graph()) == cold
    for bad in (b"", b"x", good[:-1], good[:40], good.replace(b"change", b"chance", 1), b"y" + good[1:]):
        path.write_bytes(bad)
        assert everything(garden.graph()) == cold
        assert path.read_bytes() == good
    path.unlink()
    path.mkdir()
    assert everything(garden.graph()) == cold
    assert not list(Path(garden.store.state).glob("graph-s1.*"))


def test_a_small_tree_needs_no_cache_and_a_grown_one_goes_on(garden: Garden) -> None:
    garden.turns("1", "2")
    assert len(garden.graph().nodes) == 3
    assert not Path(garden.store.state, "graph-s1").exists()
    plant(garden.store, 300, 3)
    assert len(garden.graph().nodes) == 303
    garden.turns("after")
    graph = garden.graph()
    assert (len(graph.nodes), graph.nodes[graph.cursor].subject) == (304, "after")
