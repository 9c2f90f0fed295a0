"""`forget` takes a file out of all that was recorded. Nothing of it is left, and the rest is as it was, to the byte."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from commands import snap, snap_json
from forgetting import SECRET, assert_gone, forget, forget_turn, holds, states
from helpers import (
    all_refs,
    assert_cache_adds_up,
    assert_whole,
    difference,
    git,
    git_in,
    in_commit,
    kinds,
    line,
    on_disk,
    record,
    tip,
    touched,
    turn,
    write,
)

from snapstore import Store
from snapstore.errors import Busy, Unknown, Usage
from snapstore.git.maintenance import pack_builder
from snapstore.git.maintenance.repack import Repack
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.timeline.forget import forget as forgetting
from snapstore.timeline.forget.forget import Forget
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.moves.branches import Branches

# A file.


def test_a_file_goes_from_every_turn_and_the_rest_stays(root: Path, store: Store) -> None:
    session = store.session("s1")
    write(root / "kept", "0")
    turn(session, root, "One", a="1")
    turn(session, root, "Two", key=SECRET, a="2")
    turn(session, root, "Three", key=f"{SECRET}\nmore", b="3")
    turn(session, root, "Four", key=None, c="4")
    before = [{path: entry for path, entry in files.items() if path != b"key"} for files in states(store, "s1")]
    assert holds(store, SECRET)
    forgotten = forget(store, "key")
    assert (forgotten.paths, forgotten.versions, forgotten.commits) == ([b"key"], 2, 3)
    assert states(store, "s1") == before
    assert kinds(store, "s1") == ["baseline", "turn", "turn", "turn", "turn"]
    assert [commit["subject"] for commit in line(store, "s1")] == ["Baseline", "One", "Two", "Three", "Four"]
    assert "key" not in "".join(commit["body"] for commit in line(store, "s1"))
    assert [commit["record"].get("prompt") for commit in line(store, "s1")][1:] == ["One", "Two", "Three", "Four"]
    assert_gone(store)


def test_the_file_on_disk_stays_and_does_not_come_back_at_the_next_turn(root: Path, store: Store) -> None:
    session = store.session("s1")
    with session.turn("One"):
        write(root / ".env", SECRET)
    forgotten = forget(store, ".env")
    assert forgotten.never == ["/.env"]
    assert (root / ".env").read_text() == SECRET
    commit = turn(session, root, "Two", a="1")
    assert touched(store, commit) == {b"a": "A"}
    with session.turn("Three") as third:
        third.touch(root / ".env")
        write(root / ".env", SECRET + "2")
    assert third.commit is not None and touched(store, third.commit) == {}
    assert [item["path"] for item in record(store, third.commit)["left_out"]] == [".env"]
    with Store.open(root) as again:
        assert again.header.never_capture == ["/.env"]
    assert_cache_adds_up(store)
    assert_gone(store, just_now=False)


def test_recapture_records_it_again_from_now_on(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", key=SECRET, a="1")
    assert forget(store, "key", recapture=True).never == []
    assert_gone(store)
    turn(session, root, "Two", a="2")
    assert kinds(store, "s1") == ["baseline", "turn", "edits", "turn"]
    assert in_commit(store, tip(store, "s1"))[b"key"][1] == SECRET.encode()


def test_what_the_conversation_told_of_it_goes_too(root: Path, store: Store) -> None:
    session = store.session("s1")
    session.begin(f"Put the key {SECRET} into .env")
    session.touch([root / ".env"])
    write(root / ".env", f"KEY={SECRET}\n")
    calls = [
        {"id": "t1", "name": "Write", "type": "Write", "file_path": str(root / ".env"), "content": f"KEY={SECRET}\n"},
        {"id": "t2", "name": "Bash", "type": "shell", "input": {"command": "cat .env"}, "result": f"KEY={SECRET}"},
        {"id": "t3", "name": "Write", "type": "Write", "file_path": str(root / "other"), "content": "harmless"},
    ]
    use = {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "cat .env"}}
    lines = [
        json.dumps({"uuid": "u1", "type": "assistant", "message": {"content": [use]}}),
        json.dumps({"uuid": "u2", "parentUuid": "u1", "toolUseResult": {"stdout": "the answer"},
                    "message": {"content": [{"type": "tool_result", "tool_use_id": "t2", "content": "the answer"}]}}),
        json.dumps({"uuid": "u3", "message": {"content": [{"type": "text", "text": f"It is {SECRET}, in .env"}]}}),
        json.dumps({"uuid": "u4", "message": {"content": [{"type": "text", "text": "Nothing to see"}]}}),
        f"no json: {SECRET}",
    ]  # fmt: skip
    session.end(replies=[f"The key is {SECRET}."], thinking=["Hm"], tool_calls=calls, lines=lines)
    forget(store, ".env")
    assert_gone(store)
    told = line(store, "s1")[-1]["record"]
    assert told["prompt"] == "Put the key [forgotten] into .env"
    assert told["replies"] == ["The key is [forgotten]."]
    assert told["thinking"] == ["Hm"]
    assert [call["id"] for call in told["tool_calls"]] == ["t1", "t2", "t3"]
    assert told["tool_calls"][0]["content"] == told["tool_calls"][1]["result"] == "[forgotten]"
    assert told["tool_calls"][2]["content"] == "harmless"
    read = [json.loads(text) if text.startswith("{") else text for text in told["lines"]]
    assert [one.get("uuid") for one in read[:4]] == ["u1", "u2", "u3", "u4"]
    assert read[1]["parentUuid"] == "u1"
    assert "the answer" not in told["lines"][1]
    assert read[2]["message"]["content"][0]["text"] == "It is [forgotten], in .env"
    assert told["lines"][3] == lines[3]


def test_a_folder_and_a_pattern(root: Path, store: Store) -> None:
    session = store.session("s1")
    with session.turn("One"):
        write(root / "keys/deep/one", SECRET + "1")
        write(root / "keys/two", SECRET + "2")
        write(root / "keys2", "stays")
        write(root / "x/server.pem", SECRET + "3")
        write(root / "server.pem.txt", "stays too")
    forget(store, "keys")
    assert in_commit(store, tip(store, "s1")).keys() == {b"keys2", b"x/server.pem", b"server.pem.txt"}
    Forget(store).paths(patterns=["*.pem"])
    assert in_commit(store, tip(store, "s1")).keys() == {b"keys2", b"server.pem.txt"}
    assert store.header.never_capture == ["/keys", "*.pem"]
    assert_gone(store)
    assert (root / "keys/two").exists()
    turn(session, root, "Two", a="1")
    assert in_commit(store, tip(store, "s1")).keys() == {b"keys2", b"server.pem.txt", b"a"}


@pytest.mark.parametrize(
    "name",
    [
        b"-rf",
        b"a b ",
        b"*",
        b"[x]?",
        b"\xff\xfe",
        b"back\\slash",
        b"new\nline",
        b"\x1b[31m",
        b"#note",
        b"!not",
        b"d/ e",
    ],
)
def test_hostile_names(root: Path, store: Store, name: bytes) -> None:
    session = store.session("s1")
    with session.turn("One"):
        write(bytes(root) + b"/" + name, SECRET)
        write(root / "innocent", "1")
        write(root / "x", "2")
    spelled = os.fsdecode(name).isprintable()
    if not spelled:  # no setting can hold it: that is said before anything happens
        with pytest.raises(Usage):
            Forget(store).paths([name])
        (root / os.fsdecode(name)).unlink()
    forgotten = Forget(store).paths([name], recapture=not spelled)
    assert forgotten.paths == [name]
    assert in_commit(store, tip(store, "s1")).keys() == {b"innocent", b"x"}
    assert_gone(store)
    turn(session, root, "Two", innocent="3")
    assert in_commit(store, tip(store, "s1")).keys() == {b"innocent", b"x"}


def test_a_file_that_was_renamed_is_named_and_goes_with_copies(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", key=SECRET, empty="")
    turn(session, root, "Two", key=None, moved__key=SECRET, other_empty="")
    assert forget(store, "key", dry_run=True).copies == [b"moved/key"]
    assert forget(store, "key").copies == [b"moved/key"]
    assert holds(store, SECRET)
    with pytest.raises(Unknown):
        forget(store, "key")
    forgotten = forget(store, "moved/key", copies=True)
    assert forgotten.copies == []
    assert_gone(store)
    assert in_commit(store, tip(store, "s1")).keys() == {b"empty", b"other_empty"}


def test_copies_at_once(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", key=SECRET)
    turn(session, root, "Two", key=None, moved=SECRET)
    forgotten = forget(store, "key", copies=True)
    assert forgotten.paths == [b"key", b"moved"]
    assert forgotten.never == ["/key", "/moved"]
    assert_gone(store)


def test_more_copies_than_the_settings_can_name(root: Path, store: Store) -> None:
    """It is said as it is, with the ways out, and nothing has changed."""
    with store.session("s1").turn("One"):
        for number in range(900):
            write(root / "copies/of/it" / f"a rather long name of a file that is the same as others {number}", SECRET)
        write(root / "key", SECRET)
    before = all_refs(store)
    with pytest.raises(Usage, match="larger than") as refused:
        forget(store, "key", copies=True)
    assert "901 names" in refused.value.hint and "--recapture" in refused.value.hint
    assert all_refs(store) == before
    assert store.header.never_capture == []
    forget(store, "key", copies=True, recapture=True)
    assert_gone(store)


def test_everywhere_in_the_store(root: Path, store: Store) -> None:
    """Branches, archived and deleted ones, checkpoints, safety refs, cursors in the middle, other sessions, the tree of
    the disk, reflogs, packed refs, operations."""
    session = store.session("s1")
    turn(session, root, "One", key=SECRET + "1", a="1")
    turn(session, root, "Two", a="2")
    Branches(session).checkpoint("pin", bytes.fromhex(tip(store, "s1")))
    session.move(session.plan_undo(1))
    turn(session, root, "Another way", key=SECRET + "2")
    session.move(session.plan_undo(1))
    turn(session, root, "A third", a="4")
    Branches(session).archive("main-2")
    Branches(session).delete_all(["main"])
    write(root / "a", "mine")
    from snapstore.timeline.moves.plan import FORCE, Policy

    session.move(session.plan_undo(1, policy=Policy(FORCE)))
    other = store.session("s2")
    turn(other, root, "Elsewhere", key=SECRET + "3")
    git(store.shadow.git_dir, "tag", "-a", "-m", "annotated", "s1/mark", "refs/tags/s1/pin")
    git(store.shadow.git_dir, "pack-refs", "--all")
    names = set(all_refs(store))
    assert {name.split("/")[1] for name in names} >= {"heads", "tags", "notes", "snapstore"}
    assert any("safety" in name for name in names) and any("deleted" in name for name in names)
    forget(store, "key")
    assert set(all_refs(store)) | {"refs/snapstore/disk"} == names | {"refs/snapstore/disk"}
    assert_gone(store)
    turn(session, root, "On", b="5")
    turn(other, root, "On", c="6")
    assert_whole(store)
    for operation in Operations(store).newest_first():
        for end in (operation.from_, operation.to):
            if end is not None:
                git(store.shadow.git_dir, "cat-file", "-e", end["commit"])


def test_undo_and_redo_of_what_is_left_are_exact(root: Path, store: Store) -> None:
    session = store.session("s1")
    write(root / "kept", "0")
    dice = random.Random(3)
    seen = [on_disk(root)]
    for number in range(6):
        with session.turn(f"Turn {number}"):
            for name in dice.sample("abcdef", 3):
                write(root / name, f"{number} {dice.random()}\n" * dice.randrange(1, 9), executable=dice.random() < 0.3)
            write(root / "secret/key", f"{SECRET}{number}")
        seen.append({path: entry for path, entry in on_disk(root).items() if path != b"secret/key"})
    forget(store, "secret")
    assert_gone(store)
    left = (root / "secret/key").read_text()
    for count in (1, 2, 3):
        session.move(session.plan_undo(count))
        seen_now = on_disk(root)
        seen_now.pop(b"secret/key")
        assert not difference(seen[6 - count], seen_now)
        session.move(session.plan_redo(count))
        seen_now = on_disk(root)
        seen_now.pop(b"secret/key")
        assert not difference(seen[6], seen_now)
    session.move(session.plan_goto("0", exact=True))
    assert (root / "secret/key").read_text() == left
    assert_whole(store)


def test_operations_can_still_be_taken_back(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "One", a="1", key=SECRET)
    turn(session, root, "Two", a="2", key=SECRET + "2")
    session.move(session.plan_undo(1))
    assert (root / "a").read_text() == "1"
    forget(store, "key")
    session.move(session.plan_ops_undo())
    assert (root / "a").read_text() == "2"
    assert_gone(store, just_now=False)


def test_conversations_keep_their_place(root: Path, store: Store) -> None:
    session = store.session("s1")
    known = AgentSession(id="abc", agent="claude", session="s1", created="now", title=f"Use {SECRET}")
    session.begin("One", known=known, origin={"session": "abc", "prompt_id": "p1"})
    write(root / "key", SECRET)
    session.end(scan=True)
    conversations = Conversations(store)
    state = conversations.state("s1")
    assert state is not None and state.at == tip(store, "s1")
    forget(store, "key")
    state, agent = conversations.state("s1"), conversations.agent_session("abc")
    assert state is not None and state.at == tip(store, "s1")
    assert agent is not None and agent.title == "Use [forgotten]"
    assert_gone(store)


def test_borrowed_packs_are_replaced_and_the_users_own_stay(root: Path) -> None:
    git_in(root, "init", "-q")
    write(root / "key", SECRET)
    for number in range(50):
        write(root / f"file{number}", f"{number}\n" * 40)
    git_in(root, "add", ".")
    git_in(root, "commit", "-qm", "All")
    git_in(root, "repack", "-adq")
    time.sleep(0.05)
    for path in root.iterdir():  # older than the index, so that its blobs are taken over
        if path.is_file():
            os.utime(path, (1_600_000_000, 1_600_000_000))
    git_in(root, "update-index", "--refresh")
    theirs = {path.name: path.read_bytes() for path in (root / ".git/objects/pack").iterdir()}
    with Store.open(root, create=True, session="s1") as store:
        packs = Path(store.shadow.git_dir, "objects/pack")
        assert any(path.stat().st_nlink > 1 for path in packs.glob("*.pack")), "nothing was borrowed"
        turn(store.session("s1"), root, "One", file1="new")
        forget(store, "key")
        assert all(path.stat().st_nlink == 1 for path in packs.iterdir())
        assert_gone(store)
        assert {path.name: path.read_bytes() for path in (root / ".git/objects/pack").iterdir()} == theirs
        turn(store.session("s1"), root, "Two", file2="new")
        assert b"key" not in in_commit(store, tip(store, "s1"))  # though git tracks it
        assert_whole(store)


def test_without_git_it_works_the_same(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "_packing", lambda store: pack_builder.without_git)
    session = store.session("s1")
    for number in range(5):
        turn(session, root, f"{number}", key=f"{SECRET}{number}", a=f"{number}" * 500)
    forget(store, "key")
    assert_gone(store)


# Refusals.


def test_refused_while_a_turn_is_open(root: Path, store: Store) -> None:
    session = store.session("s1")
    one = turn(session, root, "One", key=SECRET)
    store.session("s2").begin("Busy")
    before = all_refs(store)
    for work in (lambda: forget(store, "key"), lambda: forget_turn(store, one)):
        with pytest.raises(Busy):
            work()
    assert all_refs(store) == before
    store.session("s2").cancel()
    forget(store, "key")
    assert_gone(store)


def test_refused_while_a_gc_is_at_work(root: Path, store: Store) -> None:
    """It has seen the old history, and would bring it back."""
    turn(store.session("s1"), root, "One", key=SECRET)
    with Repack(store.shadow.objects, older_than=0.0, packing=pack_builder.without_git), pytest.raises(Busy):
        forget(store, "key")
    forget(store, "key")
    assert_gone(store)


def test_refused_for_what_is_not_there_and_for_the_first_snapshot(root: Path, store: Store) -> None:
    one = turn(store.session("s1"), root, "One", a="1")
    before = all_refs(store)
    with pytest.raises(Unknown):
        forget(store, "nothing")
    with pytest.raises(Usage):
        forget_turn(store, line(store, "s1")[0]["commit"])
    assert all_refs(store) == before
    forget_turn(store, one, dry_run=True)
    assert all_refs(store) == before


def test_a_dry_run_changes_nothing(root: Path, store: Store) -> None:
    turn(store.session("s1"), root, "One", key=SECRET)
    before = {path: path.read_bytes() for path in Path(store.folder).rglob("*") if path.is_file()}
    forgotten = forget(store, "key", dry_run=True)
    assert (forgotten.paths, forgotten.commits, forgotten.never) == ([b"key"], 1, ["/key"])
    after = {path: path.read_bytes() for path in Path(store.folder).rglob("*") if path.is_file()}
    assert {path for path in before | after if before.get(path) != after.get(path)} <= {Path(store.state, "lock")}
    assert store.header.never_capture == []


# The command.


def test_the_command_says_what_went_and_what_is_out_of_reach(root: Path) -> None:
    snap(root, "init")
    snap(root, "run", "-m", "One", "--", "sh", "-c", f"echo {SECRET} > .env; echo 1 > a")
    refused = snap(root, "forget", ".env", status=2)
    assert "--yes" in refused.stderr
    preview = snap(root, "forget", ".env", "--dry-run").stdout
    assert "Would forget 1 file in 1 version" in preview and "Nothing was changed." in preview
    said = snap(root, "forget", ".env", "--yes").stdout
    assert "Forgot 1 file" in said and "Never captured again: /.env" in said
    assert "May still have a copy: backups" in said
    with Store.open(root) as store:
        assert_gone(store)
    assert (root / ".env").read_text().strip() == SECRET
    again = snap_json(root, "forget", "./.env", "--yes", "--json", status=16)
    assert again["error"] == "unknown"


def test_the_command_tells_a_turn_from_a_file(root: Path) -> None:
    snap(root, "init")
    snap(root, "run", "-m", "One", "--", "sh", "-c", "echo 1 > a; echo 1 > 2")
    snap(root, "run", "-m", "Two", "--", "sh", "-c", "echo 2 > a")
    unclear = snap_json(root, "forget", "2", "--yes", "--json", status=2)
    assert "./2" in unclear["hint"]
    document = snap_json(root, "forget", "shell/main:2", "--yes", "--json")
    assert [item["path"] for item in document["paths"]] == ["a"] and document["turn"]
    document = snap_json(root, "forget", "./2", "--yes", "--json")
    assert [item["path"] for item in document["paths"]] == ["2"] and document["turn"] is None
    assert snap_json(root, "forget", "main", "--yes", "--json", status=16)["error"] == "unknown"  # a name is no turn
    assert snap_json(root, "forget", ".", "--yes", "--json", status=2)["error"] == "usage"
    assert snap_json(root, "forget", "../x", "--yes", "--json", status=15)["error"] == "unsafe"


def test_a_pattern_from_a_subfolder(root: Path) -> None:
    snap(root, "init")
    snap(root, "run", "--", "sh", "-c", "mkdir sub; echo 1 > sub/a.key; echo 1 > b.key")
    document = snap_json(root / "sub", "forget", "*.key", "--yes", "--json")
    assert [item["path"] for item in document["paths"]] == ["sub/a.key"]
    assert document["never_capture"] == ["/sub/**/*.key"]


# Size.


def many(root: Path, store: Store, turns: int) -> None:
    """Cost grows with the history, and no faster."""
    session = store.session("s1")
    for number in range(turns):
        session.begin(f"Turn {number}")
        session.touch([root / "key", root / f"d{number % 20}" / "file"])
        write(root / "key", f"{SECRET} {number}")
        write(root / f"d{number % 20}" / "file", f"{number}\n" * 20)
        session.end(scan=False, replies=["x" * 500], lines=[json.dumps({"text": "y" * 2000})] * 10)
    start = time.monotonic()
    forgotten = forget(store, "key")
    took = time.monotonic() - start
    assert (forgotten.versions, forgotten.commits) == (turns, turns)
    assert_gone(store)
    assert took < 5 + turns * 0.02, f"{took:.1f} s"
    start = time.monotonic()
    forget_turn(store, line(store, "s1")[10]["commit"])
    assert time.monotonic() - start < 5 + turns * 0.02
    assert_whole(store)


def test_a_long_history_takes_seconds(root: Path, store: Store) -> None:
    many(root, store, 100)


@pytest.mark.deep
def test_a_thousand_turns_take_seconds(root: Path, store: Store) -> None:
    many(root, store, 1000)


def test_git_gc_before_leaves_nothing_behind(root: Path, store: Store) -> None:
    """Somebody's `git gc` has written packs with deltas, a commit graph and bitmaps."""
    session = store.session("s1")
    for number in range(10):
        turn(session, root, f"{number}", key=f"{SECRET}{number}\n" * 20, a=f"{number}")
    git_dir = store.shadow.git_dir
    subprocess.run(["git", "--git-dir", git_dir, "gc", "-q"], check=True)
    git(git_dir, "repack", "-adbq")
    git(git_dir, "multi-pack-index", "write")
    git(git_dir, "commit-graph", "write", "--reachable")
    forget(store, "key")
    assert_gone(store)
