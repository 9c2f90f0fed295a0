"""Record a small turn before the warm process serves requests.

On the first run of any code the interpreter compiles patterns, looks up classes and specializes its bytecode. Each
forked child would repeat that work and copy every memory page it writes to. So the server does the work once, in a
temporary folder beside its socket. If the rehearsal fails, commands still work correctly, only more slowly.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from typing import Any

from snapstore.agents.known.claude import AGENT
from snapstore.cli.main import main
from snapstore.daemon import client

_SESSION = "00000000-0000-4000-8000-000000000000"
_FILE = "file.txt"


def rehearse() -> None:
    """Run the everyday commands and hooks in a temporary folder, then remove it."""
    place = client.socket_path()
    if place is None:
        return
    folder = f"{place}.rehearsal"  # a fixed name, so that the next server removes what a killed one left
    try:
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
        with _aside(folder):
            _play()
    except (Exception, SystemExit):
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _aside(folder: str) -> Iterator[None]:
    """Switch to a temporary root, home and environment, and restore all afterwards.

    The standard streams are restored too.
    """
    root, home = f"{folder}/root", f"{folder}/home"
    for path in (root, home):
        os.mkdir(path)
    streams = sys.stdin, sys.stdout, sys.stderr
    variables = dict(os.environ)
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(root)
        os.environ.clear()
        os.environ.update(PATH=os.defpath, HOME=home, SNAPSTORE_HOME=f"{folder}/stores", SNAPSTORE_DAEMON="0")
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        os.fchdir(before)
        os.close(before)
        sys.stdin, sys.stdout, sys.stderr = streams


def _play() -> None:
    _write("one\n")
    _run("init")
    _hook("UserPromptSubmit", prompt="Rehearse")
    _tool("PreToolUse")
    _write("one\ntwo\n")
    _tool("PostToolUse")
    _hook("Stop")
    for text in ("two\n", "three\n"):
        _run("turn", "begin", "-q", "-m", "Rehearse")
        _run("turn", "touch", _FILE)
        _write(text)
        _run("turn", "end", "-q")
    for words in (["log"], ["log", "--json"], ["status"], ["show"], ["diff"], ["undo", "-y"], ["redo", "-y"]):
        _run(*words)


def _write(text: str) -> None:
    with open(_FILE, "w", encoding="utf-8") as file:
        file.write(text)


def _tool(event: str) -> None:
    path = os.path.abspath(_FILE)
    _hook(event, tool_name="Edit", tool_input={"file_path": path, "old_string": "one", "new_string": "two"})


def _hook(event: str, **fields: Any) -> None:
    payload = {"session_id": _SESSION, "cwd": os.getcwd(), "hook_event_name": event, "prompt_id": "1", **fields}
    _run("hook", AGENT.name, feed=json.dumps(payload).encode())


def _run(*words: str, feed: bytes = b"") -> None:
    sys.stdin, sys.stdout, sys.stderr = (TextIOWrapper(BytesIO(data), "utf-8") for data in (feed, b"", b""))
    status = main(list(words))
    if status != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {status}")
