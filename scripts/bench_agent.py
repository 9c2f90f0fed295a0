"""Measures a turn of the real Claude Code on a scripted model: `scripts/bench agent`.

The same turn of three tool calls is played without hooks, with hooks that only start a bare interpreter (no hook in
Python can cost less), with hooks that the warm process serves, with hooks that work alone, and, with `--before PATH`,
with the hooks of another checkout of snapstore. The ways alternate, so that a busy machine is equally busy for each.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from fake_api import FakeApi, call, say

from snapstore.base.own_command import own_command

ROUNDS = 9
FILES = 500


class Bench(Protocol):
    def note(
        self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool | None
    ) -> None: ...


def agent(bench: Bench, before: str | None) -> None:
    claude = _program()
    if claude is None:
        print("a turn of Claude Code: needs claude-agent-sdk with its bundled Claude Code (scripts/setup --dev)")
        return
    own = own_command()
    ways: dict[str, list[str] | None] = {"no hooks": None, "bare": own, "warm": own, "alone": own}
    if before is not None:
        ways["before"] = [f"{before}/.venv/bin/snapstore"]
    with ExitStack() as stack:
        api = stack.enter_context(FakeApi())
        people = {way: stack.enter_context(_person(claude, api, way, command)) for way, command in ways.items()}
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(ROUNDS):
            for way, person in people.items():
                times[way].append(person.turn(f"Prompt {number} {way}"))
    medians = {way: statistics.median(taken) * 1000 for way, taken in times.items()}
    plain = medians.pop("no hooks")
    added = {way: taken - plain for way, taken in medians.items()}
    for way, more in added.items():
        row = f"Claude Code turn, added by hooks, {way}"
        if way == "warm" and "before" in added:
            ratio = more / added["before"]
            bench.note(f"{row}, of before", FILES, more, added["before"], ratio, "<= 0.33", ratio <= 0.33)
        else:
            bench.note(f"{row}, of the turn", FILES, more, plain, more / plain, "", None)


class _Person:
    """Somebody with a project, Claude Code and, mostly, snapstore."""

    def __init__(self, claude: str, api: FakeApi, home: Path, warm: bool) -> None:
        self.claude, self.api, self.home = claude, api, home
        self.root = home / "project"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "SNAPSTORE_HOME": str(home / "stores"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "XDG_RUNTIME_DIR": str(home / "run"),
            "LANG": "C.UTF-8",
            **api.environment,
        }
        if not warm:
            self.env["SNAPSTORE_DAEMON"] = "0"
        (home / "run").mkdir(mode=0o700)
        for number in range(FILES):
            path = self.root / f"folder{number % 20}" / f"file{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n")

    def turn(self, prompt: str) -> float:
        """One prompt, three tool calls one after the other; gives the seconds it took."""
        path = str(self.root / "poem.txt")
        self.api.scene(
            prompt,
            [call("Write", file_path=path, content=prompt + "\n")],
            [call("Write", file_path=str(self.root / "folder1" / "more.txt"), content=prompt + "\n")],
            [call("Bash", command="echo more >> log.txt")],
            [say("Done.")],
        )
        command = [self.claude, "-p", "--output-format", "json", "--permission-mode", "bypassPermissions", prompt]
        for name in ("poem.txt", "folder1/more.txt"):  # a file that is there would have to be read first
            (self.root / name).unlink(missing_ok=True)
        start = time.perf_counter()
        done = subprocess.run(command, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, capture_output=True)
        taken = time.perf_counter() - start
        assert done.returncode == 0 and not json.loads(done.stdout)["is_error"], done.stdout[-2000:]
        assert Path(path).read_text() == prompt + "\n"
        return taken


@contextmanager
def _person(claude: str, api: FakeApi, way: str, command: list[str] | None) -> Iterator[_Person]:
    with tempfile.TemporaryDirectory(prefix="snapbench-", dir="/tmp") as name:
        person = _Person(claude, api, Path(name), way == "warm")

        def ours(*words: str) -> str:
            done = subprocess.run([*(command or ()), *words], cwd=person.root, env=person.env, stdout=subprocess.PIPE)
            assert done.returncode == 0
            return done.stdout.decode()

        if command is not None:
            ours("connect", "claude")
        if way == "bare":
            settings = person.home / ".claude" / "settings.json"
            text = json.loads(settings.read_text())
            for rules in text["hooks"].values():
                for hook in (hook for rule in rules for hook in rule["hooks"]):
                    hook["command"] = f"{sys.executable} -I -c pass"
            settings.write_text(json.dumps(text))
        person.turn("First")
        yield person
        if command is not None and way != "bare":
            turns = [node for node in json.loads(ours("log", "-n", "100", "--json"))["nodes"] if node["kind"] == "turn"]
            assert turns and turns[-1]["status"] == "done", turns
        if way == "warm":
            ours("daemon", "stop")


def _program() -> str | None:
    found = importlib.util.find_spec("claude_agent_sdk")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        path = os.path.join(folder, "_bundled", "claude")
        if os.path.isfile(path):
            return path
    return None
