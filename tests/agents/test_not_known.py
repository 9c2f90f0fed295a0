"""Events and tools that no adapter knows are counted and shown (M-22)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agents import AGENTS, Agent, Cursor, hook
from commands import snap, snap_json
from recorded_agents import FOLDER, kind_of, load

from snapstore.agents.events.not_known import unknown_in
from snapstore.agents.known.registry import load as find


@pytest.mark.parametrize("kind", [kind for kind in AGENTS if kind is not Cursor])  # it names edits and commands alone
def test_an_unknown_tool_is_counted_and_shown(kind: type[Agent], root: Path, nobodys_home: Path) -> None:
    """M-22: for every agent, by `status` and `connect --list`; the turn scans, as it does not know better."""
    agent = kind(root)
    agent.prompt("Do it")
    agent.before("teleport", {"to": "there"})
    (root / "there.txt").write_text("there\n")
    agent.after("teleport", {"to": "there"})
    agent.stop()
    told = snap_json(root, "status", "--json")["not_known"]
    assert [line.partition(", seen")[0] for line in told] == [f"{agent.name}: tool teleport"]
    assert "tool teleport" in snap(root, "status").stdout
    rows = {row["agent"]: row["not_known"] for row in snap_json(root, "connect", "--list", "--json")["agents"]}
    assert rows.pop(agent.name)["tool teleport"] >= 1
    assert not any(rows.values())
    assert {file["path"] for file in snap_json(root, "show", "1", "--json")["files"]} == {"there.txt"}


@pytest.mark.parametrize(
    ("agent", "field"), [("codex", "hook_event_name"), ("cline", "hookName"), ("opencode", "event")]
)
def test_an_unknown_event_is_logged_once_and_counted(agent: str, field: str, root: Path, nobodys_home: Path) -> None:
    """M-22: it is no turn, and the agent is not disturbed."""
    snap(root, "init")
    for _ in range(3):
        hook(agent, {field: "Rethink", "session_id": "s", "cwd": str(root)}, cwd=root)
    assert snap_json(root, "status", "--json")["not_known"] == [f"{agent}: event Rethink, seen 3 times"]
    logged = [path.read_text() for path in nobodys_home.rglob("log/errors")]
    assert "".join(logged).count("event Rethink is not known") == 1


def test_what_the_real_programs_sent_is_all_known() -> None:
    """M-22: nothing in a recorded run is reported."""
    for path in FOLDER.glob("*.json"):
        document = load(kind_of(path))
        known = find(document["agent"])
        expected = getattr(known.hooks.content, "entries", ())
        for step in document["steps"]:
            payload = step["payload"]
            found = unknown_in(payload, known.events(payload, {}), expected)
            assert not found, (path.name, payload)


def test_an_unknown_tool_of_a_transcript_is_told_by_an_import(root: Path, tmp_path: Path, nobodys_home: Path) -> None:
    """M-22: what it changed is not known, so the import says so; a tool that only reads is not named."""
    lines = [
        {"type": "session_meta", "payload": {"id": "s", "cwd": str(root)}},
        {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "t"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Do it"}},
    ]
    for name in ("teleport", "view_image"):
        call = {"type": "function_call", "call_id": name, "name": name, "arguments": "{}"}
        lines.append({"type": "response_item", "payload": call})
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [turn] = snap_json(root, "import", str(path), "--agent", "codex", "--json")["turns"]
    assert [each["why"] for each in turn["unknown"]] == ["called teleport: what that changed is not known"]
