"""The page's server: what it tells, what it does to the files, and that it tells of it (S0, S1, S2, S4 over HTTP)."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agents import ID
from helpers import all_refs, assert_whole, bit_by_bit, git, living_child, on_disk, turn, write
from test_conversations import Talking
from webserver import Client, Serving, serving

from snapstore import Store
from snapstore.surface.records.web import PageTreeRecord
from snapstore.timeline.record.create_store import create_store

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def told(store: Store, root: Path) -> Store:
    """Three turns of a person at a shell: a file grows, a second one comes."""
    session = store.session("shell")
    turn(session, root, "First", **{"a.txt": "one\n"})
    turn(session, root, "Second line, <b>please</b>", **{"a.txt": "one\ntwo\n"})
    turn(session, root, "Third", **{"a.txt": "one\ntwo\nthree\n", "sub__b.txt": "b\n"})
    return store


@pytest.fixture
def server(told: Store, root: Path) -> Iterator[Serving]:
    with serving(root) as found:
        yield found


@pytest.fixture
def page(server: Serving) -> Client:
    return server.client()


# Reading.


def test_what_a_page_reads_is_what_the_command_line_prints(page: Client, root: Path) -> None:
    """The same records: sessions, tree, show and status, and where to say that changes start from (C15)."""

    def printed(*words: str) -> Any:
        run = [sys.executable, "-m", "snapstore", *words, "--json"]
        return json.loads(subprocess.run(run, cwd=root, capture_output=True, check=True).stdout)

    sessions = page.get("/api/sessions")
    assert sessions["sessions"] == printed("sessions")["sessions"]
    assert (sessions["root"], sessions["active"]) == (str(root), "shell")
    tree = page.get("/api/sessions/shell/tree")
    wanted = printed("tree", "--all")
    assert tree["nodes"] == wanted["nodes"]
    assert (tree["expected"], tree["cursor"], tree["turn"]) == (wanted["cursor"], wanted["cursor"], 3)
    assert (tree["max_branches"], tree["warn_branches"]) == (20, 15), "S0-48, S0-49"
    assert PageTreeRecord.model_validate(tree)
    for node in tree["nodes"]:
        shown = printed("show", node["commit"])
        del shown["patch"], shown["lines"]
        assert page.get(f"/api/sessions/shell/nodes/{node['commit']}") == shown
    commits = ",".join(node["commit"] for node in tree["nodes"])
    assert [node["turn"] for node in page.get("/api/sessions/shell/nodes", commits=commits)["nodes"]] == [None, 1, 2, 3]
    status = page.get("/api/sessions/shell/status")
    wanted = printed("status")
    del wanted["warm_process"]  # the page does not ask for it
    assert {**status, "size_bytes": 0} == {**wanted, "size_bytes": 0}


def test_status_looks_at_the_disk_only_when_asked(page: Client, told: Store, root: Path) -> None:
    write(root / "a.txt", "edited by hand\n")
    before = bit_by_bit(Path(told.state))
    assert page.get("/api/sessions/shell/status")["edits"] == []
    assert bit_by_bit(Path(told.state)) == before, "a look that reads writes nothing"
    assert page.get("/api/sessions/shell/status", edits=1)["edits"] == ["a.txt"]


def test_differences_and_images(page: Client, root: Path, told: Store) -> None:
    session = told.session("shell")
    with session.turn("Pictures"):
        (root / "p.png").write_bytes(PNG)
        (root / "evil.png").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    files = page.get("/api/sessions/shell/diff", a="0", b="3")["files"]
    assert [(file["path"], file["change"], file["added"]) for file in files] == [
        ("a.txt", "A", 3),
        ("sub/b.txt", "A", 1),
    ]
    one = page.get("/api/sessions/shell/diff", a="1", b="2", path="a.txt")
    assert one["patch"].endswith("@@ -1 +1,2 @@\n one\n+two\n")
    assert one["rows"][-3:] == [["hunk", None, None, "@@ -1 +1,2 @@"], ["same", 1, 1, "one"], ["new", None, 2, "two"]]
    assert (one["old"]["type"], one["old"]["size"], one["new"]["size"]) == ("text", 4, 8)
    write(root / "a.txt", "on disk\n")
    disk = page.get("/api/sessions/shell/diff", a="@", b="disk", path="a.txt")
    assert "+on disk" in disk["patch"] and not disk["new"]["stored"]

    shown = page.get("/api/sessions/shell/diff", a="3", b="4", path="p.png")
    assert (shown["binary"], shown["old"], shown["new"]["type"]) == (True, None, "image/png")
    image = page.http.get(f"/api/blobs/{shown['new']['oid']}?type=image")
    assert (image.content, image.headers["content-type"]) == (PNG, "image/png")
    evil = page.get("/api/sessions/shell/diff", a="3", b="4", path="evil.png")["new"]
    assert evil["type"] == "text", "what a file is, its bytes say and not its name"
    page.get(f"/api/blobs/{evil['oid']}", 415)
    page.get(f"/api/blobs/{'0' * 40}", 404)
    page.get("/api/sessions/shell/diff", 404, a="1", b="2", path="nowhere.txt")


def test_search_finds_prompts_paths_and_replies(page: Client, told: Store, root: Path) -> None:
    session = told.session("shell")
    open_turn = session.begin("Fourth")
    open_turn.reply("I looked at the <Login> form.")
    open_turn.end()

    def found(text: str) -> list[tuple[str, int]]:
        return [(hit["where"], hit["turn"]) for hit in page.get("/api/sessions/shell/search", q=text)["hits"]]

    assert found("PLEASE") == [("prompt", 2)]
    assert found("login") == [("reply", 4)]
    assert found("sub/b") == [("path", 3)]
    assert found("a.txt") == [("path", 3), ("path", 2), ("path", 1)]
    assert found("no such thing") == []
    page.get("/api/sessions/shell/search", 400, q="")


def test_numbers_of_use(page: Client, told: Store, root: Path) -> None:
    """S1-67: how many sessions went back, how many ways on there are, what was refused."""
    page.move("shell", "undo")
    turn(told.session("shell"), root, "Another way", **{"c.txt": "c\n"})
    turn(told.session("other"), root, "Elsewhere", **{"d.txt": "d\n"})
    write(root / "c.txt", "by hand\n")
    page.move("shell", "undo", 409)
    found = page.get("/api/stats", check=1)
    assert (found["sessions"], found["sessions_rewound"], found["rewound_percent"]) == (2, 1, 50.0)
    assert (found["branches"], found["branches_per_session"]) == (3, 1.5)
    assert (found["moves"], found["refused_moves"]) == (1, 1)
    assert found["size_bytes"] > 0 and found["health"]["ok"] and found["health"]["checked"]


# Moving.


def test_undo_and_redo_to_the_byte(page: Client, root: Path, told: Store) -> None:
    """S0-01, S0-15, S0-20, S0-43: a preview changes nothing and names the files; the move does what it said."""
    whole = on_disk(root)
    preview = page.post("/api/sessions/shell/preview", move="undo", count=2)
    assert (preview["preview"], preview["turns_undone"], preview["files_reverted"]) == (True, 2, ["a.txt", "sub/b.txt"])
    assert on_disk(root) == whole
    moved = page.move("shell", "undo", count=2)
    assert {**moved, "preview": True, "operation": None} == {**preview, "operation": None}
    assert on_disk(root) == {b"a.txt": (b"100644", b"one\n")}
    status = page.get("/api/sessions/shell/status")
    assert (status["turn"], status["undone_turns"]) == (1, 2)
    undone = [node["turn"] for node in page.get("/api/sessions/shell/tree")["nodes"] if node["undone"]]
    assert undone == [2, 3], "S4-21: they are still there"
    page.move("shell", "redo")
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    page.move("shell", "redo", all=True)
    assert on_disk(root) == whole
    assert_whole(told)


def test_a_move_is_refs_and_a_checkout(page: Client, root: Path, told: Store) -> None:
    """P-03: undo, redo and switch move the cursor and write files; no branch, no commit and no blob comes, goes or
    changes. What the disk really holds is compared first."""
    page.move("shell", "goto", address="1")
    turn(told.session("shell"), root, "Other way", **{"other.txt": "o\n"})

    def stored() -> tuple[dict[str, str], list[bytes]]:
        git_dir = told.shadow.git_dir
        objects = git(git_dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
        return {ref: oid for ref, oid in all_refs(told).items() if "/cursor/" not in ref}, objects

    before, whole = stored(), on_disk(root)
    for move, fields in [
        ("undo", {}),
        ("redo", {}),
        ("switch", {"address": "main"}),
        ("switch", {"address": "main-2"}),
    ]:
        page.move("shell", move, **fields)
        assert stored() == before
    assert on_disk(root) == whole
    write(root / "other.txt", "by hand\n")
    page.move("shell", "undo", 409)
    assert stored() == before and (root / "other.txt").read_text() == "by hand\n"


def test_goto_switch_revert_apply_and_restore(page: Client, root: Path, told: Store) -> None:
    """S0-29, S0-30, S0-31, S0-32: another way on is a branch, and one goes there and back, to a turn of it too."""
    page.move("shell", "goto", address="2")
    turn(told.session("shell"), root, "Another way", **{"c.txt": "c\n"})
    page.move("shell", "switch", address="main")
    assert sorted(on_disk(root)) == [b"a.txt", b"sub/b.txt"]
    page.move("shell", "switch", address="main-2:3")
    assert sorted(on_disk(root)) == [b"a.txt", b"c.txt"]
    made = page.move("shell", "revert", address="2")
    assert (root / "a.txt").read_text() == "one\n" and made["to"]["kind"] == "revert"
    page.move("shell", "apply", address="main:2")
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    page.move("shell", "restore", address="main", paths=["sub/b.txt"])
    assert (root / "sub/b.txt").read_text() == "b\n"
    assert_whole(told)


def test_a_conflict_changes_nothing_and_is_settled_file_by_file(page: Client, root: Path) -> None:
    """S0-44, S0-45, S0-46, M-19: refused as a whole, with each file's three sides; then mine, theirs, or merged, which
    needs no choice where it is clean."""
    write(root / "a.txt", "zero\none\ntwo\nthree\n")
    write(root / "sub/b.txt", "mine\n")
    whole = on_disk(root)
    refused = page.move("shell", "undo", 409)
    assert refused["error"] == "conflict" and "stale" not in refused
    assert [item["path"] for item in refused["conflicts"]] == ["sub/b.txt"]
    refused = page.move("shell", "undo", 409, on_conflict="refuse")
    assert [item["path"] for item in refused["conflicts"]] == ["a.txt", "sub/b.txt"]
    assert on_disk(root) == whole
    previewed = page.post("/api/sessions/shell/preview", move="undo")
    settled = [(item["path"], item["settled_by"]) for item in previewed["conflicts"]]
    assert settled == [("a.txt", "merge"), ("sub/b.txt", None)]

    sides = page.post("/api/sessions/shell/merge", move="undo", path="a.txt")
    assert (sides["base"], sides["mine"], sides["theirs"]) == (
        "one\ntwo\nthree\n",
        "zero\none\ntwo\nthree\n",
        "one\ntwo\n",
    )
    assert (sides["merged"], sides["clean"]) == ("zero\none\ntwo\n", True)
    other = page.post("/api/sessions/shell/merge", move="undo", path="sub/b.txt")
    assert (other["mine"], other["theirs"], other["merged"], other["clean"]) == ("mine\n", None, None, False)
    assert on_disk(root) == whole

    page.post("/api/sessions/shell/preview", {"move": "undo", "ours": ["nowhere"]}, 400)
    done = page.move("shell", "undo", ours=["sub/b.txt"])
    assert done["safety_ref"] and done["merged"] == ["a.txt"]
    assert (root / "a.txt").read_text() == "zero\none\ntwo\n"
    assert (root / "sub/b.txt").read_text() == "mine\n"


def test_a_way_is_chosen_for_one_file_as_it_was_seen(page: Client, root: Path, told: Store) -> None:
    """Nobody else's file is settled by it, nor the same file with other bytes; what would be written can be seen."""
    write(root / "a.txt", "mine\ntwo\nthree\n")
    write(root / "sub/b.txt", "mine\n")
    shown = page.post("/api/sessions/shell/preview", move="undo", merge=["a.txt"], theirs=["sub/b.txt"])
    found = {item["path"]: item["found"] for item in shown["conflicts"]}
    assert {item["path"]: item["settled_by"] for item in shown["conflicts"]} == {"a.txt": "merge", "sub/b.txt": "force"}
    body = {"move": "undo", "merge": ["a.txt"], "theirs": ["sub/b.txt"], "path": "a.txt"}
    patch = page.post("/api/sessions/shell/preview/diff", body)["patch"]
    assert [line for line in patch.splitlines()[4:] if line[0] in "+-"] == ["-three"]
    gone = page.post("/api/sessions/shell/preview/diff", {**body, "path": "sub/b.txt"})
    assert (gone["change"], gone["old"]["stored"], gone["new"]) == ("D", False, None)
    page.post("/api/sessions/shell/preview/diff", {**body, "path": "nobody.txt"}, 404)
    # Only one of the two is settled: the other stands in the way.
    alone = page.move("shell", "undo", 409, merge=["a.txt"])
    assert [item["path"] for item in alone["conflicts"]] == ["sub/b.txt"]
    write(root / "sub/b.txt", "mine, and more\n")
    whole = on_disk(root)
    again = page.move("shell", "undo", 409, merge=["a.txt"], theirs=["sub/b.txt"], seen=found)
    assert [item["path"] for item in again["conflicts"]] == ["sub/b.txt"]
    assert on_disk(root) == whole
    page.move("shell", "undo", 400, merge=["a.txt"], theirs=["a.txt"])
    page.move("shell", "undo", 400, markers=["nobody.txt"])
    assert page.move("shell", "restore", 404, address="1", paths=[":(glob)*"])["path"] == ":(glob)*"
    found["sub/b.txt"] = again["conflicts"][0]["found"]
    page.move("shell", "undo", merge=["a.txt"], theirs=["sub/b.txt"], seen=found)
    assert (root / "a.txt").read_text() == "mine\ntwo\n" and not (root / "sub/b.txt").exists()
    assert_whole(told)


def test_a_yes_is_for_the_place_that_was_shown(page: Client, root: Path, told: Store) -> None:
    """The cursor's commit is the same, but another branch stands on it: what was agreed to leads elsewhere by now."""
    session = told.session("shell")
    page.move("shell", "goto", address="1")
    turn(session, root, "Other way", **{"other.txt": "o\n"})
    page.move("shell", "switch", address="main")
    page.move("shell", "goto", address="1")
    shown = page.post("/api/sessions/shell/preview", move="redo")
    seen = {"expected": page.expected("shell"), "to": shown["to"]["commit"], "branch": shown["branch"]}
    session.move(session.plan_switch("main-2"))
    session.move(session.plan_undo(1))
    assert page.expected("shell") == seen["expected"]
    whole = on_disk(root)
    assert page.move("shell", "redo", 409, **seen)["stale"]
    assert on_disk(root) == whole
    session.move(session.plan_switch("main"))
    session.move(session.plan_undo(2))
    page.move("shell", "redo", **seen)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_moves_that_mean_nothing_are_refused(page: Client, root: Path) -> None:
    """A field without a meaning for the move is a mistake: left out, it would be another move than the one meant."""
    whole = on_disk(root)
    wrong: list[dict[str, Any]] = [
        {"move": "undo", "count": 0},
        {"move": "undo", "count": -1},
        {"move": "undo", "count": "10x"},
        {"move": "undo", "count": 1, "address": "2"},
        {"move": "undo", "number": 1},
        {"move": "goto"},
        {"move": "goto", "address": "2", "count": 1},
        {"move": "restore", "address": "2"},
        {"move": "revert", "address": "2", "exact": True},
        {"move": "undo", "exact": True, "scope": "conversation"},
        {"move": "undo", "ours": ["a.txt"], "theirs": ["a.txt"]},
        {"move": "explode"},
    ]
    for body in wrong:
        refused = page.post("/api/sessions/shell/move", {"expected": page.expected("shell"), **body}, 400)
        assert refused["error"] == "usage" and refused["hint"], body
    page.post("/api/sessions/shell/move", {"move": "undo"}, 400)  # without what it expects
    more = page.post("/api/sessions/shell/preview", move="undo", count=10**9)
    assert (more["turns_undone"], more["notes"]) == (3, ["There were only 3 turns to undo."])
    assert page.move("shell", "goto", 404, address="99")["error"] == "unknown"
    assert page.move("shell", "restore", 403, address="2", paths=["../x"])["error"] == "unsafe"
    assert page.get("/api/sessions/nobody/tree", 404)["error"] == "unknown"
    assert on_disk(root) == whole


# Stale requests and many hands.


def test_what_was_asked_in_view_of_another_state_is_refused(page: Client, root: Path, told: Store) -> None:
    """C15, G-08: every change names where the session stood; moved meanwhile, nothing happens."""
    seen = page.expected("shell")
    turn(told.session("shell"), root, "Meanwhile", **{"e.txt": "e\n"})
    whole, refs = on_disk(root), all_refs(told)
    bodies: dict[str, dict[str, Any]] = {
        "/api/sessions/shell/move": {"move": "undo"},
        "/api/sessions/shell/preview": {"move": "undo"},
        "/api/sessions/shell/merge": {"move": "undo", "path": "a.txt"},
        "/api/sessions/shell/checkpoints": {"name": "here"},
        "/api/sessions/shell/branches/main/rename": {"to": "other"},
        "/api/sessions/shell/branches/main/archive": {},
        "/api/sessions/shell/branches/main/unarchive": {},
        "/api/sessions/shell/branches/main/promote": {},
        "/api/sessions/shell/branches/main/delete": {},
        "/api/sessions/shell/branches/delete": {"names": ["main"]},
        "/session/shell/undo": {},
        "/session/shell/revert": {},
        "/session/shell/unrevert": {},
        "/api/events": {"type": "rewind_session", "sessionId": "shell", "rewindToTurn": 1},
        "/api/undo/write-file": {"filePath": "a.txt", "content": "x"},
        "/api/undo/delete-file": {"filePath": "a.txt"},
        "/api/undo/apply-edit": {"filePath": "a.txt", "oldString": "one", "newString": "x"},
    }
    for path, body in bodies.items():
        refused = page.post(path, {**body, "expected": seen}, 409)
        assert (refused["error"], refused["stale"]) == ("conflict", True), path
        assert refused["expected"] == page.expected("shell")
    assert (on_disk(root), all_refs(told)) == (whole, refs)


def test_of_two_pages_that_undo_at_once_one_does(server: Serving, root: Path, told: Store) -> None:
    """G-08: both saw turn 3; one turn is undone, not two, and the other page is told."""
    pages = [server.client(), server.client()]
    seen = pages[0].expected("shell")
    together = threading.Barrier(2)
    statuses: list[int] = []

    def undo(page: Client) -> None:
        together.wait()
        body = {"move": "undo", "expected": seen}
        statuses.append(page.http.post("/api/sessions/shell/move", json=body).status_code)

    threads = [threading.Thread(target=undo, args=(page,)) for page in pages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409]
    assert on_disk(root) == {b"a.txt": (b"100644", b"one\ntwo\n")}
    assert_whole(told)


def test_an_open_turn_stands_in_the_way_and_is_told(page: Client, told: Store, root: Path) -> None:
    told.session("shell").begin("Still at it")
    assert page.get("/api/sessions/shell/status")["open_turns"][0]["prompt"] == "Still at it"
    refused = page.move("shell", "undo", 423)
    assert refused["error"] == "busy" and "--cancel" not in refused["hint"]


def test_a_turn_that_was_cut_off_does_not_stand_in_the_way(
    root: Path, nobodys_home: Path, server: Serving, told: Store
) -> None:
    """G-37, C15: Esc tells no hook. The page sees that nobody works on the turn; asked to move, the server closes it,
    and what was asked in view of the turn before it is stale, not done."""
    agent = Talking(root, nobodys_home)
    agent.start()
    agent.whole_turn("Prompt 1", [("f1.txt", "1\n")])
    agent.prompt("Cut off")
    agent.write("half.txt", "1\n")
    page = server.client()

    def status() -> list[str]:
        return [one["status"] for one in page.get(f"/api/sessions/{ID}/status")["open_turns"]]

    assert status() == ["open"]
    seen = page.expected(ID)
    page.post(f"/api/sessions/{ID}/preview", {"move": "undo", "expected": seen}, 423)
    agent.interrupt()
    assert status() == ["interrupted"]
    assert page.post(f"/api/sessions/{ID}/preview", {"move": "undo", "expected": seen}, 409)["stale"]
    assert (root / "half.txt").exists() and status() == []
    assert page.move(ID, "undo")["prompt"] == "Cut off"
    assert not (root / "half.txt").exists() and (root / "f1.txt").exists()


# Live.


def test_an_event_comes_before_a_poll_would(server: Serving, told: Store, root: Path) -> None:
    """What another hand does reaches a page that listens sooner than one that asks every 250 ms, in the same run."""
    session = told.session("shell")
    asked: dict[str, float] = {}  # when the page that asks first saw each commit
    over = threading.Event()

    def ask() -> None:
        page = server.client()
        while not over.is_set():
            asked.setdefault(page.expected("shell"), time.monotonic())
            over.wait(0.25)

    asking = threading.Thread(target=ask)
    told_at: dict[str, float] = {}
    with server.events() as events:
        asking.start()
        try:
            for number in range(8):
                commit = turn(session, root, f"Turn {number}", **{"live.txt": f"{number}\n"})
                _, told_at[commit] = events.until("session.updated", expected=commit)
                while commit not in asked:
                    assert asking.is_alive()
                    over.wait(0.01)
        finally:
            over.set()
            asking.join()
    gained = [asked[commit] - when for commit, when in told_at.items()]
    assert sum(gained) > 0, gained


def test_pages_are_told_of_forks_and_of_the_agents_new_session(
    root: Path, nobodys_home: Path, server: Serving, told: Store
) -> None:
    """S1-26, S1-29, S4-10, C24: a rewind is asked for as a message; session_created brings the new session, and
    when the agent speaks in it, session.materialized. The old transcript stays as it is (S4-01)."""
    page = server.client()
    with server.events() as events:
        assert set(events.hello["sessions"]) == {"shell"}
        agent = Talking(root, nobodys_home)
        agent.start()
        agent.whole_turn("Prompt 1", [("f1.txt", "1\n")], "Reply 1")
        agent.whole_turn("Prompt 2", [("f2.txt", "2\n")], "Reply 2")
        name = agent.session
        events.until("session_created", session=name, id=None)
        events.until("session.materialized", id=ID)
        transcript = agent.file.read_bytes()

        rewind = {"type": "rewind_session", "sessionId": ID, "rewindToTurn": 1}
        page.post("/api/events", {**rewind, "sessionId": "nobody"}, 404)  # S1-27
        page.post("/api/events", {**rewind, "rewindToTurn": 9}, 400)
        page.post("/api/events", {**rewind, "rewindToTurn": -1}, 400)
        page.post("/api/events", {**rewind, "rewindToTurn": "../x"}, 400)
        page.post("/api/events", {**rewind, "sessionId": "../x"}, 403)  # S1-63
        done = page.post("/api/events", rewind)
        assert not (root / "f2.txt").exists() and (root / "f1.txt").exists()
        fork = done["fork"]
        assert (fork["event"], fork["parentSessionId"], fork["rewindFromTurn"]) == ("session_created", ID, 1)
        created, _ = events.until("session_created", id=fork["id"])
        assert (created["session"], created["parentSessionId"]) == (name, ID)

        known = page.get("/api/sessions")["sessions"]
        talks = next(line["conversations"] for line in known if line["session"] == name)
        assert {talk["sessionId"] for talk in talks} == {ID, fork["id"]}
        other = Talking(root, nobodys_home, fork["id"])
        other.turn = 2
        other.start("resume")
        other.whole_turn("Prompt 2 again", [("f3.txt", "3\n")])
        events.until("session.materialized", id=fork["id"])
    assert agent.file.read_bytes() == transcript
    assert page.get("/api/sessions")["agents"]["claude"]["fork"] == "at-turn"


def test_a_fork_that_cannot_be_made_moves_nothing(page: Client, root: Path, told: Store) -> None:
    """S1-65: nothing half-done."""
    whole = on_disk(root)
    expected = page.expected("shell")
    page.post("/api/sessions/shell/fork", {"address": "1", "expected": expected}, 404)
    assert on_disk(root) == whole and page.expected("shell") == expected


def test_a_fork_from_the_page_with_a_title(root: Path, nobodys_home: Path, server: Serving, told: Store) -> None:
    """S1-21: the agent is asked to resume a session of its own, and the files are those of the fork's turn."""
    agent = Talking(root, nobodys_home)
    agent.start()
    agent.whole_turn("Prompt 1", [("f1.txt", "1\n")], "Reply 1")
    agent.whole_turn("Prompt 2", [("f2.txt", "2\n")], "Reply 2")
    page = server.client()
    expected = page.expected(agent.session)
    path = f"/api/sessions/{agent.session}/fork"
    page.post(path, {"address": "1", "expected": "0" * 40}, 409)
    fork = page.post(path, {"address": "1", "title": "Another way", "expected": expected})["fork"]
    assert (fork["title"], fork["command"][:2]) == ("Another way", ["claude", "--resume"])
    assert fork["command"] == ["claude", "--resume", fork["id"]] and fork["id"] != ID
    assert Path(fork["path"]).is_file() and not (root / "f2.txt").exists()
    status = page.get(f"/api/sessions/{ID}/status")
    assert status["conversation"]["revert"]["turn"] == 2, "S4-14, by the agent's own id"


# Branches and checkpoints.


def test_branches_are_named_archived_promoted_and_deleted(page: Client, root: Path, told: Store) -> None:
    whole = None
    for number in range(2):
        page.move("shell", "goto", address="1")
        turn(told.session("shell"), root, f"Way {number}", **{f"w{number}.txt": "w\n"})
        whole = on_disk(root)
    expected = page.expected("shell")

    def change(path: str, status: int = 200, **fields: Any) -> Any:
        return page.post(f"/api/sessions/shell/{path}", {"expected": expected, **fields}, status)

    def branches() -> dict[str, str]:
        return {one["name"]: one["state"] for one in page.get("/api/sessions/shell/tree")["branches"]}

    assert branches() == {"main": "listed", "main-2": "listed", "main-3": "current"}
    assert change("branches/main-2/rename", to="login")["operation"]
    change("branches/login/rename", 403, to="../x")
    change("branches/login/rename", 400, to="main")
    change("branches/main/archive")
    assert branches() == {"main": "archived", "login": "listed", "main-3": "current"}
    assert set(page.get("/api/sessions/shell/status")["branches"]) == {"login", "main-3"}
    change("branches/main/unarchive")
    change("branches/main-3/delete", 400)  # stood on
    change("branches/nobody/delete", 404)
    change("checkpoints", name="here", address="1")
    change("checkpoints", 400, name="here", address="2")
    assert [node["checkpoints"] for node in page.get("/api/sessions/shell/tree")["nodes"]][1] == ["here"]
    compared = page.get("/api/sessions/shell/compare", a="login", b="main-3")
    assert (compared["parted_at"]["turn"], compared["files"][0]["path"]) == (1, "w0.txt")
    change("checkpoints/here/delete")
    change("checkpoints/here/delete", 404)
    change("branches/delete", names=["main", "login"])
    assert branches() == {"main-3": "current"}
    change("branches/main-3/promote")
    assert branches() == {"main": "current"}
    assert on_disk(root) == whole, "names only: no file was touched"
    assert_whole(told)


# The seeds' addresses.


def test_undo_state_is_what_the_store_says(root: Path, nobodys_home: Path, server: Serving, told: Store) -> None:
    """S0-08, S0-09, S0-10, S0-11, S0-53: the whole state by the agent's id, branches with turns and raw lines;
    saving agrees with it, or is refused."""
    agent = Talking(root, nobodys_home)
    agent.start()
    for number in (1, 2, 3):
        agent.whole_turn(f"Prompt {number}", [(f"f{number}.txt", f"{number}\n")], f"Reply {number}")
    page = server.client()
    state = page.get(f"/api/undo-state/{ID}")
    assert (state["sessionId"], state["currentTurnIndex"], state["totalTurns"]) == (ID, 3, 3)
    assert (state["branches"], state["activeBranchId"]) == ([], None)
    page.post(f"/session/{ID}/undo", count=2)
    assert page.get(f"/api/undo-state/{ID}")["currentTurnIndex"] == 1
    agent.whole_turn("Another 2", [("g.txt", "g\n")], "Reply")
    state = page.get(f"/api/undo-state/{ID}")
    assert (state["currentTurnIndex"], state["totalTurns"], state["activeBranchId"]) == (2, 2, "main-2")
    old = next(branch for branch in state["branches"] if branch["id"] == "main")
    assert (old["branchPointTurnIndex"], old["label"]) == (1, "Branch from turn 1")
    assert [one["index"] for one in old["turns"]] == [2, 3]
    first = old["turns"][0]
    assert (first["userMessage"], first["assistantText"]) == ("Prompt 2", ["Reply 2"])
    assert first["thinkingBlocks"] == ["Thinking of Reply 2"]
    assert first["toolCalls"] == [{"type": "Write", "filePath": str(root / "f2.txt"), "content": "2\n"}]
    assert any("Prompt 3" in line for line in old["jsonlLines"])

    saved = {name: state[name] for name in ("sessionId", "currentTurnIndex", "totalTurns", "activeBranchId")}
    assert page.post(f"/api/undo-state/{ID}", saved) == state
    refused = page.post(f"/api/undo-state/{ID}", {**saved, "currentTurnIndex": 1}, 409)
    assert refused["state"]["currentTurnIndex"] == 2
    assert page.get(f"/api/undo-state/{ID}") == state


def test_file_operations_meet_the_same_conflicts(page: Client, root: Path, told: Store, tmp_path: Path) -> None:
    """S0-54, S0-55, S0-56, S0-57, S0-44, S0-45, S0-46, G-09: an edit forwards and back, a write, a delete; each a
    node that undo takes back; files that are not as they should be, or not the project's, are left alone."""
    edit = {"filePath": "a.txt", "oldString": "two\n", "newString": "2\n"}
    page.post("/api/undo/apply-edit", edit)
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"
    page.post("/api/undo/apply-edit", edit, 409)
    page.post("/api/undo/apply-edit", {**edit, "reverse": True})
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    write(root / "a.txt", "one\ntwo\nthree\nby hand\n")
    page.post("/api/undo/apply-edit", {**edit, "filePath": str(root / "a.txt")})
    assert (root / "a.txt").read_text() == "one\n2\nthree\nby hand\n", "the edit is in, and the user's stays"
    kinds = [node["kind"] for node in page.get("/api/sessions/shell/tree")["nodes"]]
    assert kinds[-4:] == ["restore", "restore", "edits", "restore"]

    page.post("/api/undo/write-file", filePath="new/n.txt", content="n\n")
    assert (root / "new/n.txt").read_text() == "n\n"
    assert page.post("/api/undo/verify-file", filePath="new/n.txt", content="n\n")["matches"]
    assert page.post("/api/undo/verify-file", filePath="a.txt", contains="by hand")["matches"]
    assert not page.post("/api/undo/verify-file", filePath="a.txt", contains="nowhere")["matches"]
    assert page.post("/api/undo/verify-file", filePath="gone.txt", content="")["exists"] is False
    write(root / "new/n.txt", "mine\n")
    whole = on_disk(root)
    page.post("/api/undo/write-file", {"filePath": "new/n.txt", "content": "theirs\n"}, 409)
    page.post("/api/undo/delete-file", {"filePath": "new/n.txt"}, 409)
    page.post("/api/undo/delete-file", {"filePath": "new/n.txt", "content": "n\n"}, 409)
    assert on_disk(root) == whole
    write(root / "new/n.txt", "n\n")
    page.post("/api/undo/delete-file", filePath="new/n.txt", content="n\n")
    assert not (root / "new/n.txt").exists()
    page.move("shell", "undo")
    assert (root / "new/n.txt").read_text() == "n\n"

    # Nothing is claimed that did not happen: what no turn knows is not deleted, and a file by hand is not "written".
    write(root / "unknown.txt", "by hand\n")
    write(root / "new/n.txt", "by hand\n")
    page.post("/api/undo/delete-file", {"filePath": "unknown.txt", "content": "by hand\n"}, 409)
    page.post("/api/undo/write-file", {"filePath": "new/n.txt", "content": "n\n"}, 409)
    assert page.post("/api/undo/delete-file", filePath="nobody.txt")["removed"] == []
    write(root / "new/n.txt", "n\n")

    outside = tmp_path / "outside.txt"
    write(outside, "secret")
    os.symlink(outside, root / "link")
    os.symlink(tmp_path, root / "folder")
    whole = on_disk(root)
    for path in (str(outside), "../outside.txt", ".git/config", "folder/outside.txt", "sub/../../x"):
        page.post("/api/undo/write-file", {"filePath": path, "content": "x"}, 403)
        page.post("/api/undo/delete-file", {"filePath": path}, 403)
        page.post("/api/undo/verify-file", {"filePath": path, "contains": "s"}, 403)
    page.post("/api/undo/verify-file", {"filePath": "link", "contains": "s"}, 403)
    page.post("/api/undo/write-file", {"filePath": "link", "content": "x"}, 409)
    assert outside.read_text() == "secret" and on_disk(root) == whole
    assert_whole(told)


def test_a_file_that_an_agent_keeps_for_itself_is_refused(
    told: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C1, S1-09: such a write once succeeded and wrote nothing."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(root / "agent"))
    path = "agent/projects/-x/a.jsonl"
    write(root / path, "{}\n")
    with serving(root) as found:
        page = found.client()
        for words in (
            ("write-file", {"content": "x"}),
            ("delete-file", {"content": "{}\n"}),
            ("apply-edit", {"oldString": "{}", "newString": "x"}),
        ):
            refusal = page.post(f"/api/undo/{words[0]}", {"filePath": path, **words[1]}, 403)
            assert refusal["error"] == "unsafe" and "only another program writes" in refusal["message"]
    assert (root / path).read_text() == "{}\n"
    assert_whole(told)


def test_the_second_seeds_undo(page: Client, root: Path, told: Store) -> None:
    """S2-08, S2-11, S2-12, S2-13, S2-14, S2-15, C3: one turn remains unless the caller says otherwise; nothing to undo
    is no error."""
    done = page.post("/session/shell/undo")
    assert (done["turns_undone"], done["files_reverted"]) == (1, ["a.txt", "sub/b.txt"])
    assert done["snapshot_restored"] == page.expected("shell")
    for count in (0, -1, "x", 10**12, "2", 2.0, True):
        page.post("/session/shell/undo", {"count": count}, 400)
    assert page.post("/session/shell/undo", count=99)["turns_undone"] == 1
    assert (root / "a.txt").read_text() == "one\n"
    nothing = page.post("/session/shell/undo")
    assert (nothing["turns_undone"], nothing["messages_removed"], nothing["files_reverted"]) == (0, 0, [])
    assert (nothing["snapshot_restored"], nothing["message"]) == (None, "Nothing to undo")
    assert page.post("/session/shell/undo", allow_first=True)["turns_undone"] == 1
    assert not (root / "a.txt").exists()
    assert page.post("/session/shell/undo", allow_first=True)["turns_undone"] == 0


def test_unrevert_goes_back_to_where_the_session_stood(page: Client, root: Path, told: Store) -> None:
    """S2-10, C25: not to the end of the line, but to the node before the revert, with its files."""
    whole = on_disk(root)
    second = page.get("/api/sessions/shell/tree")["nodes"][2]["commit"]
    page.move("shell", "undo")
    page.post("/session/shell/revert", messageID=second)
    assert (root / "a.txt").read_text() == "one\n"
    assert page.post("/session/shell/unrevert")["turns_redone"] == 1
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert page.post("/session/shell/unrevert")["turns_redone"] == 1
    assert on_disk(root) == whole
    assert page.post("/session/shell/unrevert")["turns_redone"] == 0
    page.post("/session/shell/revert", {"messageID": "nobody"}, 404)


def test_cutting_a_conversation_is_refused_with_the_way_to_go(page: Client) -> None:
    """S0-58, C1."""
    answer = page.http.patch("/api/sessions/-home-project/some.jsonl", json={"lines": 5})
    assert answer.status_code == 405
    assert "fork" in answer.json()["hint"] and answer.json()["fork"]


# A store in trouble.


def test_a_store_that_vanishes_is_told_and_may_come_back(server: Serving, told: Store, tmp_path: Path) -> None:
    page = server.client()
    with server.events() as events:
        os.rename(told.folder, tmp_path / "away")
        events.until("store_lost")
        assert page.get("/api/sessions", 404)["error"] == "no-store"
        refused = page.post("/api/sessions/shell/move", {"move": "undo", "expected": "0" * 40}, 404)
        assert refused["error"] == "no-store" and refused["hint"]
        os.rename(tmp_path / "away", told.folder)
        back, _ = events.until("hello")
        assert back == events.hello
        assert page.get("/api/sessions")["active"] == "shell"


def test_a_store_of_a_folder_above_does_not_take_its_place(server: Serving, told: Store, root: Path) -> None:
    page = server.client()
    (root.parent / "above.txt").write_text("above\n")
    home = os.environ["SNAPSTORE_HOME"]
    above = create_store(home, os.fsencode(root.parent), anyway=True)
    assert os.fsdecode(above) == str(root.parent)
    assert page.get("/api/sessions")["root"] == str(root)
    os.rename(told.folder, f"{told.folder}-away")
    assert page.get("/api/sessions", 404)["error"] == "no-store"
    page.post("/api/sessions/shell/move", {"move": "undo", "expected": "0" * 40}, 404)
    os.rename(f"{told.folder}-away", told.folder)
    page.move("shell", "undo")


def test_a_store_that_another_process_holds(
    server: Serving, told: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """423 with who holds it; reading goes on meanwhile."""
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "0.2")
    whole = on_disk(root)
    page = server.client()
    holding = (
        "import sys\nfrom snapstore import Store\n"
        "with Store.open(sys.argv[1]).lock:\n    print('ready', flush=True)\n    sys.stdin.read()"
    )
    with living_child(holding, root):
        refused = page.move("shell", "undo", 423)
        assert refused["error"] == "busy" and "process" in refused["message"]
        assert len(page.get("/api/sessions/shell/tree")["nodes"]) == 4
    assert on_disk(root) == whole
    page.move("shell", "undo")


def test_a_store_that_is_damaged(server: Serving, told: Store, root: Path) -> None:
    """503, saying which part; what does not need it works."""
    page = server.client()
    whole = on_disk(root)
    cursor = page.expected("shell")
    ref = Path(told.shadow.git_dir) / "refs/snapstore/cursor/shell"
    ref.write_text("nonsense\n")
    refused = page.post("/api/sessions/shell/move", {"move": "undo", "expected": cursor}, 503)
    assert refused["error"] == "corrupt" and refused["hint"]
    assert page.get("/api/sessions/shell/tree", 503)["error"] == "corrupt"
    assert on_disk(root) == whole
    ref.write_text("ref: refs/heads/shell/main\n")
    page.move("shell", "undo")


def test_a_move_cut_short_is_finished_by_the_next_request(server: Serving, told: Store, root: Path) -> None:
    """S0-47: a process dies in the middle of its move; the page finds the whole of it."""
    page = server.client()
    dying = (
        "import os, signal, sys\nfrom snapstore import Store\nfrom snapstore.worktree.write import writer as restore\n"
        "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "restore.Writer.apply = die\n"
        "s = Store.open(sys.argv[1]).session('shell')\ns.move(s.plan_undo(1))\n"
    )
    died = subprocess.run([sys.executable, "-c", dying, str(root)], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert page.get("/api/sessions/shell/status")["turn"] == 2
    assert on_disk(root) == {b"a.txt": (b"100644", b"one\ntwo\n")}
    assert_whole(told)


def test_nothing_is_left_open_behind_requests(server: Serving, root: Path) -> None:
    page = server.client()

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    def round() -> None:
        page.get("/api/sessions")
        page.move("shell", "undo")
        page.move("shell", "redo")
        page.post("/api/sessions/shell/merge", move="undo", path="a.txt")
        page.get("/api/sessions/shell/diff", a="1", path="a.txt")

    round()
    before = open_files()
    for _ in range(10):
        round()
    assert open_files() <= before + 2


# The command.


def test_the_command_prints_the_address_and_ends_by_ctrl_c(told: Store, root: Path) -> None:
    command = [sys.executable, "-m", "snapstore", "ui", "--no-open", "--json"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            found = json.loads(process.stdout.readline())
            base, _, token = found["url"].partition("/?token=")
            assert base.startswith(f"http://127.0.0.1:{found['port']}/") and token
            with httpx.Client() as browser:
                assert browser.get(found["url"]).status_code == 200
                assert browser.get(f"{base}/api/sessions").json()["active"] == "shell"
                with browser.stream("GET", f"{base}/api/events") as stream:
                    assert next(stream.iter_lines()) == "event: hello"
                    process.send_signal(signal.SIGINT)
                    assert process.wait(20) == 0, "a page that listens does not hold it up"
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_what_the_command_needs(told: Store, root: Path, tmp_path: Path, server: Serving) -> None:
    """Without the extra, without a store, on a port that is taken: a sentence and what to do."""

    def said(folder: Path, *words: str, without: str = "") -> tuple[int, dict[str, Any]]:
        code = f"import sys\n{without}\nfrom snapstore.cli.main import main\nsys.exit(main())"
        run = [sys.executable, "-c", code, "ui", "--no-open", "--json", *words]
        done = subprocess.run(run, cwd=folder, capture_output=True, check=False, timeout=60)
        return done.returncode, json.loads(done.stdout)

    for package in ("fastapi", "uvicorn", "h11"):
        status, document = said(root, without=f"sys.modules[{package!r}] = None")
        assert (status, document["error"]) == (2, "usage") and "snapstore[ui]" in document["hint"]
    status, document = said(root, "--port", str(server.port))
    assert (status, document["error"]) == (2, "usage") and str(server.port) in document["message"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert said(empty)[0] == 13


def test_the_guide_says_how_to_go_back() -> None:
    """S1-66: how to rewind, branches and originals, when to start fresh, cleaning up, shortcuts."""
    text = (Path(__file__).parents[2] / "docs/guide.md").read_text()
    section = text.partition("\n## Going back\n")[2].partition("\n## ")[0]
    told = re.findall(r"^- \*\*(.+?)\.\*\*", section, re.MULTILINE)
    assert told == ["How to rewind", "Branches and originals", "When to start fresh", "Cleaning up", "Shortcuts"]
    for words in ("snapstore undo", "snapstore redo", "snapstore fork", "snapstore branch delete", "checkpoint"):
        assert words in section


def test_the_page_itself_is_served(server: Serving) -> None:
    page = server.client().http.get("/")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
