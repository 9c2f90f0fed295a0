"""The tree as a person sees it, drawn or listed, and as a program reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import assert_record, snap, snap_json
from garden import Garden, forked, plant
from terminal_text import COLOUR, HARMFUL, HOSTILE, on_terminal

from snapstore.base.text import cells, clip
from snapstore.git.objects import commits
from snapstore.git.objects.ids import COMMIT
from snapstore.git.repository import SNAPSTORE
from snapstore.surface.records.branches import TreeRecord, UndolistRecord
from snapstore.timeline.history.graph import Graph


@pytest.fixture
def garden(root: Path) -> Iterator[Garden]:
    grown = Garden(root)
    yield grown
    grown.close()


def drawing(root: Path, *options: str) -> str:
    """The tree in a pipe, without ages."""
    return re.sub(
        r"  \([^()]*(?: ago|just now|\d{4}-\d\d-\d\d)\)$", "", snap(root, "tree", *options).stdout, flags=re.M
    )


# Drawn


def test_a_tree_is_drawn_with_its_branches_newest_first(garden: Garden) -> None:
    """S0-27, S0-37, S1-38, S1-43, S3-02: the fork, the count at it, and a branch of a branch."""
    forked(garden)
    garden.checkpoint("good", "3b")
    assert drawing(garden.root) == (
        "@  Turn 3  main-4  3d\n"
        "│ ○  Turn 5  Branch from turn 3 (main-3)  5c\n"
        "│ ○  Turn 4  4c\n"
        "│ │ ○  Turn 4  Branch from turn 3 (main-2)  4b\n"
        "│ ├─╯\n"
        "│ ○  Turn 3 ⑂ 2  [good]  3b\n"
        "├─╯\n"
        "│ ○  Turn 4  Branch from turn 2 (main)  4\n"
        "│ ○  Turn 3  3\n"
        "├─╯\n"
        "○  Turn 2 ⑂ 3  2\n"
        "○  Turn 1  1\n"
        "◆  baseline\n"
    )


def test_the_fork_of_one_undo_and_a_new_prompt_reads_as_the_seed_says(garden: Garden) -> None:
    """S0-27, S0-37: undo to turn 5 of 7, another prompt, and turn 5 shows a fork and 2."""
    garden.turns(*(str(number) for number in range(1, 8)))
    garden.stand("5")
    garden.turns("Another way")
    drawn = drawing(garden.root)
    assert "○  Turn 5 ⑂ 2  5\n" in drawn
    assert drawn.startswith("@  Turn 6  main-2  Another way\n│ ○  Turn 7  Branch from turn 5 (main)  7\n")


def test_plain_characters_on_demand_and_where_nothing_else_can_be_written(garden: Garden) -> None:
    forked(garden)
    drawn = drawing(garden.root, "--ascii")
    assert drawn.isascii()
    assert "| o  Turn 3 Y 2  3b\n|/\n| o  Turn 4  Branch from turn 2 (main)  4\n" in drawn
    assert snap(garden.root, "tree", PYTHONIOENCODING="ascii").stdout == snap(garden.root, "tree", "--ascii").stdout


def test_undone_turns_are_marked_in_a_pipe_and_dim_on_a_terminal(garden: Garden) -> None:
    """S0-17, S1-04, S1-07."""
    garden.turns("1", "2", "3")
    garden.edit("mine")
    garden.stand("1")
    assert drawing(garden.root) == ("○  Turn 3  main  undone  3\n○  Turn 2  undone  2\n@  Turn 1  1\n◆  baseline\n")
    rows = on_terminal(garden.root, "tree").splitlines()
    assert "\x1b[2m○  Turn 3  main  undone  3" in rows[0]
    assert "\x1b[36;1m@  Turn 1\x1b[0m" in rows[2]
    assert COLOUR.search(on_terminal(garden.root, "tree", NO_COLOR="1")) is None


def test_edits_are_quiet_rows_and_new_kinds_say_what_they_are(garden: Garden) -> None:
    garden.turns("1")
    garden.edit("mine")
    garden.turns("2")
    assert drawing(garden.root) == "@  Turn 2  main  2\n·  edits\n○  Turn 1  1\n◆  baseline\n"
    make(garden, "r", "2", kind="revert", turn=3)
    garden.ref("refs/heads/s1/main", garden.made["r"])
    assert drawing(garden.root).startswith("@  Turn 3 revert  main  r\n")


def test_long_runs_are_folded_and_all_shows_them(garden: Garden) -> None:
    garden.turns(*(f"do {number}" for number in range(1, 13)))
    assert drawing(garden.root) == (
        "@  Turn 12  main  do 12\n"
        "○  Turn 11  do 11\n○  Turn 10  do 10\n○  Turn 9  do 9\n"
        "┆  … 7 turns (2–8)\n"
        "○  Turn 1  do 1\n◆  baseline\n"
        "`snapstore tree --all` shows every turn.\n"
    )
    whole = drawing(garden.root, "--all")
    assert [int(number) for number in re.findall(r"Turn (\d+)", whole)] == list(range(12, 0, -1))
    garden.checkpoint("good", "do 6")
    garden.edit("mine")
    assert "… " not in drawing(garden.root)


def test_a_tree_that_is_higher_than_the_terminal_keeps_its_top_and_the_cursor(garden: Garden) -> None:
    plant(garden.store, 400, 20)
    rows = on_terminal(garden.root, "tree", lines=20).splitlines()
    assert len(rows) == 17
    assert "@" in COLOUR.sub("", rows[0])
    assert "more rows and every turn." in rows[-1]
    graph = garden.graph()
    tip = graph.line(graph.tip)
    garden.made["low"] = tip[1]
    garden.stand("low")
    rows = [COLOUR.sub("", row) for row in on_terminal(garden.root, "tree", lines=20).splitlines()]
    assert any(row.startswith("@  Turn 1") for row in rows)


def test_archived_branches_are_left_out_until_asked_for(garden: Garden) -> None:
    """C4: out of the list, still whole."""
    forked(garden)
    garden.archive("main-3")
    garden.archive("main")
    drawn = drawing(garden.root)
    assert "4c" not in drawn and "○  Turn 2 ⑂ 2" in drawn
    assert drawn.endswith("`snapstore tree --all` shows 2 archived branches.\n")
    whole = drawing(garden.root, "--all")
    assert "Branch from turn 3 (main-3, archived)  5c" in whole
    assert "Branch from turn 2 (main, archived)  4" in whole
    assert "○  Turn 2 ⑂ 3" in whole


def test_a_tree_without_turns_says_what_to_do(garden: Garden) -> None:
    assert drawing(garden.root) == "@  baseline  main\nNo turns yet. Record one: `snapstore run -- CMD…`\n"


def test_another_sessions_tree(garden: Garden) -> None:
    garden.turns("1")
    with garden.store.session("s2").turn("theirs"):
        pass
    assert "theirs" not in drawing(garden.root, "--session", "s1")
    assert drawing(garden.root, "--session", "s2").startswith("@  Turn 1  main  theirs\n")
    assert "no session 's3'" in snap(garden.root, "tree", "--session", "s3", status=16).stderr


# Fitting


WIDE = "修复登录页面的翻译并添加更多的测试用例以及对多语言的支持"


@pytest.mark.parametrize("columns", [100, 60, 40, 24, 12, 5, 1])
def test_no_row_is_wider_than_the_terminal(garden: Garden, columns: int) -> None:
    """Wide characters, emoji, long names and checkpoints, deep lanes: nothing wraps."""
    garden.turns("1", f"{WIDE} 🎉🎉 {WIDE}", "e\u0301" * 100)
    garden.checkpoint("a-checkpoint-with-a-rather-long-name-that-goes-on", "1")
    garden.ref("refs/heads/s1/" + "长" * 60, "1")
    nest(garden, 12)
    for options in ([], ["--all"], ["--ascii"]):
        rows = [row for row in on_terminal(garden.root, "tree", *options, columns=columns).splitlines() if row]
        plain = [COLOUR.sub("", row) for row in rows if "snapstore tree --all" not in row]
        assert len(plain) > 10
        assert all(cells(row) <= columns for row in plain), max(plain, key=cells)
    rows = on_terminal(garden.root, "undolist", columns=columns).splitlines()
    assert all(cells(COLOUR.sub("", row)) <= columns for row in rows)


def test_the_age_stands_at_the_right(garden: Garden) -> None:
    garden.turns("1", WIDE)
    for columns in (100, 50):
        rows = [COLOUR.sub("", row) for row in on_terminal(garden.root, "tree", columns=columns).splitlines()]
        assert {cells(row) for row in rows} == {columns}
        assert all(row.endswith("2023-11-14") for row in rows)


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("abcd", 4), ("修复", 4), ("e\u0301", 1), ("🎉", 2), ("\u200b", 0), ("", 0)],
)
def test_columns_are_counted_as_terminals_do(text: str, width: int) -> None:
    assert cells(text) == width
    assert clip(text, width) == text


def test_clipping_leaves_a_mark_and_never_half_a_character() -> None:
    assert [clip("abcdef", width) for width in (6, 5, 2, 1, 0, -1)] == ["abcdef", "abcd…", "a…", "…", "", ""]
    assert [clip("修复登录", width) for width in (8, 7, 6, 5, 3)] == ["修复登录", "修复登…", "修复…", "修复…", "修…"]
    assert clip("one two", 5) == "one…"
    assert clip("abcdef", 4, "...") == "a..."
    assert cells(clip(WIDE * 1000, 31)) <= 31


def test_hostile_text_never_acts_on_a_terminal(garden: Garden) -> None:
    """G-36: prompts, and names that someone gave with git."""
    garden.turns("1", HOSTILE)
    make(garden, "odd", "1", kind=f"edits{HOSTILE}", turn=None, subject=HOSTILE)
    make(garden, "odder", "1", kind=f"x{HOSTILE}", turn=7, subject=HOSTILE)
    name = "a\u202eb\u2066c"
    garden.ref(f"refs/heads/s1/{name}", "odd")
    garden.ref("refs/heads/s1/odder", "odder")
    garden.ref(f"refs/tags/s1/{name}", "1")
    for command in (["tree"], ["tree", "--all", "--ascii"], ["undolist"]):
        for seen in (on_terminal(garden.root, *command), snap(garden.root, *command).stdout):
            assert not HARMFUL.search(COLOUR.sub("", seen))
        done = snap(garden.root, *command, "--json")
        assert done.stdout.isascii() and json.loads(done.stdout)


# For programs


def test_the_document_has_every_node_and_every_branch(garden: Garden) -> None:
    """S3-01, S3-04, S3-05, S3-06, S3-07: a node with its time, number and label; one root; a cursor."""
    forked(garden)
    garden.checkpoint("good", "3b")
    garden.archive("main-2")
    garden.stand("2")
    document = snap_json(garden.root, "tree", "--all", "--json")
    assert_record(TreeRecord, document)
    nodes = {node["commit"]: node for node in document["nodes"]}
    assert nodes.keys() == {oid.hex() for oid in garden.made.values()}
    assert [node["seq"] for node in document["nodes"]] == list(range(10))
    assert (document["session"], document["branch"]) == ("s1", "main-4")
    assert document["cursor"] == garden.made["2"].hex()
    node = nodes[garden.made["3b"].hex()]
    assert node == {
        "seq": 5,
        "turn": 3,
        "kind": "turn",
        "session": "s1",
        "branch": "main-3",
        "label": "Turn 3",
        "prompt": "3b",
        "agent": "claude",
        "undone": False,
        "checkpoints": ["good"],
        "commit": garden.made["3b"].hex(),
        "parent": garden.made["2"].hex(),
        "tree": garden.graph().node(garden.made["3b"]).tree.hex(),
        "ended_at": "2023-11-14T22:18:20.000Z",
    }
    shown = snap_json(garden.root, "show", "#5", "--json")
    assert {key: shown[key] for key in node} == node
    assert [node["prompt"] for node in document["nodes"] if node["undone"]] == ["3d"]
    root = document["nodes"][0]
    assert (root["parent"], root["turn"], root["label"], root["prompt"]) == (None, None, "Baseline", "")
    found = {
        branch["name"]: (branch["label"], branch["state"], branch["turns"], branch["parted_at"])
        for branch in document["branches"]
    }
    assert found == {
        "main": ("Branch from turn 2", "listed", 4, 2),
        "main-2": ("Branch from turn 3", "archived", 4, 3),
        "main-3": ("Branch from turn 3", "listed", 5, 3),
        "main-4": ("main-4", "current", 3, 2),
    }
    listed = snap_json(garden.root, "tree", "--json")
    assert_record(TreeRecord, listed)
    assert {node["prompt"] for node in document["nodes"]} - {node["prompt"] for node in listed["nodes"]} == {"4b"}
    assert "main-2" not in {branch["name"] for branch in listed["branches"]}


def test_every_list_says_the_same_of_a_branch(garden: Garden) -> None:
    """S1-38, S3-18: one document in `tree` and `branches`, and a leaf of `undolist` is the end of it."""
    forked(garden)
    garden.checkpoint("good", "4c")
    garden.checkpoint("end", "5c")
    garden.archive("main-2")

    def told(key: str, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """By name; without what the clock moves from one command to the next."""
        return {row[key]: {name: value for name, value in row.items() if name != "age_seconds"} for row in rows}

    branches = told("name", snap_json(garden.root, "branches", "--all", "--json")["branches"])
    assert branches.keys() == {"main", "main-2", "main-3", "main-4"}
    assert (branches["main-3"]["checkpoints"], branches["main-3"]["pinned_by"]) == (["end"], ["good", "end"])
    assert told("name", snap_json(garden.root, "tree", "--all", "--json")["branches"]) == branches
    leaves = told("branch", snap_json(garden.root, "undolist", "--json")["leaves"])
    assert leaves.keys() == branches.keys()
    for name, leaf in leaves.items():
        assert {**branches[name], **leaf} == {**branches[name], "branch": name}


def test_the_document_of_odd_nodes(garden: Garden) -> None:
    """No branch, no parent, quotes and surrogates: still one document, in ASCII."""
    garden.turns('say "hi" \\ 修复', "2")
    garden.stand("root")
    garden.checkpoint("a", "2")
    garden.ref("refs/heads/s1/main", None)
    for options in ([], ["--all"]):
        done = snap(garden.root, "tree", "--json", *options)
        assert done.stdout.isascii()
        document = json.loads(done.stdout)
        assert_record(TreeRecord, document)
        assert [node["branch"] for node in document["nodes"]] == ["", "", ""]
        assert document["nodes"][1]["prompt"] == 'say "hi" \\ 修复'


def test_undolist_lists_every_leaf(garden: Garden) -> None:
    """S3-18, C9: what was undone is still a leaf."""
    forked(garden)
    garden.archive("main")
    garden.checkpoint("good", "4b")
    garden.ref("refs/heads/s1/main-2", None)
    listing = snap(garden.root, "undolist").stdout
    rows = [re.split(r"  +", row.strip()) for row in listing.splitlines()]
    assert [[*row[:3], *row[4:]] for row in rows] == [
        ["number", "turns", "branch", "state", "last prompt"],
        ["#9", "3", "main-4", "current", "3d"],
        ["#8", "5", "Branch from turn 2 (main-3)", "listed", "5c"],
        ["#6", "4", "[good]", "pinned", "4b"],
        ["#4", "4", "Branch from turn 2 (main)", "archived", "4"],
    ]
    document = snap_json(garden.root, "undolist", "--json")
    assert_record(UndolistRecord, document)
    assert [(leaf["seq"], leaf["state"], leaf["branch"]) for leaf in document["leaves"]] == [
        *((4, "archived", "main"), (6, "pinned", None), (8, "listed", "main-3"), (9, "current", "main-4"))
    ]


def test_undolist_before_the_first_turn(garden: Garden) -> None:
    assert "(no turns)" in snap(garden.root, "undolist").stdout


# Thousands


def test_thousands_of_nodes_are_drawn_and_listed(garden: Garden) -> None:
    """S3-30, S3-32."""
    plant(garden.store, 6000, 300)
    assert len(snap_json(garden.root, "tree", "--all", "--json")["nodes"]) == 6001
    assert len(re.findall(r"Turn \d+", snap(garden.root, "tree", "--all").stdout)) >= 6000
    assert snap(garden.root, "tree").stdout.count("┆") > 50
    assert len(snap(garden.root, "undolist").stdout.splitlines()) == 301


def test_branches_in_branches_hundreds_deep(garden: Garden) -> None:
    nest(garden, 300)
    drawn = snap(garden.root, "tree", "--all").stdout
    assert len(re.findall(r"Turn \d+", drawn)) >= 600
    assert "│ " * 100 in drawn
    rows = [COLOUR.sub("", row) for row in on_terminal(garden.root, "tree", "--all", columns=60).splitlines()]
    assert any("… ○  Turn" in row for row in rows)


def make(garden: Garden, name: str, parent: str, *, kind: str = "turn", turn: int | None, subject: str = "") -> bytes:
    """A commit with whatever trailers, under a parent."""
    graph = garden.graph()
    trailers = {"Kind": kind, "Session": "s1", "Seq": 1 + max(graph.node(oid).seq for oid in garden.made.values())}
    text = commits.message(subject or name, [], trailers if turn is None else {**trailers, "Turn": turn})
    node = graph.node(garden.made[parent])
    data = commits.encode(node.tree, [node.oid], SNAPSTORE, SNAPSTORE, int(garden.clock.now), text)
    writer = garden.store.shadow.objects.writer()
    garden.made[name] = writer.add(COMMIT, data)
    garden.store.shadow.objects.finish(writer)
    return garden.made[name]


def nest(garden: Garden, depth: int) -> None:
    """Branches in branches: each goes on after the one inside it was left."""
    shadow = garden.store.shadow
    base = garden.cursor()
    tree, seq = garden.graph().node(base).tree, 100
    writer = shadow.objects.writer()

    def commit(parent: bytes, turn: int) -> bytes:
        nonlocal seq
        seq += 1
        text = commits.message(f"turn {turn}", [], {"Kind": "turn", "Session": "s1", "Turn": turn, "Seq": seq})
        return writer.add(COMMIT, commits.encode(tree, [parent], SNAPSTORE, SNAPSTORE, 1_700_000_000 + seq, text))

    spine = [base]
    for level in range(depth):
        spine.append(commit(spine[-1], level + 1))
    tips = [commit(spine[level], level + 1) for level in range(depth, 0, -1)]
    shadow.objects.finish(writer)
    with open(f"{shadow.git_dir}/packed-refs", "a") as file:
        file.writelines(sorted(f"{tip.hex()} refs/heads/s1/n{level:04}\n" for level, tip in enumerate(tips)))
    assert len(Graph(garden.store, "s1").nodes) > 2 * depth
