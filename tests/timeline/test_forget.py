"""`forget`: a file or a turn out of all that was recorded. Nothing of it is left, and the rest is as it was, to the
byte. No secret stands in this file: each is put together when the test runs."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import string
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from commands import snap, snap_json
from faults import strike
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
    needs_strace,
    on_disk,
    record,
    tip,
    touched,
    turn,
    write,
)

from snapstore import Store
from snapstore.errors import Busy, Failed, Interrupted, SnapstoreError, Unknown, Unsafe, Usage
from snapstore.git.maintenance import fold, pack_builder, purge
from snapstore.git.maintenance.repack import Repack
from snapstore.git.objects.pack_writer import KEPT_BY
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.timeline.forget import forget as forgetting
from snapstore.timeline.forget.forget import Forget
from snapstore.timeline.forget.report import Forgotten
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.moves.branches import Branches

SECRET = "".join(random.Random(11).choices(string.ascii_letters + string.digits, k=30)) + "x7"


def forget(store: Store, *paths: str, **options: Any) -> Forgotten:
    return Forget(store).paths([os.fsencode(path) for path in paths], **options)


def forget_turn(store: Store, commit: str, **options: Any) -> Forgotten:
    return Forget(store).turn(bytes.fromhex(commit), **options)


def holds(store: Store, needle: str) -> list[str]:
    """Where in the store's folder some bytes are: in any file as it is, and in any object once it is inflated."""
    found = []
    wanted = needle.encode()
    for folder, _, names in os.walk(store.folder):
        for name in names:
            path = os.path.join(folder, name)
            data = Path(path).read_bytes()
            if wanted in data:
                found.append(path)
            if "/objects/" in path and not name.startswith("pack-"):
                try:
                    found += [path] if wanted in zlib.decompress(data) else []
                except zlib.error:
                    pass
    listing = git(store.shadow.git_dir, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    return [*found, *(["an object"] if wanted in listing else [])]


def assert_gone(store: Store, *, just_now: bool = True) -> None:
    """Not a byte of it anywhere; and just after it was forgotten, no object that nothing leads to."""
    assert holds(store, SECRET) == []
    assert_whole(store)
    if not just_now:
        return
    said = git(store.shadow.git_dir, "fsck", "--full", "--unreachable", "--no-reflogs").decode()
    assert said.strip() == "", said


def states(store: Store, session: str) -> list[dict[bytes, tuple[bytes, bytes]]]:
    return [in_commit(store, commit["commit"]) for commit in line(store, session)]


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
    assert "Other turns hold e as this one had it" in snap(root, "forget", "1", "--yes").stdout


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


# Kills.


def _prepared(root: Path) -> None:
    with Store.open(root, create=True, session="s1") as store:
        session = store.session("s1")
        turn(session, root, "One", a="1", key=SECRET)
        turn(session, root, f"Two {SECRET}", a="2")
        turn(session, root, "Three", key=SECRET + "3", b="3")
        session.move(session.plan_undo(1))


CALLS = ["rename", "unlink", "fsync", "openat", "write", "pwrite64", "mkdir", "rmdir"]
STEPS = {"openat": 40, "write": 5, "fsync": 4, "unlink": 9, "rename": 2}  # for the short run


@needs_strace
@pytest.mark.parametrize("call", CALLS)
def test_killed_anywhere_the_store_is_old_or_new(root: Path, tmp_path: Path, call: str) -> None:
    """G-37: whatever the moment, the next command finds all of it, or finishes, and nothing in between."""
    killed(root, tmp_path, call, STEPS.get(call, 1))


@needs_strace
@pytest.mark.deep
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_call_the_store_is_old_or_new(root: Path, tmp_path: Path, call: str) -> None:
    killed(root, tmp_path, call, 1)


def killed(root: Path, tmp_path: Path, call: str, step: int) -> None:
    _prepared(root)
    home = Path(os.environ["SNAPSTORE_HOME"])
    template = tmp_path / "template"
    shutil.copytree(home, template, symlinks=True)

    def again() -> None:
        shutil.rmtree(home)
        shutil.copytree(template, home, symlinks=True)

    def work() -> None:
        with Store.open(root, clock=lambda: 1_700_000_000.0) as store:
            forget(store, "key")

    with Store.open(root) as store:
        old = all_refs(store)
    work()  # also loads every module
    with Store.open(root) as store:
        assert_gone(store)
        new = all_refs(store)
    number, outcomes = 1, set()
    while True:
        again()
        struck = strike(work, call, number, "signal=SIGKILL")
        with Store.open(root) as store:
            found = all_refs(store)
            assert found in (old, new), (call, number)
            outcomes.add(found == new)
            if found == new:
                assert_gone(store)
                assert store.header.never_capture == ["/key"]
            else:
                assert_whole(store)
                assert store.header.never_capture == []
                forget(store, "key")  # it can be begun again
                assert_gone(store)
            turn(store.session("s1"), root, "On", z=str(number))
            assert_whole(store)
        (root / "z").unlink()
        if struck.status == 0:
            break
        number += step
    assert outcomes == {True, False} or call in ("rmdir", "mkdir", "unlink")


@needs_strace
def test_a_full_disk_half_way_is_finished_when_there_is_room(root: Path) -> None:
    _prepared(root)

    def work() -> None:
        with Store.open(root) as store:
            forget(store, "key")

    number, finished = 1, 0
    while strike(work, "rename", number, "error=ENOSPC", forever=True).status != 0:
        with Store.open(root) as store:  # finishes what was begun, if anything was
            assert_whole(store)
            finished += not holds(store, SECRET)
        if finished:
            break
        number += 1
    assert finished
    with Store.open(root) as store:
        assert_gone(store)


def _forgettable(root: Path, store: Store) -> None:
    for number in range(3):
        turn(store.session("s1"), root, f"Turn {number}", a=f"{number}", key=f"{SECRET} {number}")


def test_somebodys_git_that_packs_meanwhile_loses_nothing(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-17. It puts all into a pack of its own, which is removed like all that is not ours, and would remove ours."""
    _forgettable(root, store)
    git(store.shadow.git_dir, "repack", "-adfq")
    remove = purge._remove
    struck: list[str] = []

    def slowly(path: str) -> None:
        if path.endswith((".idx", ".pack")):
            git(store.shadow.git_dir, "repack", "-adfq")
            struck.append(path)
        remove(path)

    monkeypatch.setattr(purge, "_remove", slowly)
    forget(store, "key")
    assert struck
    assert_gone(store)
    assert len(line(store, "s1")) == 4
    assert not list(Path(store.shadow.objects.pack_folder).glob("*.keep"))


def test_a_git_that_was_at_it_before_and_makes_the_very_same_pack_loses_nothing(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes away packs that it saw at its beginning: none that it has seen may be one that is counted on."""
    _forgettable(root, store)
    show = purge.show

    def known_and_taken(base: str, target: str) -> None:
        before = set(Path(store.shadow.objects.pack_folder).iterdir())
        show(base, target)
        for path in before:
            path.unlink()

    forget(store, "key")
    monkeypatch.setattr(purge, "show", known_and_taken)
    with store.changing():
        forgetting.follow_up(store, forgetting.PURGE)  # packs the same once more, into the very same bytes
    assert_gone(store)
    assert len(line(store, "s1")) == 4


def test_the_old_packs_stay_where_the_new_ones_are_not(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took them away: the next command goes on from what there is."""
    _forgettable(root, store)
    show = purge.show

    def shown_and_gone(base: str, target: str) -> None:
        show(base, target)
        os.unlink(f"{target}.pack")

    with monkeypatch.context() as patch, pytest.raises(Interrupted, match="took away"):
        patch.setattr(purge, "show", shown_and_gone)
        forget(store, "key")
    store.close()
    said = snap(root, "recover").stdout
    assert "cannot be undone" in said and "--back" not in said
    assert "cannot be undone" in snap(root, "recover", "--back", status=2).stderr
    with Store.open(root) as again:
        again.recover()
        assert_gone(again)
        assert len(line(again, "s1")) == 4


def test_where_the_disk_has_no_room_nothing_is_changed_and_turns_go_on(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forgettable(root, store)
    before, refs = _below(store.shadow.objects.folder), all_refs(store)
    free = os.statvfs(store.folder)
    with monkeypatch.context() as patch, pytest.raises(Failed, match="the disk has"):
        patch.setattr(fold, "SPARE", (free.f_blocks + 1) * free.f_frsize)
        forget(store, "key")
    assert (_below(store.shadow.objects.folder), all_refs(store)) == (before, refs)
    turn(store.session("s1"), root, "Goes on", b="1")
    forget(store, "key")
    assert_gone(store)


@pytest.mark.parametrize("way", ["git", "ourselves"])
def test_an_object_that_is_damaged_stops_it_before_anything_is_changed(
    root: Path, store: Store, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or every command after it would try to finish, in vain."""
    if way == "ourselves":
        monkeypatch.setattr(forgetting, "_packing", lambda _: pack_builder.without_git)
    _forgettable(root, store)
    rotten = git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"rotten").decode().strip()
    git(store.shadow.git_dir, "update-ref", "refs/tags/s1/rotten", rotten)  # a turn would store it again
    loose = Path(store.shadow.objects.loose_path(bytes.fromhex(rotten)))
    loose.chmod(0o600)
    loose.write_bytes(zlib.compress(b"blob 6\0rotten")[:-6])
    refs = all_refs(store)
    with pytest.raises(SnapstoreError):
        forget(store, "key")
    assert all_refs(store) == refs
    assert not Path(store.shadow.objects.folder, purge.WORK).exists()
    turn(store.session("s1"), root, "Goes on", b="1")


@pytest.mark.parametrize("place", ["pack", "info", "info/commit-graphs", "7f"])
def test_a_link_in_the_store_is_refused_and_nothing_behind_it_is_touched(
    root: Path, store: Store, tmp_path: Path, place: str
) -> None:
    _forgettable(root, store)
    there = Path(store.shadow.objects.folder, place)
    mine = tmp_path / "mine"
    if there.exists():
        there.rename(mine)
    write(mine / "thesis", "all of it")
    there.symlink_to(mine)
    before, refs = _below(str(mine)), all_refs(store)
    with pytest.raises(Unsafe, match="is a link"):
        forget(store, "key")
    assert (_below(str(mine)), all_refs(store)) == (before, refs)
    turn(store.session("s1"), root, "Goes on", b="1")


def test_a_link_where_the_purge_works_is_not_followed(root: Path, store: Store, tmp_path: Path) -> None:
    _forgettable(root, store)
    write(tmp_path / "mine" / "thesis", "all of it")
    Path(store.shadow.objects.folder, purge.WORK).symlink_to(tmp_path / "mine")
    Path(store.shadow.git_dir, "ORIG_HEAD").symlink_to(tmp_path / "mine" / "thesis")
    shutil.rmtree(f"{store.shadow.git_dir}/logs", ignore_errors=True)
    Path(store.shadow.git_dir, "logs").symlink_to(tmp_path / "mine")
    forget(store, "key")
    assert (tmp_path / "mine" / "thesis").read_text() == "all of it"
    assert not Path(store.shadow.git_dir, "logs").is_symlink()
    assert_gone(store)


def test_folders_among_the_packs_go_too(root: Path, store: Store) -> None:
    """git keeps one of its indexes as a folder of files."""
    _forgettable(root, store)
    objects = Path(store.shadow.objects.folder)
    for place in ("pack/multi-pack-index.d", "3c/odd", "info/commit-graphs/odd", purge.WORK + "/pack"):
        write(objects / place / "file", SECRET)
    forget(store, "key")
    assert_gone(store)


def test_refused_while_a_push_is_at_work(root: Path, store: Store) -> None:
    """It will refer to what it has written without the store's lock."""
    _forgettable(root, store)
    pushing = subprocess.Popen(["sleep", "60"])
    try:
        written = Path(store.shadow.objects.pack_folder, "pack-" + "1" * 40 + ".keep")
        written.write_bytes(b"%s%d\n" % (KEPT_BY, pushing.pid))
        with pytest.raises(Busy, match="push"):
            forget(store, "key")
    finally:
        pushing.kill()
        pushing.wait()
    forget(store, "key")
    assert_gone(store)


def test_nobody_waits_at_what_is_only_called_like_the_mark_of_a_push(root: Path, store: Store) -> None:
    _forgettable(root, store)
    os.mkfifo(Path(store.shadow.objects.pack_folder, "pack-" + "2" * 40 + ".keep"))
    forget(store, "key")
    assert_gone(store)


def test_refused_while_the_git_of_a_killed_forget_is_still_at_work(root: Path, store: Store, tmp_path: Path) -> None:
    """It saw all that there was when it began, and leaves a pack of it behind."""
    _forgettable(root, store)
    turn(store.session("s1"), root, "More", other=f"other {SECRET}")
    slow = tmp_path / "bin" / "git"
    ready, go = tmp_path / "ready", tmp_path / "go"
    os.mkfifo(ready)
    os.mkfifo(go)
    git_program = shutil.which("git")
    write(slow, f'#!/bin/sh\necho $$ > {ready}\nread word < {go}\nexec {git_program} "$@"\n', executable=True)
    path = f"{slow.parent}:{os.environ['PATH']}"
    killed = subprocess.Popen(
        [sys.executable, "-m", "snapstore", "forget", "other", "--yes"],
        cwd=root,
        env={**os.environ, "PATH": path, "SNAPSTORE_DAEMON": "0"},  # a warm process would finish the work
    )
    orphan = int(ready.read_text())
    killed.kill()
    killed.wait()
    with pytest.raises(Busy, match="still at work"):
        forget(store, "key")
    snap(root, "gc")
    assert Path(store.shadow.objects.folder, purge.WORK).exists()
    watching = os.pidfd_open(orphan)
    go.write_text("on\n")
    select.select([watching], [], [])
    os.close(watching)
    forget(store, "key", "other")
    assert_gone(store)


def test_turns_begin_while_packs_are_made_and_go_before(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing takes long where there is much, and an agent that is asked something meanwhile waits for nobody."""
    _forgettable(root, store)
    before = all_refs(store)

    def pack(*arguments: Any) -> list[str]:
        snap(root, "turn", "begin", "-m", "Meanwhile", "--session", "s2", SNAPSTORE_LOCK_TIMEOUT="0")
        return pack_builder.without_git(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Busy, match="a turn is open in session s2"):
        patch.setattr(forgetting, "_QUICK", 0)
        patch.setattr(forgetting, "_packing", lambda _: pack)
        forget(store, "key")
    assert {name: oid for name, oid in all_refs(store).items() if "s2" not in name and "notes" not in name} == {
        name: oid for name, oid in before.items() if "notes" not in name
    }
    assert not Path(store.shadow.objects.folder, purge.WORK).exists()
    write(root / "more", "1")
    snap(root, "turn", "end", "--session", "s2")
    assert [commit["subject"] for commit in line(store, "s2")][-1] == "Meanwhile"
    assert_whole(store)
    forget(store, "key")
    assert_gone(store)
    assert [commit["subject"] for commit in line(store, "s2")][-1] == "Meanwhile"


def test_it_gives_way_to_turns_a_few_times_and_then_comes_to_its_end(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forgettable(root, store)
    asked: list[int] = []

    def pack(*arguments: Any) -> list[str]:
        asked.append(len(asked))
        if len(asked) <= 3:
            command = ["sh", "-c", f"echo {len(asked)} > more; echo {SECRET} {len(asked)} > key"]
            snap(root, "run", "-q", "-m", f"Meanwhile {len(asked)}", "--session", "s2", "--", *command)
        else:
            snap(root, "turn", "begin", "-m", "Waits", "--session", "s2", status=11, SNAPSTORE_LOCK_TIMEOUT="0")
        return pack_builder.without_git(*arguments)

    monkeypatch.setattr(forgetting, "_QUICK", 0)
    monkeypatch.setattr(forgetting, "_packing", lambda _: pack)
    forgotten = forget(store, "key")
    assert len(asked) == 4 and forgotten.never == store.header.never_capture == ["/key"]
    told = [commit["subject"] for commit in line(store, "s2")]
    assert [subject for subject in told if subject.startswith("Meanwhile")] == [f"Meanwhile {n}" for n in (1, 2, 3)]
    assert_gone(store)
    assert_cache_adds_up(store)


def test_whoever_only_looks_meanwhile_is_in_nobodys_way(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forgettable(root, store)

    def pack(*arguments: Any) -> list[str]:
        for command in ("log", "status", "tree", "branches", "du"):
            snap(root, command, SNAPSTORE_LOCK_TIMEOUT="0")
        return pack_builder.without_git(*arguments)

    monkeypatch.setattr(forgetting, "_QUICK", 0)
    monkeypatch.setattr(forgetting, "_packing", lambda _: pack)
    forget(store, "key")
    assert_gone(store)
    assert_cache_adds_up(store)


def test_packs_are_made_once(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _forgettable(root, store)
    calls: list[object] = []

    def pack(*arguments: Any) -> list[str]:
        calls.append(arguments)
        return pack_builder.without_git(*arguments)

    monkeypatch.setattr(forgetting, "_packing", lambda _: pack)
    forget(store, "key")
    assert len(calls) == 1
    assert_gone(store)


def _below(folder: str) -> list[Path]:
    return sorted(Path(folder).rglob("*"))


# The command.


def test_the_command_says_what_went_and_what_is_out_of_reach(root: Path) -> None:
    snap(root, "init")
    snap(root, "run", "-m", "One", "--", "sh", "-c", f"echo {SECRET} > .env; echo 1 > a")
    refused = snap(root, "forget", ".env", status=2)
    assert "--yes" in refused.stderr
    preview = snap(root, "forget", ".env", "--dry-run").stdout
    assert "Would forget 1 file in 1 version" in preview and "Nothing was changed." in preview
    said = snap(root, "forget", ".env", "--yes").stdout
    assert "Forgot 1 file" in said and "Never captured again: /.env" in said and "Out of reach: backups" in said
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
