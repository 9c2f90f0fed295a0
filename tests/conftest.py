"""Every test runs in a home of its own: the real one cannot be reached, and no git configuration leaks in."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir
from warm import serving

from snapstore import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from machines import Machine

# Started in the background, we would ignore some signals, and so would every program that a test sends them to.
signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(ignored, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Use the same random examples every time in a short run, and others in a deep run.

    Nothing is kept between runs, nor shared by workers, who would disturb each other.
    """
    kept = tempfile.mkdtemp(prefix="snapstore-hypothesis-")
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    set_hypothesis_home_dir(kept)
    settings.register_profile("same", derandomize=True, database=None)
    if config.option.markexpr == "not deep":
        settings.load_profile("same")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The real programs of agents run with scripts/test --agents, which installs them, and at no other time."""
    if "SNAPSTORE_AGENTS" in os.environ:
        return
    real = [item for item in items if item.get_closest_marker("agents") is not None]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of power cuts per file system, and the commands that failed."""
    cuts: dict[str, Counter[str]] = {}
    failed: dict[tuple[str, str], int] = {}
    for reports in terminalreporter.stats.values():
        told = [report for report in reports if getattr(report, "when", "") == "call"]
        for name, value in (pair for report in told for pair in report.user_properties):
            if name == "power cuts":
                kind, command, ends, failures = value
                cuts.setdefault(kind, Counter()).update(ends)
                if failures:
                    failed[kind, command] = failed.get((kind, command), 0) + failures
    if cuts:
        terminalreporter.section("power cuts")
    for kind, ends in sorted(cuts.items()):
        told = ", ".join(f"{number} {end}" for end, number in sorted(ends.items()))
        failures = sum(number for (where, _), number in failed.items() if where == kind)
        terminalreporter.write_line(f"{kind}: {ends.total()} cuts ({told}), {failures} failures")
    for (kind, command), failures in sorted(failed.items()):
        terminalreporter.write_line(f"  {kind}, {command}: {failures} failures")


@pytest.fixture(autouse=True)
def nobodys_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, warm_process: str | None
) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_", "SNAPSTORE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("SNAPSTORE_HOME", str(home / "stores"))
    if warm_process is None:
        monkeypatch.setenv("SNAPSTORE_DAEMON", "0")
    else:
        monkeypatch.setenv("XDG_RUNTIME_DIR", warm_process)
        monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "30")
    return home


@pytest.fixture(scope="session")
def warm_process() -> Iterator[str | None]:
    """The runtime folder of the warm process that serves all tests' commands, if WARM=1 is set."""
    if os.environ.get("WARM") != "1":
        yield None
        return
    with serving() as place:
        yield str(place.runtime)


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
    """Run ordinary git: git(folder, "log", …) returns its output, and fails the test if git fails."""

    def run(folder: Path | str, *arguments: str, stdin: bytes | None = None, check: bool = True) -> str:
        command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
        done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape")

    return run


@pytest.fixture
def hub(tmp_path: Path) -> str:
    """A git repository for machines to share."""
    from machines import bare

    return bare(tmp_path / "hub.git")


@pytest.fixture
def ada(tmp_path: Path, hub: str) -> Machine:
    """The first machine that shares: two turns, pushed."""
    from machines import Machine

    machine = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    machine.turn("Add violets", poem="roses\nviolets\n")
    machine.turn("Add a title", title="Poem\n")
    machine.push()
    return machine
