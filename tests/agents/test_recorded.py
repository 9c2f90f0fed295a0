"""What the real programs of agents sent in a recorded run (tests/agents/recorded), played through real hook processes.

Made by `RECORD=1 scripts/test --agents tests/system/test_real_agents.py`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import snap_json
from helpers import on_disk
from recorded_agents import FOLDER, Replay, kind_of, load

NAMES = sorted(kind_of(path) for path in FOLDER.glob("*.json"))


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


@pytest.mark.parametrize("name", NAMES)
def test_the_transcript_of_a_recorded_run_is_imported(name: str, root: Path, nobodys_home: Path) -> None:
    """S2-09: the same turns from the agent's own file alone, without a branch that nobody left."""
    replay = Replay(name, root, nobodys_home)
    written = replay.write()
    [path] = [path for path in written if not path.name.removesuffix(".json").endswith(path.parent.name)]
    imported = snap_json(root, "import", str(path), "--agent", replay.agent, "--json")
    prompts = ["Make it", "Only answer"][: len(imported["turns"])]
    assert [turn["prompt"] for turn in imported["turns"]] == prompts
    assert (imported["left_out_branches"], imported["verified"]) == (0, ["a.txt"])
    turns = [node for node in snap_json(root, "log", "--json")["nodes"] if node["kind"] == "turn"]
    first = snap_json(root, "show", turns[0]["commit"], "--json")
    assert (first["prompt"], first["status"]) == ("Make it", "done")
    assert first["replies"] == ["I will.", "All done."]
    assert len(first["tool_calls"]) == 3


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


def test_geminis_end_may_come_three_times(root: Path, nobodys_home: Path) -> None:
    """S4-25: the end of a session is told more than once, and closes nothing that is closed."""
    replay = Replay("gemini", root, nobodys_home)
    [first, _] = [place for place, step in enumerate(replay.steps) if "reason" in step["payload"]]
    replay.steps[first:first] = [replay.steps[first]] * 2
    replay.play()
    turns = [node for node in snap_json(root, "log", "--json")["nodes"] if node["kind"] == "turn"]
    assert [(turn["prompt"], turn["status"]) for turn in turns] == [("Make it", "done"), ("Only answer", "done")]


def test_codexs_script_that_only_patches_needs_no_scan(root: Path, nobodys_home: Path) -> None:
    """S4-25: hooks name each patch that a script applies, so the turn looks at those files alone."""
    replay = Replay("codex-exec", root, nobodys_home)
    shells = [step for step in replay.steps if step["payload"].get("tool_name") == "Bash"]
    replay.steps = [step for step in replay.steps if step not in shells]
    for step in replay.steps:  # neither a hook nor the rollout tells of a shell
        for change in step.get("transcript", {}).values():
            change["more"] = [line for line in change["more"] if "made.txt" not in str(line)]
    replay.play()
    (root / "beside.txt").write_text("somebody else's\n")
    turn = snap_json(root, "show", "1", "--json")
    assert turn["found_by"] != "scan"
    assert "a.txt" in {file["path"] for file in turn["files"]}


def test_a_recording_names_its_version_and_no_machine() -> None:
    assert NAMES
    for path in FOLDER.glob("*.json"):
        assert load(kind_of(path))["version"] in path.name
        text = path.read_text()
        own = re.sub(r"\{home\}[\w./-]*", "", text)
        assert not [word for word in ("/tmp/", "/home/", "/root/", "/Users/") if word in own]
