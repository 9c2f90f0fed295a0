"""Whatever is typed into the terminal tree: commands that are none, keys that come at once or ahead, hostile words."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from helpers import all_refs, assert_whole, bit_by_bit, in_commit, on_disk, write
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input
from tui_helpers import app_of, in_terminal, screen_text, terminal, until
from tui_project import EVIL, Project, asked, command, conflicting, forked, press, project, rest, said

from snapstore.timeline.history.branch import Branch
from snapstore.tui import move_controller
from snapstore.tui.app import SnapstoreApp
from snapstore.tui.move_steps import PlannedMove
from snapstore.tui.screens.branches import BranchesScreen
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.screens.plan import PlanScreen
from snapstore.tui.screens.undo_list import UndolistScreen

__all__ = ["forked", "project"]  # fixtures


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
    ("und", "may mean"),
    ("undo many", "not a number"),
    ("undo 0", "not a number"),
    ("redo -1", "not a number"),
    ("earlier 5x", "neither a number nor a time"),
    ("later 99999999999999999999h", "not a time"),
    ("goto", "is missing"),
    ("goto nowhere", "there is no 'nowhere'"),
    ("goto ../../etc", "there is no"),
    ("goto a b", "is not a turn"),
    ("switch @", "no branch"),
    ("checkpoint", "is missing"),
    ("checkpoint 12", "cannot be a checkpoint name"),
    ("checkpoint a/../b", "name"),
    ("checkpoint .lock", "name"),
    ("revert 99", "no turn 99"),
    ("quit now", "unexpected argument"),
    ("cancel", "No turn is open"),
]


@in_terminal
async def test_a_bad_command_is_told_and_does_nothing(project: Project) -> None:
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        for text, told in BAD:
            await command(pilot, text)
            assert told.lower() in said(pilot).lower() and len(app_of(pilot).screen_stack) == 1, text
            assert project.is_at("three"), text


@in_terminal
async def test_more_turns_than_there_are_undoes_all_of_them_and_says_so_M_13(project: Project) -> None:
    async with terminal(project, 200, 40) as pilot:  # type: ignore[arg-type]
        await command(pilot, "undo 99")
        assert "Undo 3 turns" in await asked(pilot) and project.is_at("three")
        await press(pilot, "enter")
        await until(pilot, lambda: "There were only 3 turns to undo." in said(pilot))
        assert "Undone 3 turns" in said(pilot) and "now at the start of main" in said(pilot)


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

    def preview(*arguments: Any) -> PlannedMove:
        slowly.wait(60)
        return real(*arguments)

    real = move_controller.preview
    monkeypatch.setattr(move_controller, "preview", preview)
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        app = app_of(pilot)
        app.reading_time = 3600
        await pilot.press("u", "colon", *"chec")
        slowly.set()
        await until(pilot, lambda: "A move waits for your answer" in said(pilot))
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
