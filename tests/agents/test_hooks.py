"""Hooks of every agent, as real processes: right turns, right files, right undo, and never a disturbed agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agents import AGENTS, ID, OTHER_ID, Agent, Claude, Codex, Copilot, Cursor, Gemini, Opencode, hook, plant_fork
from commands import snap
from helpers import assert_whole, kinds, line, on_disk, record, touched

from snapstore import Store
from snapstore.surface.status import read_status


def turns(store: Store, session: str) -> list[dict[str, object]]:
    return [node for node in line(store, session) if node["trailers"]["Kind"] == "turn"]


def files(store: Store, commit: object) -> dict[bytes, str]:
    return touched(store, str(commit))


@pytest.mark.parametrize("kind", AGENTS, ids=lambda kind: kind.name)
def test_a_conversation_becomes_turns_that_can_be_undone(kind: type[Agent], root: Path) -> None:
    """P-01, S2-16, G-02: prompt, edit tools, a shell, stop; twice, with an edit by hand between; then undo and redo."""
    (root / "keep.txt").write_text("mine\n")
    (root / "old.txt").write_text("old\n")
    start = on_disk(root)
    agent = kind(root)
    agent.start()
    agent.whole_turn("Write two files", [("a.txt", "one\n"), ("sub/b.txt", "two\n")])
    one = on_disk(root)
    (root / "keep.txt").write_text("mine, edited by hand\n")
    agent.prompt("Run something")
    agent.write("a.txt", "three\n")
    agent.run("rm old.txt; make", lambda: ((root / "old.txt").unlink(), (root / "made.txt").write_text("made\n")))
    agent.stop()
    two = on_disk(root)

    with Store.open(root) as store:
        assert kinds(store, agent.session) == ["baseline", "turn", "edits", "turn"]
        first, second = turns(store, agent.session)
        assert (first["subject"], second["subject"]) == ("Write two files", "Run something")
        assert files(store, first["commit"]) == {b"a.txt": "A", b"sub/b.txt": "A"}
        assert files(store, second["commit"]) == {b"a.txt": "M", b"old.txt": "D", b"made.txt": "A"}
        assert record(store, str(first["commit"]))["status"] == "done"
        assert record(store, str(second["commit"]))["found_by"] == "scanned"
        assert store.open_turns() == []
        session = store.session(agent.session)
        session.move(session.plan_undo(1))
        assert on_disk(root) == {**one, b"keep.txt": two[b"keep.txt"]}
        session.move(session.plan_undo(1))
        assert on_disk(root) == {**start, b"keep.txt": two[b"keep.txt"]}
        session.move(session.plan_redo(2))
        assert on_disk(root) == two
        assert_whole(store)


@pytest.mark.parametrize("kind", AGENTS, ids=lambda kind: kind.name)
def test_a_turn_without_a_stop_is_closed_by_the_next_event(kind: type[Agent], root: Path) -> None:
    """G-37: interrupted, killed, or failed: its changes are kept."""
    agent = kind(root)
    agent.prompt("Never answered")
    agent.write("a.txt", "half\n")
    agent.whole_turn("Once more", [("b.txt", "whole\n")])
    agent.prompt("Left at the end")
    agent.end()
    with Store.open(root) as store:
        found = turns(store, agent.session)
        assert [record(store, str(node["commit"]))["status"] for node in found] == [
            "interrupted",
            "done",
            "interrupted",
        ]
        assert files(store, found[0]["commit"]) == {b"a.txt": "A"}
        assert store.open_turns() == []


def test_named_files_alone_need_no_scan(root: Path) -> None:
    agent = Claude(root)
    agent.whole_turn("Edit", [("a.txt", "one\n")])
    with Store.open(root) as store:
        assert record(store, str(turns(store, agent.session)[0]["commit"]))["found_by"] == "named"


def test_parallel_tools_and_helpers_of_the_agent_are_one_turn(root: Path) -> None:
    """Parallel tool events; a subagent's edits are the turn's, and its stop does not end the turn."""
    agent = Claude(root)
    agent.prompt("All at once")
    names = [f"f{number}.txt" for number in range(6)]

    def edit(name: str) -> None:
        call = agent.write_call(name, name)
        fields = {"agent_id": "a1", "agent_type": "general"} if name > "f2" else {}
        agent.event("PreToolUse", tool_name=call[0], tool_input=call[1], tool_use_id=name, **fields)
        (root / name).write_text(name)
        agent.event("PostToolUse", tool_name=call[0], tool_input=call[1], tool_use_id=name, **fields)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(edit, names))
    agent.event("SubagentStop", agent_id="a1", agent_type="general", stop_hook_active=False)
    with Store.open(root) as store:
        assert len(store.open_turns()) == 1
    agent.stop()
    with Store.open(root) as store:
        [turn] = turns(store, agent.session)
        assert sorted(files(store, turn["commit"])) == [name.encode() for name in names]


def test_helpers_in_the_background_work_for_the_turn_that_started_them(root: Path) -> None:
    """The agent answers, its helper writes on, and its end comes as a prompt that nobody gave: one turn, undone as one.
    The next prompt of a person closes what is still waited for, as done."""
    agent = Claude(root)
    agent.prompt("Delegate")
    agent.before("Agent", {"prompt": "Write", "run_in_background": True})
    running = [{"id": "a1", "type": "subagent", "status": "running", "description": "Write"}]
    agent.event("Stop", stop_hook_active=False, last_assistant_message="It is at it.", background_tasks=running)
    with Store.open(root) as store:
        assert [turn.prompt for turn in store.open_turns()] == ["Delegate"]
    agent.write("helper.txt", "1\n")
    agent.event("SubagentStop", agent_id="a1", agent_type="general", background_tasks=[])
    agent.turn = 2
    agent.event("UserPromptSubmit", prompt="<task-notification>\n<task-id>a1</task-id>\n</task-notification>")
    agent.stop("It is done.")
    with Store.open(root) as store:
        [turn] = turns(store, agent.session)
        assert turn["subject"] == "Delegate"
        assert files(store, turn["commit"]) == {b"helper.txt": "A"}
        assert record(store, str(turn["commit"]))["status"] == "done"
    agent.prompt("Delegate again")
    agent.event("Stop", stop_hook_active=False, background_tasks=running)
    agent.write("late.txt", "2\n")
    agent.prompt("Something else")
    agent.stop()
    with Store.open(root) as store:
        _, second, third = turns(store, agent.session)
        assert record(store, str(second["commit"]))["status"] == "done"
        assert files(store, second["commit"]) == {b"late.txt": "A"}
        assert files(store, third["commit"]) == {}


def test_what_the_user_edits_until_the_first_program_runs_stays_the_users(root: Path) -> None:
    """An agent thinks for a while: what is edited by hand meanwhile is not the turn's, though the turn will scan."""
    for name in ("mine.txt", "both.txt"):
        (root / name).write_text("0\n")
    agent = Claude(root)
    agent.prompt("Think, then run")
    agent.write("both.txt", "agent\n")
    (root / "mine.txt").write_text("by hand\n")
    (root / "new.txt").write_text("by hand too\n")
    agent.run("make", lambda: (root / "made.txt").write_text("made\n"))
    agent.write("late.txt", "1\n")
    agent.stop()
    with Store.open(root) as store:
        assert kinds(store, agent.session) == ["baseline", "edits", "turn"]
        [turn] = turns(store, agent.session)
        assert files(store, turn["commit"]) == {b"both.txt": "M", b"made.txt": "A", b"late.txt": "A"}
        session = store.session(agent.session)
        session.move(session.plan_undo(1))
        assert_whole(store)
    assert {path.name: path.read_text() for path in root.iterdir()} == {
        "mine.txt": "by hand\n",
        "new.txt": "by hand too\n",
        "both.txt": "0\n",
    }


def test_a_server_in_the_background_keeps_no_turn_open(root: Path) -> None:
    agent = Claude(root)
    agent.prompt("Start the server")
    server = [{"id": "b1", "type": "shell", "status": "running", "command": "npm run dev"}]
    agent.event("Stop", stop_hook_active=False, background_tasks=server)
    with Store.open(root) as store:
        assert store.open_turns() == []


def test_two_sessions_in_one_folder_undo_their_own(root: Path) -> None:
    """G-31."""
    one, two = Claude(root), Codex(root, OTHER_ID)
    one.prompt("One")
    two.prompt("Two")
    one.write("one.txt", "1\n")
    two.write("two.txt", "2\n")
    one.stop()
    two.stop()
    with Store.open(root) as store:
        assert files(store, turns(store, one.session)[-1]["commit"]) == {b"one.txt": "A"}
        assert files(store, turns(store, two.session)[-1]["commit"]) == {b"two.txt": "A"}
        session = store.session(one.session)
        session.move(session.plan_undo(1))
        assert set(on_disk(root)) == {b"two.txt"}


@pytest.mark.parametrize("kind", [Claude, Codex], ids=lambda kind: kind.name)
def test_what_is_said_to_an_agent_at_work_is_part_of_the_prompt(kind: type[Agent], root: Path) -> None:
    """The message waits for a pause and is told of with the id of the prompt before; all of it was asked for."""
    agent = kind(root)
    agent.prompt("Write a file")
    agent.write("a.txt", "one\n")
    for said in ("and another\n", "and another\n", "Write a file", "  ", "<task-notification>done</task-notification>"):
        agent.turn -= 1
        agent.prompt(said)
    agent.write("b.txt", "two\n")
    agent.stop()
    with Store.open(root) as store:
        (turn,) = turns(store, agent.session)
        assert turn["subject"] == "Write a file"
        assert record(store, str(turn["commit"]))["prompt"] == "Write a file\n\nand another"
        assert files(store, turn["commit"]) == {b"a.txt": "A", b"b.txt": "A"}


def test_events_told_twice_count_once(root: Path) -> None:
    """Settings of the user and of the project may both name the hook."""
    agent = Claude(root)
    for _ in range(2):
        agent.turn = 0
        agent.prompt("Once")
    agent.write("a.txt", "1\n")
    agent.write("a.txt", "1\n")
    agent.stop()
    agent.stop()
    with Store.open(root) as store:
        assert kinds(store, agent.session) == ["baseline", "turn"]


def test_the_same_prompt_given_again_is_another_turn(root: Path) -> None:
    agent = Cursor(root)
    agent.whole_turn("Again", [("a.txt", "1\n")])
    agent.whole_turn("Again", [("a.txt", "2\n")])
    with Store.open(root) as store:
        assert len(turns(store, agent.session)) == 2


def test_events_out_of_order(root: Path) -> None:
    """A stop before its prompt leaves nothing open; late news of a turn that is over opens none; a late stop does not
    close the turn after it."""
    agent = Claude(root)
    agent.whole_turn("First", [("a.txt", "1\n")])
    agent.after(*agent.write_call("a.txt", "1\n"))
    with Store.open(root) as store:
        assert store.open_turns() == []
    agent.turn = 2
    agent.event("Stop", stop_hook_active=False)
    agent.turn = 1
    agent.prompt("Second, told late")
    with Store.open(root) as store:
        assert store.open_turns() == []
        assert [node["subject"] for node in turns(store, agent.session)] == ["First", "Second, told late"]
    agent.prompt("Third")
    agent.write("c.txt", "3\n")
    agent.event("Stop", prompt_id="prompt-2", stop_hook_active=False)
    with Store.open(root) as store:
        assert [turn.prompt for turn in store.open_turns()] == ["Third"]
    agent.stop()
    with Store.open(root) as store:
        assert files(store, turns(store, agent.session)[-1]["commit"]) == {b"c.txt": "A"}


def test_an_edit_without_a_prompt_is_a_turn_all_the_same(root: Path) -> None:
    """Connected in the middle of a turn, or the prompt's event was lost."""
    agent = Claude(root)
    agent.write("a.txt", "1\n")
    agent.stop()
    with Store.open(root) as store:
        assert files(store, turns(store, agent.session)[0]["commit"]) == {b"a.txt": "A"}


def test_a_cd_into_a_folder_below_changes_nothing(root: Path) -> None:
    """G-15: the project stays the project, for agents that name it and for those that only say where they are."""
    (root / "deep" / "down").mkdir(parents=True)
    agent = Claude(root)
    agent.prompt("Go down")
    agent.cwd = root / "deep" / "down"
    agent.write("deep/down/a.txt", "1\n")
    agent.write("top.txt", "2\n")
    agent.stop()
    other = Codex(root, OTHER_ID)
    other.prompt("From above")
    other.root = root / "deep"
    other.write("b.txt", "3\n")
    other.stop()
    with Store.open(root) as store:
        assert set(files(store, turns(store, agent.session)[0]["commit"])) == {b"deep/down/a.txt", b"top.txt"}
        assert set(files(store, turns(store, other.session)[0]["commit"])) == {b"deep/b.txt"}


def test_a_compaction_in_the_middle_of_a_turn_does_not_end_it(root: Path) -> None:
    agent = Claude(root)
    agent.prompt("Long")
    agent.write("a.txt", "1\n")
    agent.event("PreCompact", trigger="auto")
    agent.start("compact")
    agent.write("b.txt", "2\n")
    agent.stop()
    with Store.open(root) as store:
        [turn] = turns(store, agent.session)
        assert set(files(store, turn["commit"])) == {b"a.txt", b"b.txt"}


def test_a_failed_answer_ends_the_turn_as_interrupted(root: Path) -> None:
    agent = Claude(root)
    agent.prompt("Too much")
    agent.write("a.txt", "1\n")
    agent.event("StopFailure", error="rate_limit")
    with Store.open(root) as store:
        assert record(store, str(turns(store, agent.session)[0]["commit"]))["status"] == "interrupted"


def test_a_helpers_session_of_opencode_belongs_to_the_turn_that_called_it(root: Path) -> None:
    agent = Opencode(root)
    agent.prompt("Delegate")
    call = agent.write_call("a.txt", "1\n")
    child = {"session_id": "ses_child", "parent_id": agent.id}
    agent.event("before", tool=call[0], args=call[1], call_id="c", **child)
    (root / "a.txt").write_text("1\n")
    agent.event("after", tool=call[0], args=call[1], call_id="c", **child)
    agent.event("stop", **child)
    with Store.open(root) as store:
        assert len(store.open_turns()) == 1
    agent.stop()
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]
        assert files(store, turns(store, agent.session)[0]["commit"]) == {b"a.txt": "A"}


def test_copilot_running_claudes_hooks_is_recorded_once(root: Path) -> None:
    """It reads a repository's Claude settings: the same events come as its own and in Claude's form."""
    agent = Copilot(root)
    transcript = f"/home/u/.copilot/session-state/{agent.id}/events.jsonl"

    def as_claude(name: str, **fields: object) -> None:
        payload = {"session_id": agent.id, "cwd": str(root), "hook_event_name": name, "transcript_path": transcript}
        assert hook("claude", {**payload, **fields}) == ""

    for order in (1, 2):
        prompt, path = f"Prompt {order}", f"f{order}.txt"
        if order == 1:
            agent.prompt(prompt)
        as_claude("UserPromptSubmit", prompt=prompt)
        if order == 2:
            agent.prompt(prompt)
        as_claude("PreToolUse", tool_name="create", tool_input={"path": str(root / path)})
        agent.write(path, "x\n")
        as_claude("Stop")
        agent.stop()
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]
        assert kinds(store, agent.session) == ["baseline", "turn", "turn"]
        assert [set(files(store, turn["commit"])) for turn in turns(store, agent.session)] == [{b"f1.txt"}, {b"f2.txt"}]


def test_a_tool_that_only_reads_opens_nothing(root: Path, nobodys_home: Path) -> None:
    agent = Claude(root)
    agent.before("Read", {"file_path": str(root / "a.txt")})
    agent.before("Grep", {"pattern": "x"})
    assert not (nobodys_home / "stores").exists()


def test_files_outside_the_root_are_named_as_left_out(root: Path, tmp_path: Path) -> None:
    """G-09, G-30: never followed, and the turn says that they cannot be taken back."""
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs\n")
    (root / "link").symlink_to(tmp_path)
    agent = Claude(root)
    agent.prompt("Go outside")
    for path in (str(outside), str(root / ".." / "outside.txt"), str(root / "link" / "outside.txt"), "/etc/passwd"):
        agent.before("Edit", {"file_path": path, "old_string": "a", "new_string": "b"})
    agent.before("Edit", {"file_path": str(root / ".git" / "config"), "old_string": "a", "new_string": "b"})
    agent.write("inside.txt", "1\n")
    agent.stop()
    with Store.open(root) as store:
        turn = str(turns(store, agent.session)[0]["commit"])
        assert files(store, turn) == {b"inside.txt": "A"}
        named = {item["path"]: item["why"] for item in record(store, turn)["left_out"]}
        assert named[str(outside)] == "outside the root"
        assert len(named) == 5
        session = store.session(agent.session)
        session.move(session.plan_undo(1))
    assert outside.read_text() == "theirs\n"


HOSTILE = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"hook_event_name": "UserPromptSubmit"}',
    b'{"hook_event_name": "UserPromptSubmit", "session_id": 5, "cwd": [], "prompt": {}}',
    b'{"hook_event_name": {"a": 1}, "session_id": "x"}',
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "../../etc/passwd", "cwd": "ROOT", "prompt": "x"}',
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "a/b", "cwd": "ROOT", "prompt": "x"}',
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "x.lock", "cwd": "ROOT", "prompt": "x"}',
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "ok", "cwd": "relative", "prompt": "x"}',
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "ok", "cwd": "/nonexistent/\\u0000", "prompt": "x"}',
    b'{"hook_event_name": "PreToolUse", "session_id": "ok", "cwd": "ROOT", "tool_name": 7, "tool_input": "x"}',
    b"[" * 100_000,
    b'{"a": ' * 20_000,
]


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("agent", ["claude", "cline"])
def test_nonsense_disturbs_nobody(agent: str, payload: bytes, root: Path, nobodys_home: Path) -> None:
    """Status 0, silence (or the empty object that is asked for), nothing half-made, a line in the log."""
    answer = hook(agent, payload.replace(b"ROOT", os.fsencode(root)))
    assert answer.strip() == ("{}" if agent == "cline" else "")
    noted = nobodys_home / "stores" / "not-known"
    assert not noted.exists() or [path.name for path in noted.iterdir()] == [agent]
    for folder in set((nobodys_home / "stores").glob("*-*")) - {noted}:
        assert Store(str(nobodys_home / "stores"), os.fsencode(root), str(folder)).sessions() is not None
    assert not list(root.iterdir())


def test_an_agent_in_the_home_folder_is_let_be_and_status_says_why(nobodys_home: Path) -> None:
    """No store takes a whole home in unasked; who misses the turns hears the reason, and what to do."""
    Claude(nobodys_home).whole_turn("At home", [("a.txt", "1\n")])
    told = snap(nobodys_home, "status", status=13).stderr
    assert "is your home folder" in told
    assert "`snapstore init` says what to do" in told
    assert "--anyway" in snap(nobodys_home, "init", status=15).stderr


def test_an_unknown_agent_and_no_agent_at_all_are_only_noted(nobodys_home: Path) -> None:
    assert hook("nobody", {}) == ""
    done = subprocess.run([sys.executable, "-m", "snapstore", "hook"], input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "nobody" in (nobodys_home / "stores" / "log" / "errors").read_text()


def test_a_payload_too_large_is_left_alone(nobodys_home: Path) -> None:
    data = b'{"a": "' + b"x" * ((64 << 20) + 1) + b'"}'
    assert hook("claude", data) == ""
    assert "more than 64 MB" in (nobodys_home / "stores" / "log" / "errors").read_text()


def test_a_store_that_cannot_be_opened_leaves_a_word_in_the_log(root: Path, nobodys_home: Path) -> None:
    """The agent goes on; `status` says why nothing is recorded."""
    agent = Claude(root)
    agent.whole_turn("Fine", [("a.txt", "1\n")])
    with Store.open(root) as store:
        header = Path(store.state) / "format"
    good = header.read_bytes()
    header.write_bytes(b"{}")
    agent.whole_turn("Not recorded", [("a.txt", "2\n")])
    log = (nobodys_home / "stores" / "log" / "errors").read_text()
    assert "format" in log and str(root) in log
    header.write_bytes(good)
    agent.whole_turn("Fine again", [("a.txt", "3\n")])
    with Store.open(root) as store:
        assert [node["subject"] for node in turns(store, agent.session)] == ["Fine", "Fine again"]


def test_what_a_hook_could_not_do_is_shown_by_status(root: Path) -> None:
    agent = Claude(root)
    agent.whole_turn("Fine", [("a.txt", "1\n")])
    with Store.open(root) as store:
        document = Path(store.state) / "agents" / f"{ID}.json"
        document.write_text("{}")
        agent.prompt("Cannot be placed")
        [error] = read_status(store.session(agent.session)).hook_errors
        assert "hook claude prompt" in error and "agents/" in error


def test_a_home_that_cannot_be_written_disturbs_nobody(root: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    agent = Claude(root)
    agent.env["SNAPSTORE_HOME"] = str(blocked / "stores")
    agent.whole_turn("Nowhere to put it", [("a.txt", "1\n")])
    agent.env["SNAPSTORE_HOME"] = "relative"
    agent.prompt("Nowhere at all")
    assert (root / "a.txt").read_text() == "1\n"


def test_the_home_folder_is_not_taken_for_a_project(nobodys_home: Path) -> None:
    """G-16: an agent started in $HOME."""
    agent = Claude(nobodys_home)
    agent.prompt("In my home")
    assert not list((nobodys_home / "stores").glob("*-*"))
    assert "home folder" in (nobodys_home / "stores" / "log" / "errors").read_text()
    command = [sys.executable, "-m", "snapstore", "status", "--json"]
    told = subprocess.run(command, cwd=nobodys_home, capture_output=True, check=False)
    assert told.returncode == 13
    assert "home folder" in json.loads(told.stdout)["hint"]


def test_a_prompt_with_anything_in_it(root: Path) -> None:
    agent = Claude(root)
    said = "-rf $(touch x) `y` \x1b[31m \u202e <script> \ud800 \0 \n\nsecond"
    agent.whole_turn(said, [("a.txt", "1\n")])
    with Store.open(root) as store:
        assert kinds(store, agent.session) == ["baseline", "turn"]
        assert record(store, str(turns(store, agent.session)[0]["commit"]))["prompt"] == said
        assert_whole(store)


@pytest.mark.parametrize(
    ("kind", "event"), [(Claude, "UserPromptSubmit"), (Codex, "UserPromptSubmit"), (Gemini, "BeforeAgent")]
)
def test_a_live_agent_is_told_after_an_undo(kind: type[Agent], event: str, root: Path) -> None:
    """M-04, G-06: one sentence with the next prompt, once; not after a redo, and not where that is switched off."""
    agent = kind(root)
    for number in (1, 2, 3):
        agent.whole_turn(f"Prompt {number}", [("a.txt", f"{number}\n")])
    payload = {"session_id": agent.id, "cwd": str(root), "hook_event_name": event, "prompt": "Next"}

    def told(prompt: str) -> str:
        said = hook(kind.name, {**payload, "prompt": prompt, "prompt_id": prompt, "turn_id": prompt}, env=agent.env)
        return said.strip()

    def undo(count: int) -> None:
        with Store.open(root) as store:
            session = store.session(agent.id)
            session.close_open_turn()
            session.move(session.plan_undo(count))

    undo(2)
    said = json.loads(told("Next"))["hookSpecificOutput"]
    assert said["hookEventName"] == event
    assert 'undone your last 2 turns (from "Prompt 2" on) with snapstore' in said["additionalContext"]
    assert told("And on") == agent.answers
    with Store.open(root) as store:
        assert read_status(store.session(agent.session), edits=False).pending_fork, "it still remembers them"
    undo(1)
    with Store.open(root) as store:
        session = store.session(agent.id)
        session.move(session.plan_redo(1))
    assert told("After a redo") == agent.answers
    undo(1)
    with Store.open(root) as store:
        store.configure(tell_agents=False)
    assert told("Not told") == agent.answers


def test_a_fork_and_its_parent_may_both_live_on(root: Path) -> None:
    """Two agents at work that came from one conversation: neither closes the other's turn."""
    one = Claude(root)
    one.whole_turn("Together", [("a.txt", "1\n")])
    plant_fork(one, OTHER_ID)
    one.prompt("One goes on")
    # The other agent is another process: an interpreter between us and its hooks.
    payload = {"session_id": OTHER_ID, "cwd": str(root), "hook_event_name": "UserPromptSubmit", "prompt": "The other"}
    code = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'snapstore', 'hook', 'claude'], check=True)"
    subprocess.run([sys.executable, "-c", code], input=json.dumps(payload).encode(), check=True)
    with Store.open(root) as store:
        assert sorted(turn.prompt for turn in store.open_turns()) == ["One goes on", "The other"]
        assert len(store.sessions()) == 2
