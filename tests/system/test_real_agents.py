"""The real programs of agents with the hooks that `snapstore connect` sets up, against a scripted model on loopback.

Run with `scripts/test --agents`; the versions are in tests/support/real_agents.json (S4-25).

What each agent was seen to do is told in docs/agents.md."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeApi
from helpers import assert_whole, on_disk
from real_agents import KINDS, LIST, RealAgent, say
from recorded_agents import FOLDER, kind_of, load, recorded

from snapstore import Store
from snapstore.agents.known.registry import load as find

pytestmark = pytest.mark.agents


@pytest.fixture(params=sorted(KINDS))
def agent(request: pytest.FixtureRequest, root: Path, nobodys_home: Path) -> Iterator[RealAgent]:
    with FakeApi() as api:
        agent = KINDS[request.param](root, nobodys_home, api)
        try:
            yield agent
        finally:
            agent.close()


def files(agent: RealAgent, turn: int) -> dict[str, str]:
    return {file["path"]: file["change"] for file in agent.json("show", str(turn))["files"]}


def make(agent: RealAgent) -> None:
    """A shell command, a new file, an edit and an answer."""
    agent.api.scene(
        "Make it",
        [say("I will."), agent.shell("echo made > made.txt")],
        [agent.write("a.txt", "one\ntwo\n")],
        [agent.edit("a.txt", "one", "uno")],
        [say("All done.")],
    )
    agent.say("Make it")


def test_turns_are_recorded_undone_and_redone(agent: RealAgent, root: Path) -> None:
    """S4-25, S0-07, S0-10, S2-16: prompts, replies, tools and files, of a conversation that is resumed twice."""
    (root / "mine.txt").write_text("mine\n")
    start = on_disk(root)
    make(agent)
    one = on_disk(root)
    turn = agent.json("show", "1")
    assert (turn["prompt"], turn["status"], turn["agent"]) == ("Make it", "done", agent.name)
    assert files(agent, 1) == {"a.txt": "A", "made.txt": "A"}
    assert (root / "a.txt").read_text() == "uno\ntwo\n"
    assert turn["replies"][-1] == "All done."
    assert len(turn["tool_calls"]) == 3 and not any(each["is_error"] for each in turn["tool_calls"])

    agent.api.scene("Only answer", [say("Just words.")])
    agent.api.scene("More work", [agent.write("b.txt", "bee\n")], [say("More done.")])
    if agent.resumes:
        assert "assistant: All done." in agent.say("Only answer", resume=True)
        agent.say("More work", resume=True)
        assert agent.turns() == [(1, "Make it", "done"), (2, "Only answer", "done"), (3, "More work", "done")]
        assert agent.json("show", "2")["replies"] == ["Just words."]
        assert (files(agent, 2), files(agent, 3)) == ({}, {"b.txt": "A"})
        end = on_disk(root)
        agent.snapstore("undo", "--yes")
        assert on_disk(root) == one
        agent.snapstore("undo", "2", "--yes")
        assert on_disk(root) == start
        agent.snapstore("redo", "3", "--yes")
        assert on_disk(root) == end
    else:
        agent.snapstore("undo", "--yes")
        assert on_disk(root) == start
        agent.snapstore("redo", "--yes")
        assert on_disk(root) == one
    status = agent.json("status")
    assert (status["hook_errors"], status["open_turns"], status["edits"]) == ([], [], [])
    with Store.open(root) as store:
        assert_whole(store)


def test_its_conversation_is_imported_where_nothing_was_recorded(agent: RealAgent, root: Path) -> None:
    """S2-09: the agent's own file, read as a whole."""
    agent.snapstore("disconnect", agent.name)
    make(agent)
    if agent.resumes:
        agent.api.scene("More work", [agent.write("b.txt", "bee\n")], [say("More done.")])
        agent.say("More work", resume=True)
    assert not Path(agent.env["SNAPSTORE_HOME"]).joinpath("fired").exists()  # it is disconnected
    imported = agent.json("import", agent.id, "--agent", agent.name)
    told = ["Make it", "More work"] if agent.resumes else ["Make it"]
    assert [turn["prompt"] for turn in imported["turns"]] == told
    made = [node for node in agent.json("log")["nodes"] if node["kind"] == "turn"]
    assert [node["prompt"] for node in made] == told
    assert "a.txt" in {file["path"] for file in made[0]["files"]}
    assert agent.json("show", made[0]["commit"])["replies"][-1] == "All done."


def test_it_leaves_the_settings_as_they_were(agent: RealAgent) -> None:
    """S4-24: connected, used and disconnected."""
    make(agent)
    assert agent.json("connect", "--list")["agents"][_place(agent)]["connected"]
    agent.snapstore("disconnect", agent.name)
    assert not agent.json("connect", "--list")["agents"][_place(agent)]["connected"]
    left = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(agent.home)
        for name in names
        if not folder.startswith(agent.env["SNAPSTORE_HOME"])
        and name.lower().endswith((".json", ".toml", ".js", ".sh"))
    ]
    assert not [path for path in left if "snapstore hook" in Path(path).read_text(errors="replace")]


def test_a_subagents_work_belongs_to_the_turn(agent: RealAgent, root: Path) -> None:
    """S2-16: what a subagent writes is undone with the turn that called it."""
    call = agent.delegate("Please help here")
    if call is None:
        pytest.skip(f"no subagent of {agent.name} is scripted")
    help = [agent.write("help.txt", "help\n")], [agent.shell("echo run > run.txt")], [say("Helped.")]
    agent.api.scene("Please help here", *help)
    agent.api.scene("Delegate it", [call], [say("Delegated.")])
    agent.say("Delegate it")
    assert agent.turns() == [(1, "Delegate it", "done")]
    assert files(agent, 1) == {"help.txt": "A", "run.txt": "A"}
    assert len(agent.json("sessions")["sessions"]) == 1
    agent.snapstore("undo", "--yes")
    assert on_disk(root) == {}


def test_a_failed_tool_is_an_error(agent: RealAgent, root: Path) -> None:
    """S0-10: a command that fails, and an edit that finds no file, told as failed; what else the turn did is there."""
    failing = [agent.shell("exit 3")], [agent.edit("missing.txt", "one", "uno")], [agent.write("a.txt", "one\n")]
    agent.api.scene("Fail", *failing, [say("It failed.")])
    agent.say("Fail")
    turn = agent.json("show", "1")
    assert (turn["status"], turn["replies"]) == ("done", ["It failed."])
    assert [call["is_error"] for call in turn["tool_calls"]] == [True, True, False]
    assert files(agent, 1) == {"a.txt": "A"}


def test_a_start_in_a_subfolder_records_in_the_same_project(agent: RealAgent, root: Path) -> None:
    """S2-16: started below the project's folder, the agent's turns are the project's."""
    agent.snapstore("init")
    agent.place = root / "deep" / "er"
    agent.place.mkdir(parents=True)
    near = agent.write("deep/er/near.txt", "near\n")
    agent.api.scene("Below", [agent.shell("echo low > low.txt")], [near], [say("Done.")])
    agent.say("Below")
    assert agent.turns() == [(1, "Below", "done")]
    assert files(agent, 1) == {"deep/er/low.txt": "A", "deep/er/near.txt": "A"}
    agent.snapstore("undo", "--yes")
    assert on_disk(root) == {}


def test_two_at_once_have_a_session_each(agent: RealAgent, root: Path) -> None:
    """S0-18: two conversations in one project at the same time; each undo takes back its own."""
    both = threading.Barrier(2, timeout=120)  # neither goes on before the other works, too

    def meet() -> list[dict[str, Any]]:
        both.wait()
        return []

    for name in ("one", "two"):
        agent.api.scene(f"Write {name}", [agent.write(f"{name}.txt", f"{name}\n")], lambda: [*meet(), say("Written.")])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: agent.run(agent.command(f"Write {name}")), ("one", "two")))
    sessions = [each["session"] for each in agent.json("sessions")["sessions"]]
    assert len(sessions) == 2
    told = {}
    for session in sessions:
        [turn] = [node for node in agent.json("log", "--session", session)["nodes"] if node["kind"] == "turn"]
        told[turn["prompt"]] = session, {file["path"] for file in turn["files"]}
    assert {prompt: paths for prompt, (_, paths) in told.items()} == {
        "Write one": {"one.txt"},
        "Write two": {"two.txt"},
    }
    agent.snapstore("undo", "--yes", "--session", told["Write one"][0])
    assert list(on_disk(root)) == [b"two.txt"]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_it_sends_is_what_the_fast_tests_play(name: str, root: Path, nobodys_home: Path, tmp_path: Path) -> None:
    """The recording of each agent; RECORD=1 makes it anew."""
    with FakeApi() as api:
        agent = KINDS[name](root, nobodys_home, api, payloads=tmp_path / "payloads")
        try:
            make(agent)
            if agent.resumes:
                agent.api.scene("Only answer", [say("Just words.")])
                agent.say("Only answer", resume=True)
        finally:
            agent.close()
    places = tmp_path / "payloads", root, nobodys_home
    version = LIST[agent.package]
    made = recorded(agent.name, version, *places, agent.env)
    if os.environ.get("RECORD"):
        for old in [path for path in FOLDER.glob("*.json") if kind_of(path) == name]:
            old.unlink()
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}-{version}.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    known = load(name)
    assert _kinds(made) == _kinds(known)


def _kinds(document: dict[str, Any]) -> list[list[str]]:
    events = find(document["agent"]).events
    return [[event.kind for event in events(step["payload"], {})] for step in document["steps"]]


def _place(agent: RealAgent) -> int:
    return [each["agent"] for each in agent.json("connect", "--list")["agents"]].index(agent.name)
