"""What a node may be called, and what happens to what it may not be called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import snap, snap_json
from garden import Garden, forked, plant

from snapstore.errors import Unknown
from snapstore.timeline.history.addresses import locate, resolve
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History

HOSTILE = [
    "",
    " ",
    "-rf",
    "--force",
    "../x",
    "../../HEAD",
    "/etc/passwd",
    "@{u}",
    "@{-1}",
    "@@",
    "@:1",
    "HEAD",
    "HEAD~1",
    "main^",
    "main..main-2",
    ":/1",
    ":5",
    ":",
    "main:",
    "main:-1",
    "main:x",
    "main:5:5",
    "#",
    "#-1",
    "#x",
    "##1",
    "x.lock",
    "refs/heads/s1/main",
    "heads/",
    "tags/../heads",
    "heads/../main",
    "$(touch x)",
    "`touch x`",
    "a\x1b[31mb",
    "main\0",
    "ma\nin",
    "a" * 10_000,
    "1" * 10_000,
    "#" + "1" * 10_000,
    "main:" + "1" * 10_000,
    "٣",
    "#٣",
    "main:٣",
    "²",
    "+1",
    "1.0",
    "1e9",
    "1_0",
    "0x1",
    "10x",
    "caf\udce9",
    "s2/main",
    "s1/5",
    "s1/",
    "/main",
    "abc",
    "ffffffff",
    "f" * 41,
    "MAIN",
]


@pytest.fixture
def garden(root: Path) -> Iterator[Garden]:
    grown = forked(Garden(root))
    yield grown
    grown.close()


def test_turns_by_number_are_those_of_the_current_line(garden: Garden) -> None:
    """C8: a node is the state after its turn, the root is 0."""
    assert [garden.name(resolve(garden.graph(), text)) for text in ("0", "1", "2", "3", "03")] == [
        *("root", "1", "2", "3d", "3d")
    ]
    garden.stand("1", branch="main-3")
    found = [garden.name(resolve(garden.graph(), text)) for text in ("0", "1", "3", "4", "5")]
    assert found == ["root", "1", "3b", "4c", "5c"]


def test_0_is_where_the_first_turn_started_from(root: Path) -> None:
    """Also when the user went on editing between the first snapshot and the first turn."""
    garden = Garden(root)
    assert resolve(garden.graph(), "0") == garden.made["root"]
    garden.edit("mine")
    garden.turns("1")
    graph = garden.graph()
    before = resolve(graph, "0")
    assert before == graph.node(garden.made["1"]).parent != garden.made["root"]
    assert graph.node(before).kind == "edits"
    assert resolve(graph, "main:0") == before
    garden.close()


def test_sequence_numbers_reach_every_node_of_the_session(garden: Garden) -> None:
    """S3-06."""
    graph = garden.graph()
    found = [garden.name(resolve(graph, f"#{number}")) for number in range(10)]
    assert found == ["root", "1", "2", "3", "4", "3b", "4b", "4c", "5c", "3d"]
    with pytest.raises(Unknown, match="no #10") as caught:
        resolve(graph, "#10")
    assert "#9" in caught.value.hint


def test_names_are_branches_and_checkpoints(garden: Garden) -> None:
    """S3-04: a name pinned to a node finds it."""
    garden.checkpoint("good", "4b")
    garden.archive("main-2")
    graph = garden.graph()
    expected = {
        "main": ("4", "main"),
        "main-2": ("4b", "main-2"),  # archived, and whole
        "main-3": ("5c", "main-3"),
        "good": ("4b", None),
        "@": ("3d", None),
        "main:0": ("root", "main"),
        "main:3": ("3", "main"),
        "main-2:3": ("3b", "main-2"),
        "good:3": ("3b", None),
        "heads/main": ("4", "main"),
        "heads/main-2:4": ("4b", "main-2"),
        "tags/good": ("4b", None),
        "s1/main": ("4", "main"),
        "s1/main:3": ("3", "main"),
    }
    for address, (name, branch) in expected.items():
        oid, found = locate(graph, address)
        assert (garden.name(oid), found) == (name, branch), address


def test_a_listed_branch_comes_before_an_archived_one(garden: Garden) -> None:
    garden.archive("main")
    garden.ref("refs/heads/s1/main", "3b")
    assert garden.name(resolve(garden.graph(), "main")) == "3b"


def test_a_name_that_is_two_things_is_refused_until_it_is_said_exactly(garden: Garden) -> None:
    garden.checkpoint("main", "3b")
    graph = garden.graph()
    for address in ("main", "main:1"):
        with pytest.raises(Unknown, match="both a branch and a checkpoint") as caught:
            resolve(graph, address)
        assert "`heads/main`" in caught.value.hint
        assert "`tags/main`" in caught.value.hint
    found = [garden.name(resolve(graph, text)) for text in ("heads/main", "tags/main", "heads/main:4", "tags/main:3")]
    assert found == ["4", "3b", "4", "3b"]
    garden.checkpoint("main", "4")
    assert garden.name(resolve(garden.graph(), "main")) == "4"  # both mean the same


def test_a_number_is_a_turn_even_when_a_branch_has_that_name(garden: Garden) -> None:
    garden.ref("refs/heads/s1/2", "4")
    garden.ref("refs/heads/s1/77", "4")
    graph = garden.graph()
    assert [garden.name(resolve(graph, text)) for text in ("2", "heads/2", "heads/77")] == ["2", "4", "4"]
    with pytest.raises(Unknown, match="no turn 77"):
        resolve(graph, "77")


def test_another_sessions_branches_are_reached_by_its_name(garden: Garden) -> None:
    other = garden.store.session("s2")
    for prompt in ("a", "b"):
        with other.turn(prompt):
            (garden.root / "file").write_text(prompt)
    graph, theirs = garden.graph(), Graph(garden.store, "s2")
    assert locate(graph, "s2/main") == (theirs.tip, None)
    assert resolve(graph, "s2/main:1") == resolve(theirs, "1")
    assert resolve(graph, "s2/main:0") == resolve(theirs, "0")
    assert resolve(graph, theirs.tip.hex()[:12]) == theirs.tip
    for address in ("s2/nothing", "s2/1", "s2/", "s3/main"):
        with pytest.raises(Unknown):
            resolve(graph, address)
    with pytest.raises(Unknown, match="no turn 9 on s2/main: the last is turn 2"):
        resolve(graph, "s2/main:9")


def test_a_hash_or_enough_of_it_finds_any_commit(garden: Garden) -> None:
    graph = garden.graph()
    for oid in garden.made.values():
        for text in (oid.hex(), oid.hex()[:10], oid.hex()[:10].upper()):
            assert resolve(graph, text) == oid
    garden.ref("refs/snapstore/safety/s1/1", garden.made["4b"])
    garden.ref("refs/heads/s1/main-2", None)
    assert resolve(garden.graph(), garden.made["4b"].hex()[:10]) == garden.made["4b"]
    tree = graph.node(garden.made["1"]).tree.hex()
    with pytest.raises(Unknown):
        resolve(garden.graph(), tree)
    note = garden.store.shadow.refs.read("refs/notes/turns")
    assert note is not None
    with pytest.raises(Unknown):
        resolve(garden.graph(), note.hex())


def test_a_hash_that_begins_several_commits_is_refused_and_turns_go_before_hashes(root: Path) -> None:
    garden = Garden(root)
    plant(garden.store, 3000, 30)
    graph = garden.graph()
    begins: dict[str, int] = {}
    for oid in graph.nodes:
        begins[oid.hex()[:4]] = begins.get(oid.hex()[:4], 0) + 1
    several = next(text for text, count in begins.items() if count > 1 and not text.isdecimal())
    with pytest.raises(Unknown, match=f"{several} is the beginning of {begins[several]} commits") as caught:
        resolve(graph, several)
    assert several in caught.value.hint
    digits = next(oid for oid in graph.nodes if oid.hex()[:6].isdecimal() and int(oid.hex()[:6]) > 3000)
    assert resolve(graph, digits.hex()[:6]) == digits
    garden.close()


@pytest.mark.parametrize(
    ("address", "message", "hint"),
    [
        ("9", "no turn 9 on this line: the last is turn 3", "snapstore log"),
        ("main:9", "no turn 9 on main: the last is turn 4", "snapstore log"),
        ("main-9", "no 'main-9'", "Did you mean `main-4`"),
        ("man", "no 'man'", "`main`"),
        ("goood", "no 'goood'", "`good`"),
        ("zzz", "no 'zzz'", "snapstore tree"),
    ],
)
def test_a_wrong_address_is_told_what_there_is(garden: Garden, address: str, message: str, hint: str) -> None:
    garden.checkpoint("good", "4b")
    with pytest.raises(Unknown, match=message) as caught:
        resolve(garden.graph(), address)
    assert hint in caught.value.hint
    assert caught.value.status == 16


def test_a_line_without_turns_says_so(root: Path) -> None:
    garden = Garden(root)
    with pytest.raises(Unknown, match="no turn 1 on this line: there are no turns yet"):
        resolve(garden.graph(), "1")
    garden.close()


@pytest.mark.parametrize("address", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_hostile_addresses_are_unknown_and_touch_nothing(garden: Garden, address: str) -> None:
    """G-36, and bad input of the issue: never a traceback, never a path."""
    with pytest.raises(Unknown) as caught:
        resolve(garden.graph(), address)
    assert len(caught.value.message) + len(caught.value.hint) < 500
    assert sorted(path.name for path in garden.root.iterdir()) == ["file"]


def test_addresses_on_the_command_line(garden: Garden) -> None:
    garden.checkpoint("good", "4b")
    garden.close()
    for address, name in (("main:3", "3"), ("good", "4b"), ("#5", "3b"), ("s1/main-3:4", "4c")):
        assert snap_json(garden.root, "show", "--json", address)["commit"] == garden.made[name].hex()
    assert snap_json(garden.root, "show", "--json", "zzz", status=16)["error"] == "unknown"
    assert "Traceback" not in snap(garden.root, "show", "--", "-rf", status=16).stderr
    assert "main-4" in snap(garden.root, "diff", "mian-4", "@", status=16).stderr


def test_a_node_knows_its_branch_its_checkpoints_and_whether_it_is_undone(garden: Garden) -> None:
    garden.checkpoint("good", "3b")
    garden.stand("3b", branch="main-2")
    history = History(garden.store.session("s1"))
    node = history.node(garden.made["3b"])
    assert (node.branch, node.checkpoints, node.undone) == ("main-2", ["good"], False)
    assert history.node(garden.made["4"]).branch == "main"
    assert [(node.prompt, node.undone) for node in history.nodes()[1:]] == [
        *(("1", False), ("2", False), ("3b", False), ("4b", True))
    ]
