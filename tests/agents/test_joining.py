"""A fork that Claude Code makes itself names its parent nowhere: no field, no line, and no file until the first answer
(2.1.325). The process that makes it tells (S4-09)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agents import ID, OTHER_ID, Claude

from snapstore import Store
from snapstore.store.conversations import Conversations

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="the system does not tell of processes")

# A process whose command line is an agent's; its child is the hook.
AGENT = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'snapstore', 'hook', 'claude'], check=True)"


@pytest.fixture
def agent(root: Path) -> Claude:
    """Two turns, the second undone."""
    agent = Claude(root)
    agent.start()
    agent.whole_turn("One", [("one.txt", "1\n")])
    agent.whole_turn("Two", [("two.txt", "2\n")])
    with Store.open(root) as store:
        session = store.session(agent.session)
        session.move(session.plan_undo(1))
    return agent


def start_as(agent: Claude, *words: str) -> None:
    payload = {"session_id": agent.id, "cwd": str(agent.root), "hook_event_name": "SessionStart", "source": "fork"}
    env = {**os.environ, **agent.env}
    subprocess.run([sys.executable, "-c", AGENT, *words], input=json.dumps(payload).encode(), env=env, check=True)


def parent(store: Store, id: str) -> str | None:
    known = Conversations(store).agent_session(id)
    assert known is not None
    return known.parent


def test_a_branch_made_inside_the_agent_comes_from_the_session_it_spoke_in(agent: Claude, root: Path) -> None:
    other = Claude(root, OTHER_ID)
    other.start("fork")
    other.whole_turn("Other", [("other.txt", "3\n")])
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]
        assert parent(store, OTHER_ID) == ID


@pytest.mark.parametrize("words", [("-p", "--resume", ID), (f"--resume={ID}",), ("-r", ID, "--model", "x")], ids=len)
def test_a_fork_comes_from_the_session_that_was_to_be_resumed(agent: Claude, root: Path, words: tuple[str]) -> None:
    other = Claude(root, OTHER_ID)
    start_as(other, *words, "--fork-session")
    other.whole_turn("Other", [("other.txt", "3\n")])
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]
        assert parent(store, OTHER_ID) == ID


@pytest.mark.parametrize("words", [("--resume",), ("--resume", "../a title"), ("--continue",), ("--resume", OTHER_ID)])
def test_where_the_process_does_not_tell_it_is_a_session_of_its_own(
    agent: Claude, root: Path, words: tuple[str]
) -> None:
    other = Claude(root, OTHER_ID)
    start_as(other, *words, "--fork-session")
    other.whole_turn("Other", [("other.txt", "3\n")])
    with Store.open(root) as store:
        assert sorted(store.sessions()) == sorted([agent.session, other.session])
        assert parent(store, OTHER_ID) is None
