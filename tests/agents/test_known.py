"""Adding an agent is one module and one line: everything else takes the agent from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import snap

from snapstore.agents.capabilities import capability
from snapstore.agents.hooks.turns import handle
from snapstore.agents.install.connect import Environment, connect, connections, disconnect
from snapstore.agents.known import registry
from snapstore.transcripts.readers import read

MADE_UP = """
from snapstore.agents.events.event import PROMPT, STOP, Event
from snapstore.agents.events.payload import AFTER, text, tool_events
from snapstore.agents.known.agent import RESUME, Agent, Forking, HookFiles, SharedFile, group


def events(payload, environ):
    common = {"agent": "heron", "session_id": text(payload, "id"), "cwd": text(payload, "folder")}
    if payload["what"] == "ask":
        return [Event(PROMPT, prompt=text(payload, "words"), **common)]
    if payload["what"] == "tool":
        return tool_events(AFTER, text(payload, "tool"), payload["input"], common)
    return [Event(STOP, status="done", **common)]


AGENT = Agent(
    name="heron",
    title="Heron",
    events=events,
    answer="ok",
    tells_afterwards=True,
    hooks=HookFiles(content=SharedFile({"ask": group()}), user=".heron", project=".heron", files=("hooks.json",)),
    forking=Forking(way=RESUME, resume="heron --again {}", notice="Go back in it."),
)
"""


@pytest.fixture
def heron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file and one line."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "heron.py").write_text(MADE_UP)
    from snapstore.agents import known

    monkeypatch.setattr(known, "__path__", [*known.__path__, str(folder)])
    monkeypatch.setattr(registry, "AGENTS", (*registry.AGENTS, "heron"))
    monkeypatch.delitem(sys.modules, "snapstore.agents.known.heron", raising=False)


@pytest.mark.usefixtures("heron")
def test_a_new_agent_is_connected_and_disconnected(tmp_path: Path) -> None:
    here = Environment(str(tmp_path / "stores"), str(tmp_path), {"HOME": str(tmp_path / "home"), "PATH": ""})
    file = tmp_path / "home/.heron/hooks.json"
    file.parent.mkdir(parents=True)
    plan = connect(here, "heron", "user", ["/bin/snapstore"])
    assert plan.command == "/bin/snapstore hook heron"
    assert json.loads(file.read_text())["hooks"]["ask"][0]["hooks"][0]["command"] == plan.command
    disconnect(here, "heron", ["user"])
    assert not file.exists()


@pytest.mark.usefixtures("heron")
def test_the_turn_of_a_new_agent_is_recorded_and_undone(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    agent = registry.load("heron")
    for what in ("ask", "tool", "stop"):
        if what == "tool":
            (root / "a.txt").write_text("1\n")
        payload = {"what": what, "id": "h1", "folder": str(root), "words": "Make a", "tool": "write"}
        for event in agent.events({**payload, "input": {"file_path": str(root / "a.txt")}}, os.environ):
            handle(event)
    assert "Make a" in snap(root, "log").stdout
    snap(root, "undo", "-y")
    assert not (root / "a.txt").exists()


@pytest.mark.usefixtures("heron")
def test_the_capabilities_of_a_new_agent_are_known() -> None:
    able = capability("heron")
    assert (able.name, able.forks, able.resume, able.transcripts) == ("Heron", "resume", "heron --again {}", False)
    assert capability("stork").forks == "none"


def test_every_object_is_called_like_its_module() -> None:
    assert [agent.name for agent in registry.load_all()] == list(registry.AGENTS)


def test_every_agent_with_conversations_has_a_reader() -> None:
    assert sorted(agent.name for agent in registry.load_all() if agent.conversations) == sorted(read.AGENTS)


def test_connections_lists_every_agent(tmp_path: Path) -> None:
    found = connections(str(tmp_path), str(tmp_path), {"HOME": str(tmp_path)})
    assert [connection.agent for connection in found] == list(registry.AGENTS)


def test_a_hook_loads_the_module_of_its_own_agent_only() -> None:
    code = (
        "import sys; from snapstore.agents.known.registry import load; load('claude')\n"
        "print(*sorted(name for name in sys.modules if name.startswith('snapstore.agents.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    known = {name.removeprefix("snapstore.agents.known.") for name in done.stdout.split() if ".known." in name}
    assert known == {"agent", "registry", "claude"}
    assert "snapstore.agents.install" not in done.stdout


def test_a_hook_does_not_fail_where_its_module_cannot_be_loaded() -> None:
    code = (
        "import sys; sys.modules['snapstore.agents.known.gemini'] = None\n"
        "from snapstore.cli.hook import run_hook; sys.exit(run_hook(['gemini']))"
    )
    done = subprocess.run([sys.executable, "-c", code], input="{}", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
