"""Files that are kept out from the start: `never_capture`, and how `.snapstoreignore` differs from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import snap, snap_json
from helpers import (
    assert_cache_adds_up,
    assert_whole,
    git,
    git_in,
    in_commit,
    kinds,
    left_out,
    line,
    on_disk,
    tip,
    touched,
    turn,
    write,
)

from snapstore import Store
from snapstore.errors import Unsafe
from snapstore.worktree.ignore.never_capture import NeverCapture

WHY = "never captured, as never_capture says"


def everything(store: Store) -> bytes:
    """Every object of the store, as one text."""
    return git(store.shadow.git_dir, "cat-file", "--batch-all-objects", "--batch", "--unordered")


def keep_out(store: Store, *patterns: str) -> None:
    store.configure(never_capture=list(patterns))


# Patterns.


@pytest.mark.parametrize(
    ("pattern", "path", "is_one"),
    [
        (".env", b".env", True),
        (".env", b"deep/.env", True),
        ("/.env", b"deep/.env", False),
        ("*.pem", b"a/b.pem", True),
        ("keys/", b"keys/deep/one", True),
        ("keys/", b"keys", False),
        ("/conf/*.json", b"conf/a.json", True),
        ("/conf/*.json", b"conf/deep/a.json", False),
    ],
)
def test_patterns_are_those_of_gitignore(pattern: str, path: bytes, is_one: bool) -> None:
    assert NeverCapture([pattern]).matches(path) is is_one
    assert not NeverCapture([]) and not NeverCapture([]).matches(path)


# A scan, a name, a tracked file.


def test_a_scan_passes_it_over_and_says_so(root: Path, store: Store) -> None:
    keep_out(store, ".env", "keys/")
    with store.session("s1").turn("One") as one:
        write(root / ".env", "the secret")
        write(root / "keys/a", "the secret")
        write(root / "other", "1")
    assert one.commit is not None
    assert touched(store, one.commit) == {b"other": "A"}
    assert left_out(store, one.commit) == {".env": WHY, "keys": WHY}
    assert b"the secret" not in everything(store)
    with store.session("s1").turn("Two") as two:
        write(root / ".env", "the secret, again")
    assert two.commit is not None and left_out(store, two.commit) == {".env": WHY}  # it changed
    third = turn(store.session("s1"), root, "Three", other="3")
    assert left_out(store, third) == {}
    assert_cache_adds_up(store)


def test_a_named_file_is_not_taken_either(root: Path, store: Store) -> None:
    keep_out(store, ".env", "keys/")
    session = store.session("s1")
    with session.turn("One") as one:
        one.touch(root / ".env", root / "keys", root / "other")
        write(root / ".env", "the secret")
        write(root / "keys/deep/a", "the secret")
        write(root / "other", "1")
        one.touch(root / "keys", after=True)
    assert one.commit is not None
    assert touched(store, one.commit) == {b"other": "A"}
    assert ".env" in left_out(store, one.commit)
    assert b"the secret" not in everything(store)
    session.move(session.plan_undo(1))
    assert on_disk(root).keys() == {b".env", b"keys/deep/a"}  # nothing happened to them


def test_a_tracked_file_is_not_taken_either(root: Path) -> None:
    git_in(root, "init", "-q")
    write(root / ".env", "the secret")
    write(root / "a", "1")
    git_in(root, "add", ".")
    with Store.open(root, create=True, session="s1") as store:
        assert b".env" in in_commit(store, tip(store, "s1"))
    other = root.parent / "other"
    other.mkdir()
    git_in(other, "init", "-q")
    with Store.open(other, create=True, session="s1") as store:
        keep_out(store, ".env")
        with store.session("s1").turn("One") as one:
            write(other / ".env", "the secret")
            write(other / "a", "1")
            git_in(other, "add", ".")
        assert one.commit is not None
        assert touched(store, one.commit) == {b"a": "A"}
        assert left_out(store, one.commit)[".env"] == WHY
        assert b"the secret" not in everything(store)


def test_what_was_captured_before_stays_as_it_was(root: Path, store: Store) -> None:
    """Frozen: neither a change nor a removal of it is anybody's from then on."""
    session = store.session("s1")
    with session.turn("One"):
        write(root / ".env", "old")
        write(root / "a", "1")
    keep_out(store, ".env")
    two = turn(session, root, "Two", a="2")
    assert left_out(store, two) == {".env": WHY}
    write(root / ".env", "new secret")
    three = turn(session, root, "Three", a="3")
    (root / ".env").unlink()
    four = turn(session, root, "Four", a="4")
    for commit in (two, three, four):
        assert touched(store, commit) == {b"a": "M"}
        assert in_commit(store, commit)[b".env"][1] == b"old"
    assert kinds(store, "s1") == ["baseline", "turn", "turn", "turn", "turn"]
    assert b"new secret" not in everything(store)
    write(root / ".env", "mine")
    session.move(session.plan_undo(4))
    assert on_disk(root) == {b".env": (b"100644", b"mine")}
    session.move(session.plan_goto("1", exact=True))
    assert (root / ".env").read_text() == "mine"
    assert_cache_adds_up(store)
    assert_whole(store)


def test_no_move_touches_it_nor_saves_it(root: Path, store: Store) -> None:
    session = store.session("s1")
    with session.turn("One"):
        write(root / ".env", "one")
        write(root / "a", "1")
    with session.turn("Two"):
        write(root / ".env", "two")
        write(root / "a", "2")
    keep_out(store, ".env")
    write(root / ".env", "the secret")
    write(root / "a", "mine")
    from snapstore.timeline.moves.plan import FORCE, Policy

    plan = session.plan_undo(1, policy=Policy(FORCE))
    assert [move.path for move in plan.paths] == [b"a"]
    assert any(".env" in note for note in plan.notes)
    session.move(plan)
    assert (root / "a").read_text() == "1" and (root / ".env").read_text() == "the secret"
    assert b"the secret" not in everything(store)


def test_let_in_again_it_is_first_seen_and_not_the_turns(root: Path, store: Store) -> None:
    """The coverage rule: nobody knows what it was before, so undo leaves it alone."""
    keep_out(store, ".env")
    session = store.session("s1")
    turn(session, root, "One", a="1")
    session.begin("Two")
    write(root / ".env", "mine")
    keep_out(store)
    commit = session.end(scan=True)
    assert b".env" not in touched(store, commit)
    assert in_commit(store, commit)[b".env"][1] == b"mine"
    session.move(session.plan_undo(1))
    assert (root / ".env").read_text() == "mine"


def test_a_lost_cache_changes_nothing(root: Path, store: Store) -> None:
    keep_out(store, ".env")
    session = store.session("s1")
    with session.turn("One"):
        write(root / ".env", "the secret")
        write(root / "a", "1")
    for name in ("stat", "stat.log"):
        Path(store.state, name).unlink(missing_ok=True)
    two = turn(session, root, "Two", a="2")
    assert touched(store, two) == {b"a": "M"}
    assert b"the secret" not in everything(store)


def test_a_large_tree_costs_nothing_more(root: Path, store: Store) -> None:
    """Known files are held against the patterns once, not at every scan."""
    for number in range(300):
        write(root / f"d{number % 10}" / f"{number}.pem", "x")
    session = store.session("s1")
    turn(session, root, "One", a="1")
    keep_out(store, "d0/")
    turn(session, root, "Two", a="2")
    asked = []
    real = NeverCapture.matches

    def counting(self: NeverCapture, path: bytes, is_dir: bool = False) -> bool:
        asked.append(path)
        return real(self, path, is_dir)

    patch = pytest.MonkeyPatch()
    patch.setattr(NeverCapture, "matches", counting)
    try:
        turn(session, root, "Three", a="3")
    finally:
        patch.undo()
    assert len(asked) < 100


# Records.


def test_records_do_not_repeat_what_it_holds(root: Path, store: Store) -> None:
    keep_out(store, ".env")
    session = store.session("s1")
    session.begin("Write the settings")
    session.touch([root / ".env"])
    write(root / ".env", "KEY=the secret")
    calls: list[dict[str, Any]] = [
        {"id": "t1", "name": "Write", "file_path": str(root / ".env"), "content": "KEY=the secret"},
        {"id": "t2", "name": "Bash", "input": {"command": f"cat {root}/.env | head"}, "result": "KEY=the secret"},
        {"id": "t3", "name": "Write", "file_path": "src/a.py", "content": "print(1)"},
    ]
    answer = {"type": "tool_result", "tool_use_id": "t2", "content": "KEY=the secret"}
    lines = [
        json.dumps({"uuid": "1", "message": {"content": [{"type": "tool_use", "id": "t1", "input": calls[0]}]}}),
        json.dumps({"uuid": "2", "message": {"content": [answer]}}),
        json.dumps({"uuid": "3", "message": {"role": "user", "content": "leave .env alone"}}),
    ]
    session.end(tool_calls=calls, lines=lines, replies=["Done, see .env"])
    told = line(store, "s1")[-1]["record"]
    assert b"the secret" not in everything(store)
    assert [call["id"] for call in told["tool_calls"]] == ["t1", "t2", "t3"]
    assert told["tool_calls"][2]["content"] == "print(1)"
    assert [json.loads(text)["uuid"] for text in told["lines"]] == ["1", "2", "3"]
    assert told["lines"][2] == lines[2]  # what was said stays
    assert told["replies"] == ["Done, see .env"]


@pytest.mark.parametrize("raw", ["", "{", "[]", '"x"', "null", "\ud800", '{"a": ' * 5000, "x" * 100_000 + ".env"])
def test_hostile_lines_are_survived(root: Path, store: Store, raw: str) -> None:
    keep_out(store, ".env", "*")
    store.session("s1").begin("Go")
    store.session("s1").end(lines=[raw], tool_calls=[raw, None, 5, {"id": 5, "input": [raw]}])
    assert_whole(store)


# The other way: .snapstoreignore.


def test_snapstoreignore_passes_over_but_takes_what_is_named(root: Path, store: Store) -> None:
    """An ignored file that an agent names before it writes can be undone: that is what the difference is for."""
    write(root / ".snapstoreignore", ".env\nbuild/\n")
    session = store.session("s1")
    with session.turn("Scanned") as one:
        write(root / ".env", "one")
        write(root / "build/x", "one")
    assert one.commit is not None and touched(store, one.commit) == {}
    with session.turn("Named") as two:
        two.touch(root / ".env")
        write(root / ".env", "two")
    assert two.commit is not None and touched(store, two.commit) == {b".env": "M"}
    session.move(session.plan_undo(1))
    assert (root / ".env").read_text() == "one"


def test_snapstoreignore_leaves_tracked_files_tracked(root: Path, store: Store) -> None:
    session = store.session("s1")
    with session.turn("One"):
        write(root / ".env", "one")
    write(root / ".snapstoreignore", ".env\n")
    with session.turn("Two") as two:
        write(root / ".env", "two")
    assert two.commit is not None and touched(store, two.commit)[b".env"] == "M"
    keep_out(store, ".env")
    with session.turn("Three") as three:
        write(root / ".env", "three")
    assert three.commit is not None and touched(store, three.commit) == {}


def test_both_together_never_wins(root: Path, store: Store) -> None:
    write(root / ".snapstoreignore", "!.env\n")
    keep_out(store, ".env")
    with store.session("s1").turn("One") as one:
        one.touch(root / ".env")
        write(root / ".env", "the secret")
    assert b"the secret" not in everything(store)


# Names.


@pytest.mark.parametrize("name", [b"\xff.key", b"-rf.key", b"a\nb.key", b"\x1b[31m.key", b"a b .key"])
def test_hostile_names_match_too(root: Path, store: Store, name: bytes) -> None:
    keep_out(store, "*.key")
    with store.session("s1").turn("One") as one:
        one.touch(bytes(root) + b"/" + name)
        write(bytes(root) + b"/" + name, "the secret")
    assert one.commit is not None and touched(store, one.commit) == {}
    assert os.fsdecode(name) in left_out(store, one.commit)
    assert b"the secret" not in everything(store)


def test_a_link_is_judged_by_its_own_name(root: Path, store: Store) -> None:
    keep_out(store, "keys/")
    write(root / "keys/a", "the secret")
    with store.session("s1").turn("One") as one:
        one.touch(root / "link")
        os.symlink("keys", root / "link")
    assert one.commit is not None and touched(store, one.commit) == {b"link": "A"}
    assert b"the secret" not in everything(store)


# The command line.


def test_set_from_the_command_line(root: Path) -> None:
    snap(root, "init")
    snap(root, "config", "set", "never_capture", ".env", "*.pem")
    snap(root, "run", "-m", "One", "--", "sh", "-c", "echo 1 > .env; echo 1 > a")
    node = snap_json(root, "show", "1", "--json")
    assert [item["path"] for item in node["files"]] == ["a"]
    assert node["left_out"] == [{"path": ".env", "why": WHY}]
    snap(root, "undo", "-y")
    assert (root / ".env").exists() and not (root / "a").exists()


def test_a_file_written_through_mcp_is_refused(root: Path, store: Store) -> None:
    from snapstore.timeline.moves.file_edit import FileEdit

    keep_out(store, ".env")
    session = store.session("s1")
    turn(session, root, "One", a="1")
    with pytest.raises(Unsafe):
        FileEdit(session, b".env").write(b"the secret")
    assert not (root / ".env").exists()
    assert b"the secret" not in everything(store)
