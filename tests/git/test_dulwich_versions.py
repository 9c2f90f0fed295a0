"""A dulwich that is missing, too old or too new is one sentence, and no agent's hook fails for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import dulwich
import pytest

from snapstore.git.config_file import OLDEST, TOO_NEW

MISSING = "raise ModuleNotFoundError(\"No module named 'dulwich'\", name='dulwich')\n"
OTHER = "__path__ = [{real!r}]\nexec(open({real!r} + '/__init__.py').read())\n__version__ = {version}\n"
SAID = {
    "missing": "No module named 'dulwich'",
    "1.2.17": "dulwich 1.2.17 is installed, but snapstore needs 1.2.18 or later, below 1.3",
    "1.3.0": "dulwich 1.3.0 is installed, but snapstore needs 1.2.18 or later, below 1.3",
}


@pytest.fixture(params=SAID)
def said(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put another dulwich before the real one, and return what is said of it."""
    version: str = request.param
    (tmp_path / "libraries/dulwich").mkdir(parents=True)
    other = OTHER.format(real=os.path.dirname(dulwich.__file__), version=tuple(map(int, re.findall(r"\d+", version))))
    (tmp_path / "libraries/dulwich/__init__.py").write_text(MISSING if version == "missing" else other)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "libraries"), prepend=os.pathsep)
    return SAID[version]


@pytest.fixture(autouse=True, params=["warm", "alone"])
def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each process try to leave a warm one behind, or not."""
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("SNAPSTORE_DAEMON", "0" if request.param == "alone" else "1")


def run(root: Path, *words: str, feed: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snapstore", *words]
    return subprocess.run(command, cwd=root, input=feed, capture_output=True, text=True, check=False)


def test_a_command_says_so_in_one_sentence(root: Path, said: str) -> None:
    done = run(root, "log")
    assert (done.returncode, done.stdout) == (1, "")
    first, hint = done.stderr.splitlines()
    assert first == f"snapstore: snapstore is not installed completely: {said}"
    assert hint.startswith("Install it again")
    done = run(root, "log", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert said in json.loads(done.stdout)["message"]
    assert "Traceback" in run(root, "log", "--debug").stderr
    done = run(root, "turn", "begin", "-m", "A prompt")  # which would leave a warm process
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 2)


def test_a_hook_ends_with_0_and_logs_it(root: Path, said: str) -> None:
    payload = {"session_id": "1", "cwd": str(root), "hook_event_name": "UserPromptSubmit", "prompt": "Hello"}
    done = run(root, "hook", "claude", feed=json.dumps(payload))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    logs = [path.read_text() for path in Path(os.environ["SNAPSTORE_HOME"]).glob("log/*")]
    assert any(said in text for text in logs)


def test_the_bounds_are_those_of_the_package() -> None:
    package = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    needed = next(line for line in package["dependencies"] if line.startswith("dulwich"))
    oldest, too_new = (".".join(map(str, bound)) for bound in (OLDEST, TOO_NEW))
    assert needed == f"dulwich>={oldest},<{too_new}"
