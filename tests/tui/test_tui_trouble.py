"""The terminal tree while others move, and over a store that is held, damaged or gone: it says so and goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from helpers import assert_whole, child, killed_at, living_child, on_disk, write
from test_conversations import cut_off_in_turn_2
from tui_helpers import app_of, in_terminal, screen_text, terminal, until
from tui_project import Project, asked, command, complained, conflicting, forked, press, project, rest, said

from snapstore import Store
from snapstore.timeline.moves.branches import Branches
from snapstore.tui import app as app_module
from snapstore.tui.app import SnapstoreApp

__all__ = ["forked", "project"]  # fixtures


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
        await until(pilot, lambda: "The session has moved meanwhile" in screen_text(pilot.app))
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
    cut_off_in_turn_2(root, nobodys_home)
    with Store.open(root) as store:
        app = SnapstoreApp(str(root))
        app.reading_time = 0.001
        async with app.run_test(size=(110, 30)) as pilot:
            await press(pilot, "u")
            assert "the interrupted turn is now closed" in said(pilot) and (root / "half.txt").exists()
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
        assert complained(pilot) and "an unfinished change" in said(pilot) and "Set it to" in said(pilot)
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
