"""Every test runs in a home of its own: the real one cannot be reached, and no git configuration leaks in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snapstore import Store


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_", "SNAPSTORE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("SNAPSTORE_HOME", str(home / "stores"))
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    """A store over the (so far empty) project."""
    with Store.open(root, create=True) as opened:
        yield opened


@pytest.fixture
def git() -> Callable[..., str]:
    """Ordinary git: git(folder, "log", …) gives its output and fails the test when git fails."""

    def run(folder: Path | str, *arguments: str, stdin: bytes | None = None, check: bool = True) -> str:
        command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
        done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape")

    return run
