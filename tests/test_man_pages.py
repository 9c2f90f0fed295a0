"""The man pages: current, without warnings, and part of the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from snapstore.cli.app import SECTIONS

PROJECT = Path(__file__).parent.parent
PAGES = PROJECT / "docs/man"


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_man_pages_are_those_of_the_present_commands(tmp_path: Path) -> None:
    subprocess.run([sys.executable, PROJECT / "scripts/manpages.py", tmp_path], check=True, cwd=PROJECT)
    assert texts(tmp_path) == texts(PAGES), "run scripts/manpages"


def test_every_command_has_a_man_page() -> None:
    names = [name for section in SECTIONS.values() for name in section]
    assert {path.name for path in PAGES.iterdir()} == {"snapstore.1", *(f"snapstore-{name}.1" for name in names)}


def test_the_wheel_installs_the_man_pages() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {"docs/man": "share/man/man1"}


def test_the_man_pages_render_without_a_warning() -> None:
    if shutil.which("groff") is None:
        pytest.skip("needs groff")
    for path in PAGES.iterdir():
        shown = subprocess.run(["groff", "-man", "-Tutf8", "-ww", path], capture_output=True, text=True, check=True)
        assert shown.stderr == "", path.name
