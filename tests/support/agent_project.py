"""A person with a project, a home folder, a real agent and snapstore."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fake_api import FakeApi

_KEPT = ("PATH", "HOME", "SNAPSTORE_HOME", "GIT_CONFIG_NOSYSTEM", "SNAPSTORE_DAEMON", "XDG_RUNTIME_DIR")


class AgentProject:
    """The agent reaches nothing but the scripted model. `id` is its own id of the conversation."""

    def __init__(self, root: Path, home: Path, api: FakeApi) -> None:
        self.root, self.home, self.api = root, home, api
        self.id = ""
        (home / "tmp").mkdir()
        self.env = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "LANG": "C.UTF-8",
            "TMPDIR": str(home / "tmp"),
            # Other requests end at the model too, where they show.
            "HTTP_PROXY": api.url,
            "HTTPS_PROXY": api.url,
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def run(self, words: list[str], *, cwd: Path | None = None, timeout: int = 120, status: int = 0) -> str:
        """Run a program in the project and return what it printed."""
        done = subprocess.run(
            words,
            cwd=cwd or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == status, (words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout.decode()

    def snapstore(self, *words: str, status: int = 0) -> str:
        return self.run([sys.executable, "-m", "snapstore", *words], status=status)

    def json(self, *words: str) -> Any:
        return json.loads(self.snapstore(*words, "--json"))

    def turns(self) -> list[tuple[int, str, str]]:
        """Return the number, the prompt and the status of each turn."""
        nodes = self.json("log")["nodes"]
        return [(node["turn"], node["prompt"], node["status"]) for node in nodes if node["kind"] == "turn"]
