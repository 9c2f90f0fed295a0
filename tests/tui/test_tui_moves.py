"""Keys and commands of the terminal tree that move, through the app itself; then the files on disk are looked at."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from helpers import all_refs, assert_whole, bit_by_bit, on_disk
from test_conversations import Talking
from tui_helpers import app_of, in_terminal, screen_text, terminal, until
from tui_project import Project, asked, command, complained, forked, press, project, rest, row_of, said

from snapstore.agents.fork import ConversationFork
from snapstore.tui.screens.branches import BranchesScreen
from snapstore.tui.screens.help import HelpScreen
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.screens.plan import PlanScreen
from snapstore.tui.screens.sessions import SessionsScreen
from snapstore.tui.screens.undo_list import UndolistScreen

__all__ = ["forked", "project"]  # fixtures


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
        assert "Undo 2 turns and end at turn 1 on main." in shown and "write" in shown and "First undone" in shown
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
        assert forked.is_at("three") and "U undoes this" in said(pilot)
        await press(pilot, "g", "plus")
        await asked(pilot)
        await press(pilot, "enter")
        assert forked.is_at("other")
        await press(pilot, "g", "plus", "g", "plus")
        assert forked.is_at("last") and said(pilot) == "There is no later turn."


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
        assert said(pilot) == "There is no turn that much later." and forked.is_at("last")
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
        assert "Undo 2 turns and redo 2 turns and end at turn 3 on main." in shown
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
        assert "Reverted turn 4: aside" in said(pilot) and "U undoes this" in said(pilot)
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
        assert "There was nothing to do." in said(pilot)
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
        assert "branch first already exists" in screen_text(pilot.app).lower()
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
