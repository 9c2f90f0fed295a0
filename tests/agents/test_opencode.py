"""What opencode 1.18.33 was seen to do that the other agents do not."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from agents import Opencode
from commands import snap_json
from helpers import on_disk


def _database(home: Path, sessions: dict[str, str], parts: dict[str, dict[str, str]] | None = None) -> None:
    """A database with these titles of sessions, and one aborted answer per session that has a prompt."""
    folder = home / ".local/share/opencode"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "opencode.db") as base:
        base.execute("create table session (id, project_id, parent_id, directory, title, revert)")
        base.execute("create table message (id, session_id, time_created, data)")
        base.execute("create table part (id, message_id, session_id, data)")
        for id, title in sessions.items():
            base.execute("insert into session values (?, 'p', null, '/', ?, null)", (id, title))
        for id, said in (parts or {}).items():
            for message, text in said.items():
                base.execute("insert into message values (?, ?, 0, ?)", (message, id, json.dumps({"role": "user"})))
                part = json.dumps({"type": "text", "text": text})
                base.execute("insert into part values (?, ?, ?, ?)", (f"p{message}", message, id, part))
                answer = {"role": "assistant", "error": {"name": "MessageAbortedError"}}
                base.execute("insert into message values (?, ?, 0, ?)", (f"{message}a", id, json.dumps(answer)))
    base.close()


def _turns(root: Path) -> list[tuple[str, str]]:
    nodes = snap_json(root, "log", "--json")["nodes"]
    return [(node["prompt"], node["status"]) for node in nodes if node["kind"] == "turn"]


def test_an_interrupted_turn_is_one_turn(root: Path, nobodys_home: Path) -> None:
    """S2-16: Esc while a command runs sends `stop`, and then the end of the command and `stop` again."""
    _database(nobodys_home, {"ses_1": "Work"}, {"ses_1": {"msg_1": "Wait for it"}})
    agent = Opencode(root, "ses_1")
    agent.start()
    agent.prompt("Wait for it")
    call = agent.shell_call("echo begun > begun.txt; sleep 60")
    agent.before(*call)
    (root / "begun.txt").write_text("begun\n")
    agent.stop()
    agent.after(*call)
    agent.stop()
    assert _turns(root) == [("Wait for it", "interrupted")]
    assert snap_json(root, "status", "--json")["open_turns"] == []
    snap_json(root, "undo", "--yes", "--json")
    assert on_disk(root) == {}


def test_a_late_command_opens_no_turn(root: Path, nobodys_home: Path) -> None:
    """S2-16: where nothing tells of an interruption, either."""
    agent = Opencode(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.after(*agent.shell_call("sleep 60"))
    assert _turns(root) == [("One", "done")]
    assert snap_json(root, "status", "--json")["open_turns"] == []


def test_a_new_session_is_not_the_fork_that_was_asked_for(root: Path, nobodys_home: Path) -> None:
    """S4-09: a fork has `(fork #1)` in its title, so another new session gets a session of its own."""
    _database(nobodys_home, {"ses_new": "New session - 2026", "ses_fork": "Work (fork #1)"})
    agent = Opencode(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.whole_turn("Two", [("a.txt", "2\n")])
    snap_json(root, "undo", "--yes", "--json")
    snap_json(root, "fork", "--session", agent.session, "--json")
    for id, prompt in (("ses_new", "Unrelated"), ("ses_fork", "Two, another way")):
        other = Opencode(root, id)
        other.start()
        other.whole_turn(prompt, [(f"{id}.txt", "3\n")])
    prompts = {}
    for session in snap_json(root, "sessions", "--json")["sessions"]:
        nodes = snap_json(root, "log", "--session", session["session"], "--json")["nodes"]
        prompts[session["session"]] = [node["prompt"] for node in nodes if node["kind"] == "turn"]
    assert sorted(prompts.values()) == [["One", "Two, another way"], ["Unrelated"]]
    assert "Two, another way" in prompts[agent.session]
