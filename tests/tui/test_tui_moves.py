"""Keys and commands of the terminal tree that move, through the app itself; then the files on disk are looked at."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from garden import Clock
from helpers import all_refs, assert_whole, bit_by_bit, child, in_commit, killed_at, living_child, on_disk, write
from test_conversations import Talking
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input
from tui_helpers import app_of, in_terminal, lines_of, screen_text, settled, terminal, until

from snapstore import Store
from snapstore.agents.fork import ConversationFork
from snapstore.timeline.history.branch import Branch
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import PathMove
from snapstore.timeline.moves.three_way import ThreeWay
from snapstore.tui import app as app_module
from snapstore.tui import move_controller
from snapstore.tui.app import SnapstoreApp
from snapstore.tui.move_steps import Look
from snapstore.tui.screens.branches import BranchesScreen
from snapstore.tui.screens.conflicts import ConflictScreen
from snapstore.tui.screens.help import HelpScreen
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.screens.plan import PlanScreen
from snapstore.tui.screens.sessions import SessionsScreen
from snapstore.tui.screens.undo_list import UndolistScreen
from snapstore.tui.widgets.bars import StatusBar

MINUTE = 60


class Project:
    """A project whose turns are a minute apart, and the state of its files after each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.session = "shell"
        self.clock = Clock()
        self.store = Store.open(root, create=True, clock=self.clock)
        self.states: dict[str, dict[bytes, tuple[bytes, bytes]]] = {"start": on_disk(root)}
        self.commits: dict[str, bytes] = {}

    def turn(self, prompt: str, /, *, minutes: float = 1, reply: str = "", **files: str | bytes | None) -> bytes:
        """A turn that writes files (`__` for a slash, `_dot_` for a dot), or with None deletes them."""
        self.clock.now += minutes * MINUTE
        with self.store.session(self.session).turn(prompt, agent="claude") as turn:
            for name, text in files.items():
                path = self.root / name.replace("__", "/").replace("_dot_", ".")
                if text is None:
                    path.unlink()
                else:
                    write(path, text)
            if reply:
                turn.reply(reply)
        assert turn.commit is not None
        self.states[prompt], self.commits[prompt] = on_disk(self.root), turn.commit
        return turn.commit

    def undo(self, number: int = 1) -> None:
        session = self.store.session(self.session)
        session.move(session.plan_undo(number))

    @property
    def cursor(self) -> bytes:
        found = self.store.shadow.refs.read(f"refs/snapstore/cursor/{self.session}")
        assert found is not None
        return found

    def is_at(self, name: str) -> bool:
        """Whether the session stands there, and the files are what they were there, byte for byte."""
        return self.cursor == self.commits.get(name, self.cursor) and on_disk(self.root) == self.states[name]


@pytest.fixture
def project(root: Path) -> Iterator[Project]:
    """one─two─three, each changing `a`."""
    write(root / "a", "zero\n")
    grown = Project(root)
    for name in ("one", "two", "three"):
        grown.turn(name, a=f"{name}\n")
    yield grown
    grown.store.close()


@pytest.fixture
def forked(project: Project) -> Project:
    """one─two─three (main), one─other─last (main-2), standing on last."""
    project.undo(2)
    project.turn("other", a="other\n")
    project.turn("last", a="last\n")
    return project


async def rest(pilot: Pilot[None]) -> None:
    """Until everything is done, or waits for a person."""
    app = pilot.app
    quiet = 0
    for _ in range(4000):
        await pilot._wait_for_screen()
        waiting = {"follow", "acting"} if len(app.screen_stack) > 1 else {"follow"}
        quiet = quiet + 1 if all(worker.is_finished or worker.group in waiting for worker in app.workers) else 0
        if quiet == 3:
            break
        await asyncio.sleep(0.004)
    else:
        raise AssertionError(f"still at work: {list(app.workers)}")
    await settled(pilot)


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await rest(pilot)


async def command(pilot: Pilot[None], text: str) -> None:
    """Typed after a colon."""
    await pilot.press("colon")
    line = pilot.app.screen.query_one(Input)
    line.value = text
    await press(pilot, "enter")


async def asked(pilot: Pilot[None]) -> str:
    """The plan that is shown before the move."""
    await until(pilot, lambda: isinstance(pilot.app.screen, PlanScreen) and pilot.app.screen.listening)
    await rest(pilot)
    return screen_text(pilot.app)


async def conflicting(pilot: Pilot[None]) -> str:
    await until(pilot, lambda: isinstance(pilot.app.screen, ConflictScreen) and pilot.app.screen.listening)
    await rest(pilot)
    return screen_text(pilot.app)


def said(pilot: Pilot[None]) -> str:
    return app_of(pilot).screen_stack[0].query_one(StatusBar).said


def row_of(pilot: Pilot[None], prompt: str) -> str:
    """A turn, as the tree draws it."""
    [row] = [line for line in lines_of(pilot.app, "#tree") if f" {prompt} " in line]
    return row


def complained(pilot: Pilot[None]) -> bool:
    return app_of(pilot).screen_stack[0].query_one(StatusBar).complains


# Along the line.


@in_terminal
async def test_u_undoes_and_ctrl_r_brings_back(project: Project) -> None:
    """S2-01, S2-05, S2-21, S3-12, S3-13; at once, and the line says what happened and how to come back (C13)."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        assert project.is_at("two")
        assert "Undone turn 3 (three)" in said(pilot) and "Ctrl-R brings it back" in said(pilot)
        assert "1 file changed, 1 message removed" in said(pilot)
        assert "undone" in row_of(pilot, "three")  # S0-17, S1-04, S1-07: still there, and told apart
        await press(pilot, "u")
        assert project.is_at("one")
        await press(pilot, "ctrl+r")
        assert project.is_at("two")
        assert "Redone turn 2 (two)" in said(pilot) and "u undoes it" in said(pilot)
        assert "message" not in said(pilot)
        assert "undone" not in row_of(pilot, "two") and "undone" in row_of(pilot, "three")  # S0-22
        assert app_of(pilot).selected == project.cursor
    assert_whole(project.store)


@in_terminal
async def test_at_the_ends_there_is_nothing_to_do(project: Project) -> None:
    """S2-27."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "j", "ctrl+r")
        assert said(pilot) == "Nothing to redo." and project.is_at("three")
        assert app_of(pilot).selected == project.commits["two"]  # where a person looks, they go on looking
        await press(pilot, "u", "u", "u", "u")
        assert said(pilot) == "Nothing to undo." and not complained(pilot)
        assert on_disk(project.root) == project.states["start"]


@in_terminal
async def test_keys_typed_faster_than_moves_are_made_wait_their_turn(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u", "u", "ctrl+r")
        assert project.is_at("two")


@in_terminal
async def test_more_than_one_turn_shows_its_plan_first(project: Project) -> None:
    """C13, S2-07: bulk moves are looked at. Leaving changes nothing."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        before = bit_by_bit(project.root)
        await press(pilot, "2", "u")
        shown = await asked(pilot)
        assert "Undo 2 turns, and be at turn 1 on main." in shown and "write" in shown and "First undone" in shown
        assert bit_by_bit(project.root) == before
        await press(pilot, "escape")
        assert said(pilot) == "Nothing was changed." and bit_by_bit(project.root) == before
        await press(pilot, "2", "u")
        await asked(pilot)
        await press(pilot, "enter")
        assert project.is_at("one")
        assert "Undone 2 turns" in said(pilot) and ":redo 2 brings them back" in said(pilot)
        await command(pilot, "redo 2")
        await asked(pilot)
        await pilot.click("#go")
        await rest(pilot)
        assert project.is_at("three")


@in_terminal
async def test_a_file_that_would_go_shows_its_plan_first(project: Project) -> None:
    """C13."""
    project.turn("new file", new="new\n")
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        assert "remove     new" in await asked(pilot)
        await press(pilot, "n")
        assert project.is_at("new file")
        await press(pilot, "u")
        await asked(pilot)
        await press(pilot, "y")
        assert project.is_at("three") and not (project.root / "new").exists()
        await press(pilot, "ctrl+r")  # brings a file into being: no reason to ask
        assert project.is_at("new file")


# Through time and across branches.


@in_terminal
async def test_g_minus_and_g_plus_go_through_time(forked: Project) -> None:
    """S3-14, S3-15: across branches, in the order things were made."""
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        await press(pilot, "g", "minus")
        assert forked.is_at("other")
        await press(pilot, "g", "minus")
        await asked(pilot)  # to the other branch: three turns in all
        await press(pilot, "enter")
        assert forked.is_at("three") and "U takes this back" in said(pilot)
        await press(pilot, "g", "plus")
        await asked(pilot)
        await press(pilot, "enter")
        assert forked.is_at("other")
        await press(pilot, "g", "plus", "g", "plus")
        assert forked.is_at("last") and said(pilot) == "Nothing is later."


@in_terminal
async def test_minus_and_plus_alone_do_nothing(forked: Project) -> None:
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        await press(pilot, "minus", "plus", "g", "j", "minus", "g", "escape", "plus")
        assert forked.is_at("last")


@in_terminal
async def test_earlier_and_later_by_time_and_count(forked: Project) -> None:
    """S3-16, S3-17. Turns are a minute apart: one, two, three, other, last."""
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        await command(pilot, "earlier 60s")
        assert forked.is_at("other")
        await command(pilot, "earlier 3m")
        assert forked.is_at("one")
        await command(pilot, "later 2")
        await asked(pilot)
        await press(pilot, "enter")
        assert forked.is_at("three")
        await command(pilot, "later 2m")
        await asked(pilot)
        await press(pilot, "enter")
        assert forked.is_at("last")
        await command(pilot, "later 5m")
        assert said(pilot) == "Nothing is later by so much." and forked.is_at("last")
        await command(pilot, "earlier 1d")
        await asked(pilot)
        await press(pilot, "enter")
        assert on_disk(forked.root) == forked.states["start"]


@in_terminal
async def test_enter_goes_to_the_selected_turn_whole_or_not_at_all(forked: Project) -> None:
    """S1-01, S3-21: one transaction, one operation, one undo away."""
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        app = app_of(pilot)
        app.select(forked.commits["three"])
        await rest(pilot)
        assert forked.is_at("last")  # looking never moves
        await press(pilot, "enter")
        shown = await asked(pilot)
        assert "Undo 2 turns and redo 2 turns, and be at turn 3 on main." in shown
        await press(pilot, "enter")
        assert forked.is_at("three") and app.selected == forked.commits["three"]
        await press(pilot, "U")
        assert re.search(r"Undo operation \d+ \(goto turn 3 of main\)", await asked(pilot))
        await press(pilot, "enter")
        assert forked.is_at("last")


@in_terminal
async def test_a_chosen_undone_turn_is_redone_and_forks_are_marked(forked: Project) -> None:
    """S0-19, S0-27, S0-37, S1-04, S4-20: what is undone is counted and stays to be gone to; a turn with several ways
    on says how many."""
    forked.undo(2)
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        assert "turn 1, 2 undone" in screen_text(pilot.app).splitlines()[0]
        assert "Turn >1< ⑂ 2" in row_of(pilot, "one")
        app_of(pilot).select(forked.commits["other"])
        await press(pilot, "enter")
        assert forked.is_at("other")
        assert "turn 2, 1 undone" in screen_text(pilot.app).splitlines()[0]
        assert "undone" not in row_of(pilot, "other") and "undone" in row_of(pilot, "last")


@in_terminal
async def test_goto_and_switch_take_addresses(forked: Project) -> None:
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        for text, place in (("goto 1", "one"), ("goto #2", "two"), ("switch main-2", "last"), ("goto main:3", "three")):
            await command(pilot, text)
            if isinstance(pilot.app.screen, PlanScreen):
                await press(pilot, "enter")
            assert forked.is_at(place), text
        await command(pilot, "goto 3")
        assert said(pilot) == "You are there already."


# One turn, names, operations.


@in_terminal
async def test_r_takes_one_turn_out(project: Project) -> None:
    project.turn("aside", b="aside\n")
    project.turn("more", a="more\n")
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        app_of(pilot).select(project.commits["aside"])
        await press(pilot, "r")
        assert "Revert turn 4: aside" in await asked(pilot)
        await press(pilot, "enter")
        assert not (project.root / "b").exists() and (project.root / "a").read_text() == "more\n"
        assert "Reverted turn 4: aside" in said(pilot) and "U takes this back" in said(pilot)
        await press(pilot, "U")
        assert project.is_at("more")
        await command(pilot, "revert 4")
        await asked(pilot)
        await press(pilot, "enter")
        assert not (project.root / "b").exists()
        await press(pilot, "G", "r")
        await until(pilot, lambda: said(pilot).startswith("revert failed: the start is no turn."))


@in_terminal
async def test_undolist_shows_every_end_and_moves_nobody(forked: Project) -> None:
    """S3-18."""
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        await command(pilot, "undolist")
        assert isinstance(pilot.app.screen, UndolistScreen)
        shown = screen_text(pilot.app)
        assert "three" in shown and "last" in shown and "number" in shown
        await press(pilot, "j", "enter")
        assert app_of(pilot).selected == forked.commits["three"] and forked.is_at("last")
        await command(pilot, "undolist")
        await press(pilot, "escape")
        assert forked.is_at("last")


@in_terminal
async def test_a_checkpoint_is_pinned_to_the_selected_turn(project: Project) -> None:
    """S1-55: named, shown at its turn, gone back to."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        app_of(pilot).select(project.commits["one"])
        await command(pilot, "checkpoint good")
        assert "Checkpoint good is at turn 1" in said(pilot)
        assert all_refs(project.store)["refs/tags/shell/good"] == project.commits["one"].hex()
        assert "[good]" in screen_text(pilot.app)
        await command(pilot, "goto good")
        await asked(pilot)
        await press(pilot, "enter")
        assert project.is_at("one")
        await command(pilot, "checkpoint good")
        assert "Nothing had to be done." in said(pilot)
        await press(pilot, "U")  # the way there
        await asked(pilot)
        await press(pilot, "enter")
        await press(pilot, "U")  # and the name
        await until(pilot, lambda: "refs/tags/shell/good" not in all_refs(project.store))
        assert project.is_at("three")


@in_terminal
async def test_b_lists_renames_archives_and_switches(forked: Project) -> None:
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        await press(pilot, "b")
        assert isinstance(pilot.app.screen, BranchesScreen) and "Branch from turn 1" in screen_text(pilot.app)
        await press(pilot, "j", "r")
        assert isinstance(pilot.app.screen, LineScreen)
        await press(pilot, *("backspace",) * 4, *"first", "enter")
        assert "refs/heads/shell/first" in all_refs(forked.store)
        await press(pilot, "a")
        assert "refs/snapstore/archive/shell/first" in all_refs(forked.store)
        await press(pilot, "a")
        assert "refs/heads/shell/first" in all_refs(forked.store)
        await press(pilot, "k", "a")
        assert "cannot be archived" in screen_text(pilot.app)  # stood on
        await press(pilot, "r", *("backspace",) * 6, *"first", "enter")
        assert "there is a branch first already" in screen_text(pilot.app).lower()
        await press(pilot, "j", "enter")
        await asked(pilot)
        await press(pilot, "enter")
        assert forked.is_at("three")


@in_terminal
async def test_s_lists_sessions_with_their_forks_and_shows_another(root: Path, nobodys_home: Path) -> None:
    """S1-20, S1-35, S1-37: each of the agent's sessions below the one it was forked from; looking at another session
    moves nobody, and keys then are for what is seen."""
    project = Project(root)
    project.turn("by hand", a="1\n")
    agent = Talking(root, nobodys_home)
    agent.start()
    for number in (1, 2):
        agent.whole_turn(f"Prompt {number}", [(f"f{number}.txt", f"{number}\n")], f"Reply {number}")
    talk = project.store.session(agent.session)
    talk.move(talk.plan_undo())
    forked = ConversationFork(talk, title="Mine").run()
    assert forked.known is not None
    files, refs = bit_by_bit(root), all_refs(project.store)
    async with terminal(project, columns=120) as pilot:  # type: ignore[arg-type]
        await press(pilot, "s")
        assert isinstance(pilot.app.screen, SessionsScreen)
        lines = [line.strip(" │▸") for line in screen_text(pilot.app).splitlines()]
        at = next(place for place, line in enumerate(lines) if line.startswith(agent.session))
        assert "1 turn," in lines[at] and "Prompt 1" in lines[at]
        assert lines[at + 1] == f"└─ {agent.id}  current"
        assert lines[at + 2] == f"└─ {forked.known.id}  forked after turn 1 · Mine"
        assert any(line.startswith("@ shell") for line in lines)
        await press(pilot, "escape")
        assert app_of(pilot).snapshot.session == "shell"
        await command(pilot, "sessions")
        await press(pilot, "home", "j", "enter")  # the fork's row is its session's
        assert app_of(pilot).snapshot.session == agent.session
        assert "Session " in said(pilot) and agent.session in screen_text(pilot.app)
        assert "undone" in row_of(pilot, "Prompt 2")
        assert (bit_by_bit(root), all_refs(project.store)) == (files, refs)
        await press(pilot, "ctrl+r")
        assert (root / "f2.txt").read_text() == "2\n"
    project.store.close()


@in_terminal
async def test_quit_and_help_as_commands(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await command(pilot, "help")
        assert isinstance(pilot.app.screen, HelpScreen)
        await press(pilot, "escape")
        await pilot.press("colon", "q", "enter")
        for _ in range(500):
            if pilot.app._exit:
                break
            await asyncio.sleep(0.01)
        assert pilot.app._exit
    assert project.is_at("three")


# Looking, and what is no command.


@in_terminal
async def test_looking_never_moves(forked: Project) -> None:
    files, refs = bit_by_bit(forked.root), all_refs(forked.store)
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        for key in (
            "j",
            "k",
            "h",
            "l",
            "a",
            "e",
            "d",
            "d",
            "m",
            "d",
            "d",
            "t",
            "z",
            "n",
            "N",
            "g",
            "g",
            "G",
            "tab",
            "j",
        ):
            await press(pilot, key)
    assert bit_by_bit(forked.root) == files and all_refs(forked.store) == refs


BAD = [
    ("frobnicate", "no command"),
    ("und", "beginning of"),
    ("undo many", "not a number"),
    ("undo 0", "not a number"),
    ("undo 99", "only 3 turns to undo"),
    ("redo -1", "not a number"),
    ("earlier 5x", "neither a number nor a time"),
    ("later 99999999999999999999h", "not a time"),
    ("goto", "is wanted"),
    ("goto nowhere", "there is no 'nowhere'"),
    ("goto ../../etc", "there is no"),
    ("goto a b", "is not a turn"),
    ("switch @", "no branch"),
    ("checkpoint", "is wanted"),
    ("checkpoint 12", "cannot be a checkpoint name"),
    ("checkpoint a/../b", "name"),
    ("checkpoint .lock", "name"),
    ("revert 99", "no turn 99"),
    ("quit now", "too much"),
    ("cancel", "No turn is open"),
]


@in_terminal
async def test_a_bad_command_is_told_and_does_nothing(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        for text, told in BAD:
            await command(pilot, text)
            assert told.lower() in said(pilot).lower() and len(app_of(pilot).screen_stack) == 1, text
            assert project.is_at("three"), text


def at_once(pilot: Pilot[None], *keys: str) -> None:
    """Keys that arrive together: a slow line, a key held down, a macro."""
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        pilot.app.post_message(events.Key(name, key if len(key) == 1 else None))


@in_terminal
async def test_keys_that_come_at_once_keep_their_counts_and_prefixes(forked: Project) -> None:
    """S3-31: as many turns are undone as were typed, whatever was typed after."""
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        app = app_of(pilot)
        at_once(pilot, *"u3j")
        await rest(pilot)
        assert forked.is_at("other") and len(app.screen_stack) == 1
        at_once(pilot, "ctrl+r", *"2uj")
        assert "Undo 2 turns" in await asked(pilot)
        await press(pilot, "escape")
        assert forked.is_at("last")
        at_once(pilot, *"g-")
        await until(pilot, lambda: forked.is_at("other"))
        await rest(pilot)
        at_once(pilot, *"g+")
        await until(pilot, lambda: forked.is_at("last"))
        await rest(pilot)
        at_once(pilot, *"gg-")  # the top; `-` alone is nothing
        await rest(pilot)
        top = app.selected
        at_once(pilot, *"Ggg")
        await rest(pilot)
        assert app.selected == top and forked.is_at("last")
        at_once(pilot, *"G")
        await rest(pilot)
        assert app.selected != top


@in_terminal
async def test_what_comes_after_a_line_is_closed_is_for_what_lies_below(project: Project) -> None:
    """A line is closed once, and commands that come at once are obeyed one after the other."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        at_once(pilot, *":frob", "enter", "enter")
        await until(pilot, lambda: "no command" in said(pilot) or "already" in said(pilot))
        at_once(pilot, *"/three", "enter", "enter", ":", "backspace", "backspace", "backspace")
        await rest(pilot)
        at_once(pilot, *":undo", "enter", *":undo", "enter", *":redo", "enter")
        await until(pilot, lambda: "Redone turn 2" in said(pilot))
        await rest(pilot)
        at_once(pilot, *"?", "escape", "escape", *"bq:", "escape", "escape", *":undolist", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, UndolistScreen))
        at_once(pilot, "escape", "escape", "escape")
        await rest(pilot)
        assert len(pilot.app.screen_stack) == 1 and project.is_at("two") and not pilot.app._exit


@in_terminal
async def test_a_second_enter_does_not_take_back_what_the_first_began(project: Project) -> None:
    """G-08: the selected turn was chosen in view of a tree that is about to change."""
    project.turn("new file", new="new\n")
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        await asked(pilot)
        at_once(pilot, "enter", "enter")
        await until(pilot, lambda: "Undone turn 4" in said(pilot))
        await rest(pilot)
        assert project.is_at("three")
        at_once(pilot, "u", "enter")
        await until(pilot, lambda: "Undone turn 3" in said(pilot))
        await rest(pilot)
        assert project.is_at("two")


@in_terminal
async def test_an_enter_that_bounces_goes_nowhere(project: Project) -> None:
    """Looking never moves: a command or a search is ended by Enter, and a second one is no `go`."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        app = app_of(pilot)
        app.reading_time = 3600
        at_once(pilot, *"j:checkpoint here", "enter", "enter")
        await until(pilot, lambda: "Checkpoint here is at turn 2" in said(pilot))
        at_once(pilot, *"/one", "enter", "enter")
        await until(pilot, lambda: app.selected == project.commits["one"])
        await rest(pilot)
        assert project.is_at("three")
        app.reading_time = 0.001
        await press(pilot, "j", "k", "enter")
        await asked(pilot)
        await press(pilot, "escape")


@in_terminal
async def test_a_name_that_comes_at_once_is_no_row_of_keys(forked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`r` asks for a name: its `a` archives nothing. And `j` waits for the rows, however long they take to read."""
    slowly = threading.Event()

    def late(screen: BranchesScreen) -> list[Branch]:
        slowly.wait(60)
        return read(screen)

    read = BranchesScreen._read
    monkeypatch.setattr(BranchesScreen, "_read", late)
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        at_once(pilot, *"bjra", "enter")
        asyncio.get_running_loop().call_later(0.5, slowly.set)
        await until(pilot, lambda: "refs/heads/shell/maina" in all_refs(forked.store))
        assert not any("archive" in name for name in all_refs(forked.store))


@in_terminal
async def test_a_plan_never_comes_over_what_somebody_types(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """C13: a letter of a command is no answer to a plan that took its time, nor is one typed before it is read."""
    project.turn("new file", new="new\n")
    slowly = threading.Event()

    def look(*arguments: Any) -> Look:
        slowly.wait(60)
        return looked(*arguments)

    looked = move_controller.look
    monkeypatch.setattr(move_controller, "look", look)
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        app = app_of(pilot)
        app.reading_time = 3600
        await pilot.press("u", "colon", *"chec")
        slowly.set()
        await until(pilot, lambda: "There is a plan to look at" in said(pilot))
        await pilot.press("y")
        assert isinstance(app.screen, LineScreen) and app.screen.query_one(Input).value == "checy"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen))
        await press(pilot, "y", "enter", "n")
        assert isinstance(app.screen, PlanScreen) and project.is_at("new file")
        assert "Go (Enter)" not in screen_text(app)  # it does not hear yet
        app.reading_time = 0.001
        await pilot.press("y")
        assert "Go (Enter)" in await asked(pilot)
        assert project.is_at("new file")
        await press(pilot, "y")
        assert project.is_at("three")


@in_terminal
async def test_what_is_typed_ahead_belongs_to_the_command(project: Project) -> None:
    """A slow line delivers many keys at once: none of them may be taken for a key of the tree, `r` least of all."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        at_once(pilot, *":revert 99", "enter")
        await until(pilot, lambda: "there is no turn 99" in said(pilot))
        assert project.is_at("three")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        at_once(pilot, "b", "j", "enter")
        await until(pilot, lambda: "You are there already." in said(pilot))
        assert project.is_at("three")
        at_once(pilot, "j", "enter")
        await until(pilot, lambda: "Undone turn 3" in said(pilot))
        assert project.is_at("two")


@in_terminal
async def test_the_command_line_can_be_left_and_remembers(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "colon", "u", "escape")
        await press(pilot, "colon", "backspace")
        await press(pilot, "colon", "enter")
        assert project.is_at("three") and len(pilot.app.screen_stack) == 1
        await command(pilot, "undo")
        await press(pilot, "colon", "up", "enter")
        assert project.is_at("one")


# Conflicts, file by file.


@pytest.fixture
def edited(project: Project) -> Project:
    """Turn `wide` changed two files; another hand changed both since, one of them on other lines."""
    lines = [f"{number}\n" for number in range(12)]
    write(project.root / "merges", "".join(lines))
    write(project.root / "clashes", "old\n")
    project.turn("before")
    write(project.root / "merges", "".join(["first\n", *lines[1:]]))
    project.turn("wide", merges="".join(["turn\n", *lines[1:]]), clashes="turn\n")
    write(project.root / "merges", "".join(["turn\n", *lines[1:], "mine\n"]))
    write(project.root / "clashes", "mine\n")
    return project


def texts(project: Project) -> tuple[str, str]:
    return (project.root / "merges").read_text(), (project.root / "clashes").read_text()


@in_terminal
async def test_conflicts_are_settled_file_by_file(edited: Project) -> None:
    """G-38: merge one, take theirs for the other; U brings back what was on disk, both sides."""
    before = texts(edited)
    async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        shown = await conflicting(pilot)
        assert "2 files changed since" in shown and "Mine" in shown and "Theirs" in shown
        assert "undecided  clashes" in shown and "-turn" in shown and "+mine" in shown
        await press(pilot, "enter")
        assert "2 files undecided" in screen_text(pilot.app)
        await press(pilot, "m")
        assert "cannot be settled like that: both sides changed the same lines" in screen_text(pilot.app)
        await press(pilot, "t", "j", "m", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await rest(pilot)
        merged, clashed = texts(edited)
        assert clashed == "old\n" and merged.startswith("first\n") and merged.endswith("mine\n")
        assert "what was on disk is saved" in said(pilot) and "U takes this back" in said(pilot)
        await press(pilot, "U")
        if isinstance(pilot.app.screen, PlanScreen):
            await press(pilot, "enter")
        assert texts(edited) == before
    assert_whole(edited.store)


@in_terminal
async def test_mine_can_be_kept_and_markers_asked_for(edited: Project) -> None:
    """G-38."""
    merges, _ = texts(edited)
    async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        await conflicting(pilot)
        await press(pilot, "x", "j", "o")
        assert "markers    clashes" in screen_text(pilot.app) and "mine       merges" in screen_text(pilot.app)
        await press(pilot, "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await rest(pilot)
        assert texts(edited)[0] == merges
        assert texts(edited)[1].startswith("<<<<<<< ") and "mine\n" in texts(edited)[1] and "old\n" in texts(edited)[1]


@pytest.mark.parametrize(("key", "outcome"), [("O", "mine\n"), ("T", "old\n")])
def test_one_key_settles_all_of_them(edited: Project, key: str, outcome: str) -> None:
    @in_terminal
    async def story() -> None:
        async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
            await press(pilot, "u")
            await conflicting(pilot)
            await press(pilot, key, "enter")
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
            await rest(pilot)
            assert texts(edited)[1] == outcome

    story()


@in_terminal
async def test_what_a_move_removes_beside_its_conflicts_is_shown(project: Project) -> None:
    """C13: who has settled one file has not seen that others go."""
    project.turn("new file", b="new\n")
    project.turn("again", a="again\n")
    write(project.root / "a", "mine\n")
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        for answer in ("escape", "enter"):
            await command(pilot, "undo 2")
            await conflicting(pilot)
            await press(pilot, "o", "enter")
            shown = await asked(pilot)
            assert "remove     b" in shown and "Undo 2 turns" in shown
            assert (project.root / "b").exists() and project.cursor == project.commits["again"]
            await press(pilot, answer)
        assert not (project.root / "b").exists() and (project.root / "a").read_text() == "mine\n"
        assert project.cursor == project.commits["three"]


@in_terminal
async def test_the_last_choice_counts_however_long_one_before_it_takes(
    edited: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-38: merges of many files take their time; mine is mine all the same, and Enter waits for what is not known."""
    before, slowly = texts(edited), threading.Event()
    read = ConflictScreen._three_way

    def three_way(screen: ConflictScreen, move: PathMove) -> ThreeWay:
        slowly.wait(60)
        return read(screen, move)

    monkeypatch.setattr(ConflictScreen, "_three_way", three_way)
    async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
        await pilot.press("u")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConflictScreen) and pilot.app.screen.listening)
        await pilot.press("X", "enter")
        await until(pilot, lambda: "2 files still to be worked out" in screen_text(pilot.app))
        await pilot.press("O")
        await until(pilot, lambda: "mine       merges" in screen_text(pilot.app))
        slowly.set()
        await rest(pilot)
        assert "mine       clashes" in screen_text(pilot.app) and "mine       merges" in screen_text(pilot.app)
        await press(pilot, "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await rest(pilot)
        assert texts(edited) == before


@in_terminal
async def test_leaving_the_conflicts_writes_nothing(edited: Project) -> None:
    before, refs = bit_by_bit(edited.root), all_refs(edited.store)
    async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        await conflicting(pilot)
        await press(pilot, "T", "escape")
        assert said(pilot) == "Nothing was written."
    assert bit_by_bit(edited.root) == before and all_refs(edited.store) == refs


@in_terminal
async def test_a_file_that_changes_while_its_conflict_is_looked_at_is_shown_again(edited: Project) -> None:
    """G-38, G-08: a choice is for what was seen."""
    async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        await conflicting(pilot)
        await press(pilot, "T")
        write(edited.root / "clashes", "newer still\n")
        await press(pilot, "enter")
        await until(pilot, lambda: "changed while you looked" in screen_text(pilot.app))
        assert texts(edited)[1] == "newer still\n"
        await rest(pilot)
        assert "+newer still" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert texts(edited)[1] == "newer still\n"


# The world moves on.


@in_terminal
async def test_a_file_changed_between_plan_and_enter_refuses_the_move(project: Project) -> None:
    """G-08: nothing is written, and it says so."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "2", "u")
        await asked(pilot)
        write(project.root / "a", "edited meanwhile\n")
        await press(pilot, "enter")
        assert complained(pilot) and "Nothing was written" in said(pilot) and "a changed" in said(pilot)
        assert (project.root / "a").read_text() == "edited meanwhile\n" and project.cursor == project.commits["three"]
        await press(pilot, "2", "u")  # now it is seen for what it is
        await conflicting(pilot)
        await press(pilot, "escape")


RECORD = """
import sys
from snapstore import Store
with Store.open(sys.argv[1]) as store:
    with store.session("shell").turn(sys.argv[2]):
        open(sys.argv[1] + "/a", "w").write(sys.argv[2])
"""


@in_terminal
async def test_a_turn_recorded_while_the_plan_is_open_makes_it_stale(project: Project) -> None:
    """G-08."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "2", "u")
        await asked(pilot)
        done = child(RECORD, project.root, "from elsewhere")
        assert done.returncode == 0, done.stderr
        await until(pilot, lambda: "The session has moved since" in screen_text(pilot.app))
        await press(pilot, "enter")
        assert complained(pilot) and "has moved since the plan was made" in said(pilot)
        assert (project.root / "a").read_text() == "from elsewhere"
        await until(pilot, lambda: "from elsewhere" in screen_text(pilot.app))
        assert app_of(pilot).snapshot.cursor == project.cursor


@in_terminal
async def test_a_key_pressed_in_view_of_an_old_tree_refreshes_instead(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-08: the tree is looked at so rarely here that the key comes first."""
    monkeypatch.setattr(app_module, "LOOK_EVERY", 3600)
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        assert child(RECORD, project.root, "from elsewhere").returncode == 0
        assert "from elsewhere" not in screen_text(pilot.app)
        await press(pilot, "u")
        assert "the session has moved since you looked. Nothing was written. Look again." in said(pilot)
        assert (project.root / "a").read_text() == "from elsewhere" and "from elsewhere" in screen_text(pilot.app)
        await command(pilot, "checkpoint here")  # what is seen now is how it is
        assert "Checkpoint here" in said(pilot)
        await press(pilot, "u")
        assert (project.root / "a").read_text() == "three\n"


@in_terminal
async def test_what_others_take_out_of_sight_is_told(forked: Project) -> None:
    """G-08: the selection goes to what is nearest, and a key pressed now is pressed knowing that."""
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        app = app_of(pilot)
        await press(pilot, "u")
        assert "Undone turn" in said(pilot)
        app.select(forked.commits["three"])
        await rest(pilot)
        Branches(forked.store.session("shell")).archive("main")
        await until(pilot, lambda: "no longer shown" in said(pilot))
        await rest(pilot)
        assert app.selected == forked.commits["one"]
        await press(pilot, "ctrl+r")
        assert "u undoes it" in said(pilot)
        forked.undo()
        await until(pilot, lambda: app.snapshot.cursor == forked.cursor)
        assert said(pilot) == ""  # somebody else moved: what was said of coming back is no longer true


OTHER = """
import asyncio, sys
from snapstore.tui.app import SnapstoreApp

async def run():
    app = SnapstoreApp(sys.argv[1], "shell")
    async with app.run_test(size=(90, 24)) as pilot:
        for key in sys.argv[2:]:
            await pilot.press(key)
            while any(worker.group == "acting" and not worker.is_finished for worker in app.workers):
                await pilot.pause(0.01)

asyncio.run(run())
"""


@in_terminal
async def test_two_of_them_at_once(project: Project) -> None:
    """Each sees what the other did, and none acts on what it did not see."""
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        done = child(OTHER, project.root, "u")
        assert done.returncode == 0, done.stderr
        assert project.is_at("two")
        await until(pilot, lambda: app_of(pilot).snapshot.cursor == project.cursor)
        await press(pilot, "u")
        assert project.is_at("one")
        done = child(OTHER, project.root, "ctrl+r", "ctrl+r")
        assert done.returncode == 0, done.stderr
        assert project.is_at("three")
        await until(pilot, lambda: app_of(pilot).snapshot.cursor == project.cursor)
        await press(pilot, "u")
        assert project.is_at("two")
    assert_whole(project.store)


# A store in a bad way is told, with what to do; the app goes on.


@in_terminal
async def test_an_open_turn_is_told_and_can_be_closed(project: Project) -> None:
    project.store.session("shell").begin("still at work", agent="claude")
    write(project.root / "a", "half\n")
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        assert complained(pilot) and "turn is open" in said(pilot) and ":cancel" in said(pilot)
        assert (project.root / "a").read_text() == "half\n"
        await command(pilot, "cancel")
        assert said(pilot) == "Closed the open turn as interrupted."
        await press(pilot, "u")
        assert (project.root / "a").read_text() == "three\n"


@in_terminal
async def test_a_turn_that_was_cut_off_is_closed_first_and_then_seen(root: Path, nobodys_home: Path) -> None:
    """G-37, G-08: Esc tells no hook. The key closes the turn, and does nothing else: it was pressed in view of the
    turn before. The next one undoes it."""
    agent = Talking(root, nobodys_home)
    agent.start()
    agent.whole_turn("Prompt 1", [("f1.txt", "1\n")])
    agent.prompt("Cut off")
    agent.write("half.txt", "1\n")
    agent.lines.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    agent.put_down()
    with Store.open(root) as store:
        app = SnapstoreApp(str(root))
        app.reading_time = 0.001
        async with app.run_test(size=(110, 30)) as pilot:
            await press(pilot, "u")
            assert "the turn that was cut off is closed now" in said(pilot) and (root / "half.txt").exists()
            await until(pilot, lambda: "Cut off" in screen_text(app))
            await press(pilot, "u")
            assert "remove     half.txt" in await asked(pilot)
            await press(pilot, "enter")
            assert not (root / "half.txt").exists() and (root / "f1.txt").exists()
            assert "Undone turn 2 (Cut off)" in said(pilot) and "snapstore fork" in said(pilot)
        assert_whole(store)


@in_terminal
async def test_a_store_that_is_gone_is_told_and_comes_back(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        away = f"{project.store.folder}-away"
        os.rename(project.store.folder, away)
        await press(pilot, "u")
        assert complained(pilot) and "no store" in said(pilot).lower() and "snapstore init" in said(pilot)
        await press(pilot, "j", "enter", "d", "b", "escape")
        await command(pilot, "checkpoint x")
        assert complained(pilot)
        assert on_disk(project.root) == project.states["three"]
        os.rename(away, project.store.folder)
        await until(pilot, lambda: "can be read again" in said(pilot))
        await press(pilot, "u")
        assert project.is_at("two")


@in_terminal
async def test_a_damaged_store_is_told(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        state = Path(project.store.state) / "format"
        kept = state.read_bytes()
        state.write_bytes(b"{ not a header")
        await press(pilot, "u")
        assert complained(pilot) and "damaged" in said(pilot) and on_disk(project.root) == project.states["three"]
        state.write_bytes(kept)
        await press(pilot, "u")
        assert project.is_at("two")


@in_terminal
async def test_objects_that_are_gone_are_told(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        shutil.rmtree(f"{project.store.folder}/store.git/objects")
        os.mkdir(f"{project.store.folder}/store.git/objects")
        await press(pilot, "u")
        assert complained(pilot) and on_disk(project.root) == project.states["three"]
        await press(pilot, "d", "j", "b", "escape")


@in_terminal
async def test_a_move_that_somebody_was_killed_in_is_finished_first(project: Project) -> None:
    """The interrupted move is finished by the next key, whoever it was."""

    def half() -> None:
        with Store.open(project.root) as store:
            session = store.session("shell")
            session.move(session.plan_undo(1))

    async with terminal(project) as pilot:  # type: ignore[arg-type]
        for nth in range(1, 200):
            assert killed_at(nth, half), "no point left in it where the journal is pending"
            if project.store.journal.pending():
                break
        await press(pilot, "u")
        await rest(pilot)
        assert on_disk(project.root) in (project.states["one"], project.states["two"], project.states["three"])
        assert not project.store.journal.pending()
    assert_whole(project.store)


@in_terminal
async def test_a_move_that_cannot_be_finished_by_itself_is_told(project: Project) -> None:
    """Somebody was killed in it, and something else moved the branch since: looking goes on, moving is refused."""

    def half() -> None:
        with Store.open(project.root) as store:
            session = store.session("shell")
            session.move(session.plan_undo(1))

    async with terminal(project) as pilot:  # type: ignore[arg-type]
        nth = next(nth for nth in range(1, 200) if killed_at(nth, half) and project.store.journal.pending())
        assert nth
        refs = project.store.shadow.refs
        name = "refs/snapstore/cursor/shell"
        refs.update(name, refs.value(name), project.commits["one"])
        await press(pilot, "u")
        assert complained(pilot) and "an unfinished change" in said(pilot) and "Put it back" in said(pilot)
        await press(pilot, "j", "d", "k")
        assert len(pilot.app.screen_stack) == 1


HOLD = """
import sys
from snapstore import Store
with Store.open(sys.argv[1]) as store, store.lock:
    print("ready", flush=True)
    sys.stdin.read()
"""


@in_terminal
async def test_a_store_that_somebody_else_holds_is_told_by_whom(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking needs no lock (S3-30); moving waits, then says who is in the way."""
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "0.2")
    with living_child(HOLD, project.root) as other:
        async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
            await press(pilot, "j", "d", "k", "b", "escape")
            await press(pilot, "u")
            assert complained(pilot) and f"in use by process {other.pid}" in said(pilot) and "Wait" in said(pilot)
            assert project.is_at("three")


@in_terminal
async def test_who_is_waited_for_is_told_meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "60")
    with living_child(HOLD, project.root) as other:
        async with terminal(project) as pilot:  # type: ignore[arg-type]
            await pilot.press("u")
            await until(pilot, lambda: f"Waiting for process {other.pid}" in said(pilot))
            other.kill()
            await until(pilot, lambda: "Undone turn 3" in said(pilot))
            assert project.is_at("two") and "aiting" not in said(pilot)


@in_terminal
async def test_what_was_finished_for_somebody_else_is_told(project: Project) -> None:
    def half() -> None:
        with Store.open(project.root) as store:
            session = store.session("shell")
            session.move(session.plan_undo(1))

    def interrupt() -> None:
        assert any(killed_at(nth, half) and project.store.journal.pending() for nth in range(1, 200))

    interrupt()
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        assert "an interrupted change: undo of 1 turn" in said(pilot)
        interrupt()
        await press(pilot, "u")
        assert "an interrupted change: undo of 1 turn" in said(pilot)
        assert "the session has moved" in said(pilot) or "Undone turn" in said(pilot)
    assert_whole(project.store)


# Whatever is typed.

KEYS = (
    *("j", "k", "h", "l", "a", "e", "u", "u", "ctrl+r", "ctrl+r", "enter", "enter", "r", "U", "b", "d", "m", "t", "z"),
    *("g", "minus", "plus", "escape", "escape", "y", "n", "tab", "slash", "o", "x", "colon", "2", "question_mark", "A"),
)
TYPED = ("undo 2", "redo all", "earlier 2m", "later 3", "goto 1", "goto main", "revert", "back", "checkpoint c", "x y")


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 23))])
def test_after_any_keys_the_files_are_those_of_where_the_session_stands(forked: Project, seed: int) -> None:
    """S3-31: nobody edits here, so whatever is typed, the disk is the cursor's tree to the byte."""
    random = Random(seed)
    forked.turn("new", new="new\n")
    forked.turn("gone", a=None)

    @in_terminal
    async def story() -> None:
        async with terminal(forked, 90, 26) as pilot:  # type: ignore[arg-type]
            for _ in range(45):
                key = random.choice(KEYS)
                await pilot.press(key)
                if key == "colon" and isinstance(pilot.app.screen, LineScreen):
                    pilot.app.screen.query_one(Input).value = random.choice(TYPED)
                    await pilot.press("enter")
                await rest(pilot)
            while len(pilot.app.screen_stack) > 1:
                await press(pilot, "escape")
            assert not pilot.app._exit

    story()
    assert in_commit(forked.store, forked.cursor) == on_disk(forked.root)
    assert_whole(forked.store)


# Hostile words.

EVIL = "\x1b[31mred\x1b[0m \u202egnp [bold]markup[/] \x07 e\u0301 世界"


@in_terminal
async def test_hostile_prompts_and_paths_are_shown_and_act_on_nothing(root: Path) -> None:
    name = "\x1b]0;owned\x07[red]\u202etxt"
    write(root / name, "old\n")
    write(root / os.fsdecode(b"\xff\xfe"), "old\n")
    project = Project(root)
    with project.store:
        with project.store.session("shell").turn(EVIL) as turn:
            write(root / name, "new\n")
            (root / os.fsdecode(b"\xff\xfe")).unlink()
            turn.reply(EVIL * 50)
        after = on_disk(root)
        async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
            app: SnapstoreApp = app_of(pilot)
            await press(pilot, "d", "d")
            seen = [screen_text(app)]
            await press(pilot, "u")
            assert on_disk(root) == project.states["start"]
            seen.append(said(pilot))
            await press(pilot, "ctrl+r")
            await asked(pilot)
            seen.append(screen_text(app))
            await press(pilot, "enter")
            assert on_disk(root) == after
            write(root / name, "mine\n")
            await press(pilot, "u")
            seen.append(await conflicting(pilot))
            await press(pilot, "m", "t", "enter")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            await rest(pilot)
            seen.append(said(pilot))
            assert on_disk(root) == project.states["start"]
        for text in seen:
            assert text and not set(text) & {"\x1b", "\x07", "\u202e"}, ascii(text)
        assert "[bold]markup[/]" in seen[0]
