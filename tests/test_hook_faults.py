"""Hooks in bad company: users who edit meanwhile, agents that are cut off, told late, forked, killed or hostile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Claude, Codex
from helpers import line, on_disk, touched

from snapstore import Store


def files_of(root: Path, agent: Agent) -> list[set[bytes]]:
    """What each turn of the agent's session changed."""
    with Store.open(root) as store:
        turns = [node for node in line(store, agent.session) if node["trailers"]["Kind"] == "turn"]
        return [set(touched(store, node["commit"])) for node in turns]


def undo(root: Path, agent: Agent, count: int = 1) -> None:
    with Store.open(root) as store:
        session = store.session(agent.session)
        session.move(session.plan_undo(count))


# Which files a tool's arguments name.

PATCHES = {
    "indented": "*** Begin Patch\n  *** Update File: a\n@@\n-0\n+1\n*** Add File: b\n+1\n*** End Patch",
    "moved": "*** Begin Patch\r\n*** Update File: a\r\n*** Move to: b\r\n@@\r\n-0\r\n+1\r\n*** End Patch",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_files_of_a_patch_that_is_written_oddly(patch: str, root: Path) -> None:
    """Codex trims the headings of a patch, so those of a sloppy one count too."""
    (root / "a").write_text("0\n")
    before = on_disk(root)
    agent = Codex(root)
    agent.prompt("Patch")
    call = ("apply_patch", {"command": patch})
    agent.before(*call)
    if "Move to" in patch:
        (root / "a").unlink()
    else:
        (root / "a").write_text("1\n")
    (root / "b").write_text("1\n")
    agent.after(*call)
    agent.stop()
    assert files_of(root, agent) == [{b"a", b"b"}]
    undo(root, agent)
    assert on_disk(root) == before


@pytest.mark.parametrize(
    "arguments",
    [{"edits": [{"file_path": "a"}, {"file_path": "b"}]}, {"edits": [1, 2]}, {"edits": []}, {}, None, "a", ["a", "b"]],
    ids=str,
)
def test_an_edit_that_does_not_say_of_what_makes_the_turn_scan(arguments: Any, root: Path) -> None:
    (root / "a").write_text("0\n")
    before = on_disk(root)
    agent = Claude(root)
    agent.prompt("Edit several")
    agent.before("MultiEdit", arguments)
    (root / "a").write_text("1\n")
    agent.write("c", "named\n")
    agent.stop()
    undo(root, agent)
    assert on_disk(root) == before
