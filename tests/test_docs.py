"""The documents are true: generated parts are up to date, links lead somewhere, and the README prints what it says."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / name for name in ("README.md", "CHANGELOG.md")] + sorted((PROJECT / "docs").glob("*.md"))
README = (PROJECT / "README.md").read_text()


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "`code`", text, flags=re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("snapstore_docs", PROJECT / "scripts/docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_are_up_to_date(generator: Any) -> None:
    for name, text in generator.pages().items():
        assert (PROJECT / "docs" / name).read_text() == text, f"docs/{name} is out of date: run scripts/docs"


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        text = without_code(page.read_text())
        links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
        for link in links:
            if re.match(r"https?://", link):
                continue
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.is_file(), f"{link} in {page.name}"
            assert not anchor or anchor in anchors(target), f"{link} in {page.name}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    for page in (PROJECT / "docs").glob("*.md"):
        assert f"](docs/{page.name}" in README, page.name


def test_the_readme_is_short_and_says_what_matters() -> None:
    assert 7_000 <= len(README.encode()) <= 10_240
    for words in ("./scripts/try", "./scripts/test", "no telemetry", "snapstore disconnect claude"):
        assert words in README


def test_every_cited_requirement_is_listed() -> None:
    text = (PROJECT / "docs/requirements.md").read_text()
    rows = re.findall(r"^\| ((?:S[0-4]|[PGM])-\d+|C\d+) \|", text, re.M)
    listed = set(rows)
    assert len(rows) == len(listed) > 300
    for folder in ("snapstore", "tests", "scripts"):
        for path in (PROJECT / folder).rglob("*.py"):
            cited = set(re.findall(r"\b((?:S[0-4]|[PGM])-\d\d)\b", path.read_text()))
            assert cited <= listed, f"{path.name}: {cited - listed}"


def console_blocks() -> list[str]:
    return re.findall(r"```console\n(.*?)```", README, re.S)


@pytest.mark.parametrize("block", console_blocks(), ids=["story", "connect"])
def test_the_readme_prints_what_it_says(tmp_path: Path, block: str) -> None:
    """Ages of turns aside."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    door = home / "bin/snapstore"
    door.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    door.chmod(0o755)
    script = ["exec 2>&1"]
    for command in re.findall(r"^\$ (.*)$", block, re.M):
        script += [f"printf '%s\\n' {shlex.quote('$ ' + command)}", command]
    foreign = ("SNAPSTORE", "GIT_", "XDG", "CLAUDE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}", "SNAPSTORE_DAEMON": "0"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=home, env=environment, capture_output=True, text=True, check=True
    )
    said = done.stdout.replace(os.path.realpath(home), "/home/you")
    assert without_ages(said) == without_ages(block)


def without_ages(text: str) -> str:
    return re.sub(r"\((?:just now|\d+s ago)\)", "(age)", text)


def test_the_readme_names_the_python_that_the_project_needs() -> None:
    needed = re.search(r'requires-python = ">=([\d.]+)"', (PROJECT / "pyproject.toml").read_text())
    assert needed is not None and f"Python {needed[1]} or newer" in README
