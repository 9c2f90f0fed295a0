"""Agents' own files below a root: a store in `~/.claude`, in a folder of settings, or over a whole home. No move writes
a conversation there (C1, S1-09, S4-01)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import assert_whole, in_commit, line, write
from test_conversations import Talking

from snapstore import Store
from snapstore.timeline.record.create_store import create_store
from snapstore.transcripts.locate import _LAYOUTS
from snapstore.worktree.ignore.never_capture import NeverCapture
from snapstore.worktree.ignore.other_programs import patterns_below
from snapstore.worktree.ignore.policy import CapturePolicy


def two_turns(agent: Talking) -> None:
    """The second runs a program, so that the whole root is looked at."""
    agent.start()
    agent.whole_turn("Prompt 1", [("f1.txt", "1\n")], "Reply 1")
    agent.prompt("Prompt 2")
    agent.write("f2.txt", "2\n")
    agent.before("Bash", {"command": "make"})
    agent.after("Bash", {"command": "make"})
    agent.stop("Reply 2")


def linked(home: Path) -> Path:
    """Settings kept in a folder of their own, with a link where the agent looks for them."""
    (home / "settings" / "claude").mkdir(parents=True)
    os.symlink(home / "settings" / "claude", home / ".claude")
    return home / "settings"


@pytest.mark.parametrize("place", [".claude", "settings", "."])
def test_no_undo_cuts_a_conversation_that_lies_below_the_root(nobodys_home: Path, place: str) -> None:
    """The agent works on its own settings, on the user's, or in a home folder that is watched over on purpose."""
    root = linked(nobodys_home) if place == "settings" else nobodys_home / place
    root.mkdir(exist_ok=True)
    write(root / "settings.json", "{}\n")
    if place == ".":
        create_store(os.environ["SNAPSTORE_HOME"], os.fsencode(os.path.realpath(root)), anyway=True)
    agent = Talking(root, nobodys_home)
    two_turns(agent)
    before = agent.file.read_bytes(), agent.file.stat()
    for words in (["undo", "-y"], ["redo"], ["undo", "2", "-y"], ["goto", "2", "--exact", "-y"], ["goto", "0", "-y"]):
        snap(root, *words)
        assert (agent.file.read_bytes(), agent.file.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns), words
        assert agent.file.stat().st_ino == before[1].st_ino
    assert not (root / "f1.txt").exists() and not (root / "f2.txt").exists()
    with Store.open(root) as store:
        for node in line(store, agent.session):
            assert not [path for path in in_commit(store, node["commit"]) if path.endswith(b".jsonl")]
        assert_whole(store)
    assert "jsonl" not in snap(root, "status").stdout + snap(root, "log", "--stat").stdout
    assert snap_json(root, "status", "--json")["left_out"] == []


def test_one_that_is_named_is_said_to_be_the_agents_own(nobodys_home: Path) -> None:
    root = nobodys_home / ".claude"
    write(root / "projects/-x/a.jsonl", "{}\n")
    snap(root, "turn", "begin")
    snap(root, "turn", "touch", "projects/-x/a.jsonl")
    write(root / "projects/-x/a.jsonl", "cut\n")
    said = snap(root, "turn", "end").stdout
    assert "projects/-x/a.jsonl (a file that only another program writes)" in said
    snap(root, "undo")
    assert (root / "projects/-x/a.jsonl").read_text() == "cut\n"


def test_one_that_was_recorded_before_stays_as_it_is(nobodys_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a store from before they were left alone: its turns can be undone, and what is passed over is said."""
    root = nobodys_home / ".claude"
    root.mkdir()
    agent = Talking(root, nobodys_home)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "policy", CapturePolicy(b""))
        with Store.open(root, create=True) as store:
            session = store.session("s")
            with session.turn("One"):
                write(root / "a.txt", "1\n")
                write(agent.file, '{"one": 1}\n')
            with session.turn("Two"):
                write(root / "a.txt", "2\n")
                write(agent.file, '{"one": 1}\n{"two": 2}\n')
    kept = agent.file.read_bytes()
    done = snap_json(root, "undo", "--session", "s", "--json")
    assert done["files_reverted"] == ["a.txt"] and agent.file.read_bytes() == kept
    assert done["notes"] == [f"{agent.file.relative_to(root)} stays as it is: it is never captured."]
    snap(root, "undo", "--session", "s", "-y")
    assert agent.file.read_bytes() == kept and not (root / "a.txt").exists()
    snap(root, "restore", "main:1", "--session", "s", "--", str(agent.file.relative_to(root)))
    assert agent.file.read_bytes() == kept


def test_every_agent_whose_conversations_are_read_is_thought_of(nobodys_home: Path) -> None:
    """Wherever the readers look for a conversation, it is one that is left alone; what else is there is taken."""
    names = {
        "claude": ["projects/-slug/ID.jsonl", "projects/-slug/ID/subagents/agent-1.jsonl"],
        "codex": ["sessions/2026/11/16/rollout-x-ID.jsonl", "archived_sessions/rollout-x-ID.jsonl"],
        "cline": ["data/sessions/ID/ID.messages.json", "data/sessions/ID/ID.json"],
        "copilot": ["session-state/ID/events.jsonl"],
        "cursor": ["projects/slug/agent-transcripts/ID/ID.jsonl"],
        "gemini": ["tmp/hash/chats/session-x-ID.json"],
        "opencode": ["opencode.db", "opencode.db-wal"],
        "qwen": ["projects/-slug/chats/ID.jsonl"],
    }
    assert names.keys() == _LAYOUTS.keys()
    never = NeverCapture(patterns_below(os.fsencode(nobodys_home)))
    for agent, paths in names.items():
        base = ".local/share/opencode" if agent == "opencode" else f".{agent}"
        for path in paths:
            assert never.matches(os.fsencode(f"{base}/{path}")), (agent, path)
            assert never.matches(os.fsencode(f"{base}/{path}")) and not never.matches(os.fsencode(f"other/{path}"))
    for path in (".claude/settings.json", ".claude/projects/-slug/memory/a.md", ".codex/config.toml", "a.jsonl"):
        assert not never.matches(os.fsencode(path))
    assert patterns_below(os.fsencode(nobodys_home / "project")) == []


def test_folders_that_were_moved_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "odd [name]"))
    never = NeverCapture(patterns_below(os.fsencode(tmp_path)))
    assert never.matches(b"odd [name]/projects/-slug/ID.jsonl")
    assert NeverCapture(patterns_below(os.fsencode(tmp_path / "odd [name]/projects/-slug"))).matches(b"ID.jsonl")
