"""Run snapstore as a person does, and read its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from snapstore.surface.records.base import Record

Done = subprocess.CompletedProcess[str]

PROGRAM = [sys.executable, "-m", "snapstore"]


def snap(folder: Path, *arguments: str, status: int = 0, feed: str | None = None, **environment: str) -> Done:
    """Run snapstore in a folder and assert its exit status."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        input=feed,
        stdin=None if feed is not None else subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={**os.environ, **environment},
        check=False,
        timeout=60,
    )
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def snap_json(folder: Path, *arguments: str, status: int = 0, **environment: str) -> dict[str, Any]:
    """Run `snap` and return its standard output, which must be exactly one JSON document."""
    done = snap(folder, *arguments, status=status, **environment)
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def assert_record(kind: type[Record], document: dict[str, Any]) -> None:
    """Assert that a document has exactly the record's fields."""
    checked = kind.model_validate(document)
    assert not checked.model_extra, checked.model_extra


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / name).write_text(text)


def a_turn(root: Path, prompt: str = "Write a poem", text: str = "roses\n") -> None:
    snap(root, "turn", "begin", "-m", prompt, "--agent", "poet")
    write(root, poem=text)
    snap(root, "turn", "end")
