"""Turns and moves write objects through the streaming pack writer and refs through dulwich, and nothing past them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "support"

# Audit hooks cannot be taken away again, so this runs in a process of its own.
PROGRAM = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from story import Story

NEW = os.O_WRONLY | os.O_RDWR | os.O_CREAT
seen, watching = [], False

def modules():
    frame, found = sys._getframe(2), []
    while frame is not None:
        found.append(frame.f_code.co_filename)
        frame = frame.f_back
    return found

def hook(event, arguments):
    if not watching:
        return
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & NEW:
        path = arguments[0]
    elif event in ("os.rename", "os.link"):
        path = arguments[1]
    else:
        return
    if isinstance(path, (str, bytes)):
        git_dir, found, rest = os.fsdecode(path).partition("/store.git/")
        if found and rest.startswith(("objects/", "refs/", "packed-refs", "HEAD")):
            seen.append([event, rest, modules()])

sys.addaudithook(hook)
story = Story(Path(sys.argv[1]), 5)
watching = True
story.play(60)
if len(sys.argv) > 3:  # one that goes past them
    oid = story.store.shadow.refs.list("refs/heads/").popitem()[1]
    with open(f"{story.store.shadow.git_dir}/refs/heads/past", "w") as file:
        file.write(oid.hex())
watching = False
story.close()
json.dump(seen, sys.stdout)
"""


def wrong(seen: list[tuple[str, str, list[str]]]) -> list[tuple[str, str, str]]:
    """Whatever was made by neither."""
    found = []
    for event, path, modules in seen:
        right = "snapstore/git/objects/pack_writer.py" if path.startswith("objects/") else "dulwich/file.py"
        # Where a ref goes that is packed, packed-refs is written without letting go of its lock (git/ref_container.py).
        removing = (
            path == "packed-refs" and event == "os.rename" and modules[0].endswith("snapstore/git/ref_container.py")
        )
        if not removing and not any(module.endswith(right) for module in modules):
            found.append((event, path, modules[0]))
    return found


def played(folder: Path, *more: str) -> list[tuple[str, str, list[str]]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "story"), str(HERE), *more],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(place for place in sys.path if place)},
    )
    found: list[tuple[str, str, list[str]]] = json.loads(done.stdout)
    return found


def test_turns_and_moves_write_nothing_past_dulwich_and_the_pack_writer(tmp_path: Path) -> None:
    seen = played(tmp_path)
    assert {path.split("/")[0] for _, path, _ in seen} >= {"objects", "refs", "HEAD.lock"}
    assert wrong(seen) == []


def test_the_trace_sees_what_goes_past_them(tmp_path: Path) -> None:
    [(event, path, _)] = wrong(played(tmp_path, "past"))
    assert (event, path) == ("open", "refs/heads/past")
