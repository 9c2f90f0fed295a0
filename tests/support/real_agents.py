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
    kind = ""  # where one agent is run in more than one way
    package = ""
    transcripts: tuple[str, ...] = ()  # where its conversations are, below the home folder
    resumes = True  # whether a conversation can be resumed without a terminal

    def __init__(self, root: Path, home: Path, api: FakeApi, *, payloads: Path | None = None) -> None:
        if not folder(self.package).exists():
            pytest.skip(f"{self.package} is not installed: run scripts/test --agents")
        super().__init__(root, home, api)
        self.place = root  # where the agent is started
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

    def say(self, prompt: str, *, resume: bool = False) -> list[str]:
        """One prompt, answered. Gives what the agent knew when it asked the model."""
        before = len(self.api.requests)
        words = self.resumed(self.id, prompt) if resume else self.command(prompt)
        output = self.run(words, cwd=self.place, timeout=_PATIENCE)
        self.id = self.session_in(output) or self.id
        asked = self.api.requests[before:]
        assert asked, f"{self.name} asked nothing: {output[-2000:]}"
        for request in asked:
            assert not unanswered(request)
        return conversation(asked[0])


def plain_call(name: str, text: str) -> Block:
    """A call of a tool that takes text, not fields."""
    return {"type": "tool_use", "name": name, "input": text}


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


class Claude(RealAgent):
    name, package = "claude", "@anthropic-ai/claude-code"
    transcripts = (".claude/projects/*/*.jsonl",)
    _WORDS = ("claude", "-p", "--output-format", "json", "--permission-mode", "bypassPermissions")

    def environment(self) -> dict[str, str]:
        return self.api.environment

    def command(self, prompt: str) -> list[str]:
        return [*self._WORDS, prompt]

    def resumed(self, id: str, prompt: str) -> list[str]:
        return [*self._WORDS, "--resume", id, prompt]

    def session_in(self, output: str) -> str:
        return str(json.loads(output)["session_id"])

    def shell(self, command: str) -> Block:
        return call("Bash", command=command, description="Run it")

    def write(self, name: str, text: str) -> Block:
        return call("Write", file_path=str(self.root / name), content=text)

    def edit(self, name: str, old: str, new: str) -> Block:
        return call("Edit", file_path=str(self.root / name), old_string=old, new_string=new)

    def delegate(self, prompt: str) -> Block:
        return call("Task", description="Help", prompt=prompt, subagent_type="general-purpose")


class Codex(RealAgent):
    """With a model that gets plain tools."""

    name, package = "codex", "@openai/codex"
    transcripts = (".codex/sessions/*/*/*/rollout-*.jsonl",)
    model = "gpt-5.5"

    def set_up(self) -> None:
        settings = self.home / ".codex" / "config.toml"
        settings.parent.mkdir()
        settings.write_text(
            'model_provider = "fake"\nsandbox_mode = "danger-full-access"\napproval_policy = "never"\n'
            f'[model_providers.fake]\nname = "fake"\nbase_url = "{self.api.url}/v1"\nwire_api = "responses"\n'
        )

    def _options(self) -> list[str]:
        return ["--dangerously-bypass-hook-trust", "--skip-git-repo-check", "--json", "-m", self.model]

    def command(self, prompt: str) -> list[str]:
        return ["codex", "exec", *self._options(), prompt]

    def resumed(self, id: str, prompt: str) -> list[str]:
        return ["codex", "exec", "resume", *self._options(), id, prompt]

    def session_in(self, output: str) -> str:
        return str(json.loads(output.splitlines()[0])["thread_id"])

    def shell(self, command: str) -> Block:
        return call("exec_command", cmd=command)

    def write(self, name: str, text: str) -> Block:
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return self.patch(f"*** Add File: {self._path(name)}\n{lines}")

    def edit(self, name: str, old: str, new: str) -> Block:
        return self.patch(f"*** Update File: {self._path(name)}\n@@\n-{old}\n+{new}\n")

    def _path(self, name: str) -> str:
        return os.path.relpath(self.root / name, self.place)

    def patch(self, sections: str) -> Block:
        return plain_call("apply_patch", f"*** Begin Patch\n{sections}*** End Patch\n")


class CodexExec(Codex):
    """With a model that gets one tool, which runs JavaScript that calls the others."""

    kind = "codex-exec"
    model = "gpt-6-sol"

    def shell(self, command: str) -> Block:
        return self._script(f"await tools.exec_command({json.dumps({'cmd': command})})")

    def patch(self, sections: str) -> Block:
        patch = f"*** Begin Patch\n{sections}*** End Patch\n"
        return self._script(f"await tools.apply_patch({json.dumps(patch)})")

    def _script(self, text: str) -> Block:
        return plain_call("functions.exec", f"text({text});\n")


class Gemini(RealAgent):
    name, package = "gemini", "@google/gemini-cli"
    transcripts = (".gemini/tmp/*/chats/session-*.jsonl",)
    _WORDS = ("gemini", "--skip-trust", "-y", "-o", "json", "-m", "gemini-2.5-flash")

    def environment(self) -> dict[str, str]:
        return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": self.api.url}

    def set_up(self) -> None:
        settings = self.home / ".gemini" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))

    def command(self, prompt: str) -> list[str]:
        return [*self._WORDS, "-p", prompt]

    def resumed(self, id: str, prompt: str) -> list[str]:
        return [*self._WORDS, "-r", id, "-p", prompt]

    def session_in(self, output: str) -> str:
        return str(json.loads(output[output.index("{") :])["session_id"])

    def shell(self, command: str) -> Block:
        return call("run_shell_command", command=command, description="Run it")

    def write(self, name: str, text: str) -> Block:
        return call("write_file", file_path=str(self.root / name), content=text)

    def edit(self, name: str, old: str, new: str) -> Block:
        path = str(self.root / name)
        return call("replace", file_path=path, old_string=old, new_string=new, instruction="Edit it")


class Opencode(RealAgent):
    name, package = "opencode", "opencode-ai"
    transcripts = ()  # a database

    def set_up(self) -> None:
        settings = self.home / ".config" / "opencode" / "opencode.json"
        settings.parent.mkdir(parents=True)
        options = {"baseURL": f"{self.api.url}/v1", "apiKey": "x"}
        package = "@ai-sdk/openai-compatible"
        fake = {"npm": package, "name": "Fake", "options": options, "models": {"fake-model": {"name": "Fake"}}}
        chosen = {
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "autoupdate": False,
            "share": "disabled",
        }
        settings.write_text(json.dumps({"provider": {"fake": fake}, **chosen}))

    def command(self, prompt: str) -> list[str]:
        return ["opencode", "run", "--format", "json", *prompt.split()]  # it would put one word with blanks in quotes

    def resumed(self, id: str, prompt: str) -> list[str]:
        return ["opencode", "run", "--format", "json", "-s", id, *prompt.split()]

    def session_in(self, output: str) -> str:
        return str(json.loads(output.splitlines()[0])["sessionID"])

    def shell(self, command: str) -> Block:
        return call("bash", command=command, description="Run it")

    def write(self, name: str, text: str) -> Block:
        return call("write", filePath=str(self.root / name), content=text)

    def edit(self, name: str, old: str, new: str) -> Block:
        return call("edit", filePath=str(self.root / name), oldString=old, newString=new)

    def delegate(self, prompt: str) -> Block:
        return call("task", description="Help", prompt=prompt, subagent_type="general")


class Qwen(RealAgent):
    name, package = "qwen", "@qwen-code/qwen-code"
    transcripts = (".qwen/projects/*/chats/*.jsonl",)
    _WORDS = ("qwen", "-y", "-o", "json")

    def environment(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{self.api.url}/v1", "OPENAI_MODEL": "fake-model"}

    def command(self, prompt: str) -> list[str]:
        return [*self._WORDS, "-p", prompt]

    def resumed(self, id: str, prompt: str) -> list[str]:
        return [*self._WORDS, "--resume", id, "-p", prompt]

    def session_in(self, output: str) -> str:
        found = json.loads(output)
        return str((found[0] if isinstance(found, list) else found)["session_id"])

    def shell(self, command: str) -> Block:
        return call("run_shell_command", command=command, description="Run it", is_background=False)

    def write(self, name: str, text: str) -> Block:
        return call("write_file", file_path=str(self.root / name), content=text)

    def edit(self, name: str, old: str, new: str) -> Block:
        return call("edit", file_path=str(self.root / name), old_string=old, new_string=new)


_ALL: tuple[type[RealAgent], ...] = (Claude, Cline, Codex, CodexExec, Copilot, Gemini, Opencode, Qwen)
KINDS = {agent.kind or agent.name: agent for agent in _ALL}
__all__ = ["KINDS", "RealAgent", "call", "say"]
