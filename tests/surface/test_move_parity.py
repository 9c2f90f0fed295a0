"""The same move asked for on every surface: command line, terminal tree, page and MCP server behave alike (ROOMS.md).

Each story is told once per surface, with the real program behind it: a process, an app under its pilot, a server on the
loopback address, a client of the protocol. What differs is how a person is asked; what happens to files and refs, and
what is refused, may not differ.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM, snap_json
from helpers import all_refs, assert_whole, killed_at, on_disk, turn, write
from test_conversations import cut_off_in_turn_2
from test_mcp import Agent, talk
from tui_project import press, rest, said
from webserver import serving

from snapstore import Store
from snapstore.surface.records.base import document
from snapstore.surface.records.moves import MoveRecord
from snapstore.timeline.history.operations import Operations
from snapstore.tui.app import SnapstoreApp
from snapstore.tui.screens.conflicts import ConflictScreen
from snapstore.tui.screens.plan import PlanScreen

Answer = dict[str, Any]  # the document of a move or of an error; of the terminal tree, what its bar says


def on_the_command_line(root: Path, move: str) -> Answer:
    done = subprocess.run(
        [*PROGRAM, move, "--json"], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
    )
    found: Answer = json.loads(done.stdout)
    assert done.returncode == {"conflict": 10, "busy": 11}.get(found.get("error", ""), 0), done
    return found


def on_the_page(root: Path, move: str) -> Answer:
    with serving(root) as server:
        page = server.client()
        with Store.open(root, recover=False) as store:
            session = store.active_session()
        fields = {"move": move, "expected": page.expected(session)}
        answer = page.http.post(f"/api/sessions/{session}/move", json=fields)
        found: Answer = answer.json()
        assert (answer.status_code == 200) == ("error" not in found), answer.text
        return found


def by_the_protocol(root: Path, move: str) -> Answer:
    found: list[Answer] = []

    async def story(agent: Agent) -> None:
        answer = await agent.client.call_tool(move, {})
        found.append(json.loads(answer.content[0].text))

    talk(root, story)
    return found[0]


def in_the_terminal(root: Path, move: str) -> Answer:
    async def story() -> Answer:
        app = SnapstoreApp(str(root))
        app.reading_time = 0.001
        async with app.run_test(size=(110, 30)) as pilot:
            await rest(pilot)
            await press(pilot, {"undo": "u", "redo": "ctrl+r"}[move])
            if isinstance(app.screen, ConflictScreen):
                await press(pilot, "escape")
                return {"error": "conflict", "said": said(pilot)}
            if isinstance(app.screen, PlanScreen):
                await press(pilot, "enter")
            text = said(pilot)
            if "turn is open" in text:
                return {"error": "busy", "said": text}
            return {"error": "conflict", "stale": True, "said": text} if "Look again" in text else {"said": text}

    return asyncio.run(asyncio.wait_for(story(), 120))


Surface = Callable[[Path, str], Answer]
SURFACES = [on_the_command_line, in_the_terminal, on_the_page, by_the_protocol]
every_surface = pytest.mark.parametrize("ask", SURFACES)


def look_again(ask: Surface, root: Path, move: str) -> Answer:
    """Ask; and once more where the answer is that what was seen is out of date, as a person would."""
    found = ask(root, move)
    return ask(root, move) if found.get("stale") else found


@pytest.fixture
def told(root: Path) -> Iterator[Store]:
    """Two turns of a person at a shell."""
    with Store.open(root, create=True, session="shell") as store:
        session = store.session("shell")
        turn(session, root, "First", **{"a.txt": "one\n"})
        turn(session, root, "Second", **{"a.txt": "two\n", "b.txt": "b\n"})
        yield store


def state(store: Store, root: Path) -> tuple[object, object]:
    return on_disk(root), all_refs(store)


@every_surface
def test_a_move_there_and_back_is_the_same_everywhere(ask: Surface, told: Store, root: Path) -> None:
    last = on_disk(root)
    ask(root, "undo")
    assert {path: data for path, (_, data) in on_disk(root).items()} == {b"a.txt": b"one\n"}
    ask(root, "redo")
    assert on_disk(root) == last
    assert [operation.kind for operation in Operations(told).newest_first()][:2] == ["redo", "undo"]
    assert_whole(told)


def test_what_a_program_reads_of_a_move_is_the_same_document(told: Store, root: Path) -> None:
    answers = []
    for ask in (on_the_command_line, on_the_page, by_the_protocol):
        answers.append(ask(root, "undo"))
        MoveRecord.model_validate(answers[-1])
        with Store.open(root) as store:
            session = store.session("shell")
            expected = document(MoveRecord.of(session.move(session.plan_redo())))
        assert expected["turns_redone"] == 1
    numbers = {answer.pop("operation", None) for answer in answers}
    assert len(numbers) == len(answers), "each is an operation of its own"
    assert answers[0] == answers[1] == answers[2]


@every_surface
def test_a_conflict_writes_nothing_anywhere(ask: Surface, told: Store, root: Path) -> None:
    write(root / "a.txt", "mine\n")
    before = state(told, root)
    assert ask(root, "undo")["error"] == "conflict"
    assert state(told, root) == before


@every_surface
def test_an_open_turn_that_somebody_works_on_stands_in_the_way(ask: Surface, told: Store, root: Path) -> None:
    """S1-46."""
    told.session("shell").begin("Still at it")
    before = state(told, root)
    assert ask(root, "undo")["error"] == "busy"
    assert state(told, root) == before


@every_surface
def test_a_turn_that_was_cut_off_is_closed_first_and_is_then_the_last(
    ask: Surface, root: Path, nobodys_home: Path
) -> None:
    """G-37, C15. A surface that shows a person the tree asks them to look again; the others go on at once."""
    agent = cut_off_in_turn_2(root, nobodys_home)
    assert "error" not in look_again(ask, root, "undo")
    assert set(on_disk(root)) == {b"f1.txt"}
    with Store.open(root) as store:
        assert store.open_turn(agent.session) is None
        assert_whole(store)


@every_surface
def test_a_move_that_was_killed_is_finished_before_anything_is_planned(ask: Surface, told: Store, root: Path) -> None:
    """S0-47."""
    last = on_disk(root)

    def half() -> None:
        with Store.open(root) as store:
            session = store.session("shell")
            session.move(session.plan_undo())

    assert any(killed_at(nth, half) and told.journal.pending() for nth in range(1, 300))
    look_again(ask, root, "redo")
    with Store.open(root) as store:
        assert not store.journal.pending()
        assert on_disk(root) == last
        assert_whole(store)


def fork_on_the_command_line(root: Path) -> Answer:
    return snap_json(root, "fork", "1", "--json", status=16)


def fork_on_the_page(root: Path) -> Answer:
    with serving(root) as server:
        page = server.client()
        fields = {"address": "1", "expected": page.expected("shell")}
        found: Answer = page.post("/api/sessions/shell/fork", fields, 404)
        return found


@pytest.mark.parametrize("fork", [fork_on_the_command_line, fork_on_the_page])
def test_a_fork_that_fails_moves_nothing(fork: Callable[[Path], Answer], told: Store, root: Path) -> None:
    """S1-65: the session belongs to no agent. Files and cursor are where they were."""
    files, cursor = on_disk(root), told.shadow.refs.value("refs/snapstore/cursor/shell")
    found = fork(root)
    assert found["error"] == "unknown" and "moved" not in found["hint"]
    assert on_disk(root) == files
    assert told.shadow.refs.value("refs/snapstore/cursor/shell") == cursor
