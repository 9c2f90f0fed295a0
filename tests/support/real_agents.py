"""The real programs of agents, as `scripts/agents` installs them, each pointed at a scripted model on loopback.

Each agent is a person with a project, a home folder of their own, the agent and snapstore. `say` sends one prompt in a
process of its own; the tools have each agent's own names.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from agent_project import AgentProject
from fake_api import Block, FakeApi, call, conversation, say, unanswered
from recorded_agents import keeper

from snapstore.agents.install.locations import installation
from snapstore.base.own_command import checked_command

LIST = json.loads((Path(__file__).parent / "real_agents.json").read_text())["dependencies"]
CACHE = Path(os.environ.get("SNAPSTORE_AGENTS", "/nowhere"))  # set by scripts/test --agents
_PATIENCE = 180  # seconds for one prompt: some agents load for a long time


def folder(package: str) -> Path:
    return CACHE / f"{package.rpartition('/')[2]}-{LIST[package]}"


class RealAgent(AgentProject):
    """A real agent with its hooks connected."""

    name = ""
    package = ""
    transcripts: tuple[str, ...] = ()  # where its conversations are, below the home folder
    resumes = True  # whether a conversation can be resumed without a terminal

    def __init__(self, root: Path, home: Path, api: FakeApi, *, payloads: Path | None = None) -> None:
        if not folder(self.package).exists():
            pytest.skip(f"{self.package} is not installed: run scripts/test --agents")
        super().__init__(root, home, api)
        programs = [str(folder(name) / "node_modules/.bin") for name in (self.package, "node")]
        self.env |= {"PATH": ":".join([*programs, os.environ["PATH"]]), "TERM": "xterm", **self.environment()}
        self.set_up()
        self._connect(payloads)

    def _connect(self, payloads: Path | None) -> None:
        """Connect. To keep the payloads, the hooks then call a program that keeps them and calls snapstore."""
        self.snapstore("connect", self.name)
        if payloads is None:
            return
        payloads.mkdir()
        words = checked_command()
        program = self.home / "keep"
        where = {"root": self.root, "home": self.home, "folder": payloads}
        program.write_text(keeper(python=sys.executable, patterns=list(self.transcripts), words=words, **where))
        program.chmod(0o755)
        known = installation(self.name)
        for path, _ in known.places("user", str(self.root), self.env):
            text = Path(path).read_text()
            assert "snapstore" in text
            for ours, theirs in ((shlex.join(words), str(program)), (json.dumps(words)[1:-1], f'"{program}"')):
                text = text.replace(ours, theirs)
            Path(path).write_text(text)

    def environment(self) -> dict[str, str]:
        return {}

    def set_up(self) -> None:
        """Write the agent's settings."""

    def command(self, prompt: str) -> list[str]:
        raise NotImplementedError

    def resumed(self, id: str, prompt: str) -> list[str]:
        raise NotImplementedError

    def session_in(self, output: str) -> str:
        raise NotImplementedError

    def shell(self, command: str) -> Block:
        raise NotImplementedError

    def write(self, name: str, text: str) -> Block:
        raise NotImplementedError

    def edit(self, name: str, old: str, new: str) -> Block:
        raise NotImplementedError

    def delegate(self, prompt: str) -> Block | None:
        """A call that starts a subagent, if the agent has them."""
        return None

    def close(self) -> None:
        """End what the agent left running: programs whose home folder is this one."""
        mark = f"HOME={self.home}".encode()
        for place in Path("/proc").iterdir():
            try:
                if (
                    place.name.isdigit()
                    and place.name != str(os.getpid())
                    and mark in (place / "environ").read_bytes().split(b"\0")
                ):
                    os.kill(int(place.name), signal.SIGKILL)
            except OSError:
                pass

    def say(self, prompt: str, *, resume: bool = False, cwd: Path | None = None) -> list[str]:
        """One prompt, answered. Gives what the agent knew when it asked the model."""
        before = len(self.api.requests)
        words = self.resumed(self.id, prompt) if resume else self.command(prompt)
        output = self.run(words, cwd=cwd, timeout=_PATIENCE)
        self.id = self.session_in(output) or self.id
        asked = self.api.requests[before:]
        assert asked, f"{self.name} asked nothing: {output[-2000:]}"
        for request in asked:
            assert not unanswered(request)
        return conversation(asked[0])


class Cline(RealAgent):
    name, package = "cline", "cline"
    transcripts = (".cline/data/sessions/*/*.json",)
    resumes = False

    def environment(self) -> dict[str, str]:
        return {"CLINE_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1", "CLINE_NO_AUTO_UPDATE": "1"}

    def set_up(self) -> None:
        address = f"{self.api.url}/v1"
        self.run(["cline", "auth", "-p", "openai-compatible", "-k", "x", "-m", "fake-model", "-b", address])

    def command(self, prompt: str) -> list[str]:
        return ["cline", "--json", prompt]

    def session_in(self, output: str) -> str:
        found = self.home.glob(".cline/data/sessions/*/*.messages.json")  # a subagent's are there too
        [id] = [path.parent.name for path in found if path.name.startswith(path.parent.name + ".")]
        return id

    def shell(self, command: str) -> Block:
        return call("run_commands", commands=[command])

    def write(self, name: str, text: str) -> Block:
        return call("editor", path=str(self.root / name), new_text=text)

    def edit(self, name: str, old: str, new: str) -> Block:
        return call("editor", path=str(self.root / name), old_text=old, new_text=new)

    def delegate(self, prompt: str) -> Block:
        return call("spawn_agent", systemPrompt="You help.", task=prompt)


class Copilot(RealAgent):
    name, package = "copilot", "@github/copilot"
    transcripts = (".copilot/session-state/*/events.jsonl",)

    def environment(self) -> dict[str, str]:
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{self.api.url}/v1",
            "COPILOT_MODEL": "gpt-4.1",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def command(self, prompt: str) -> list[str]:
        return ["copilot", "--allow-all-tools", "--allow-all-paths", "-p", prompt]

    def resumed(self, id: str, prompt: str) -> list[str]:
        return ["copilot", "--allow-all-tools", "--allow-all-paths", "--resume", id, "-p", prompt]

    def session_in(self, output: str) -> str:
        [found] = self.home.glob(self.transcripts[0])
        return found.parent.name

    def shell(self, command: str) -> Block:
        return call("bash", command=command, description="Run it")

    def write(self, name: str, text: str) -> Block:
        return call("create", path=str(self.root / name), file_text=text)

    def edit(self, name: str, old: str, new: str) -> Block:
        return call("edit", path=str(self.root / name), old_str=old, new_str=new)

    def delegate(self, prompt: str) -> Block:
        return call("task", name="helper", description="Help", prompt=prompt, agent_type="general-purpose", mode="sync")


KINDS: dict[str, type[RealAgent]] = {kind.name: kind for kind in (Cline, Copilot)}
__all__ = ["KINDS", "RealAgent", "call", "say"]
