"""What the real programs of agents sent in a recorded run (tests/agents/recorded), played through real hook processes.

Made by `RECORD=1 scripts/test --agents tests/system/test_real_agents.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import snap_json
from helpers import on_disk
from recorded_agents import FOLDER, Replay, load

NAMES = sorted(path.name.rpartition("-")[0] for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_recorded_as_its_turns(name: str, root: Path, nobodys_home: Path) -> None:
    """S4-25, S0-07, S0-10, S2-16: prompts, replies, tool calls and files, from the payloads as the agent sent them."""
    Replay(name, root, nobodys_home).play()
    turns = [node for node in snap_json(root, "log", "--json")["nodes"] if node["kind"] == "turn"]
    prompts = ["Make it", "Only answer"][: len(turns)]
    assert [(turn["prompt"], turn["status"]) for turn in turns] == [(prompt, "done") for prompt in prompts]
    first = snap_json(root, "show", turns[0]["commit"], "--json")
    assert {file["path"]: file["change"] for file in first["files"]} == {"a.txt": "A", "made.txt": "A"}
    assert first["replies"] == ["I will.", "All done."]
    assert len(first["tool_calls"]) == 3 and all(each["result"] is not None for each in first["tool_calls"])
    status = snap_json(root, "status", "--json")
    assert (status["hook_errors"], status["open_turns"], status["edits"]) == ([], [], [])
    after = on_disk(root)
    snap_json(root, "undo", str(len(turns)), "--yes", "--json")
    assert on_disk(root) == {}
    snap_json(root, "redo", str(len(turns)), "--yes", "--json")
    assert on_disk(root) == after


def test_a_late_start_of_copilot_closes_no_turn(root: Path, nobodys_home: Path) -> None:
    """Copilot does not wait for the hook of a resumed session's start before it sends the prompt's: the events are
    ordered by their own time."""
    replay = Replay("copilot", root, nobodys_home)
    [start] = [place for place, step in enumerate(replay.steps) if step["payload"].get("source") == "resume"]
    assert "prompt" in replay.steps[start + 1]["payload"]
    replay.steps[start : start + 2] = [replay.steps[start + 1], replay.steps[start]]
    replay.play()
    turns = [node for node in snap_json(root, "log", "--json")["nodes"] if node["kind"] == "turn"]
    assert [(turn["prompt"], turn["status"]) for turn in turns] == [("Make it", "done"), ("Only answer", "done")]


def test_a_recording_names_its_version_and_no_machine() -> None:
    assert NAMES
    for path in FOLDER.glob("*.json"):
        assert load(path.name.rpartition("-")[0])["version"] in path.name
        text = path.read_text()
        assert not [word for word in ("/tmp/", "/home/", "/root/", "/Users/") if word in text]
