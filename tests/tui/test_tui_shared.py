"""The terminal tree over what came from other machines: whose it is, gone through, and never written to (P-05)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from helpers import bit_by_bit, on_disk
from machines import Machine
from textual.pilot import Pilot
from tui_helpers import in_terminal, screen_text, settled
from tui_project import asked, command, complained, press, said

from snapstore.tui.app import SnapstoreApp


@asynccontextmanager
async def over(machine: Machine, session: str | None = None) -> AsyncIterator[Pilot[None]]:
    app = SnapstoreApp(str(machine.root), session, home=str(machine.home))
    app.reading_time = 0.001
    async with app.run_test(size=(110, 26)) as pilot:
        await settled(pilot)
        yield pilot


@in_terminal
async def test_a_clone_is_gone_through_like_ones_own(tmp_path: Path, hub: str, ada: Machine) -> None:
    """S3-12, S3-13, S3-21. Its branches stay Ada's, and the next turn is a branch of one's own."""
    here = Machine(tmp_path, "bob")
    here.clone(hub)
    theirs, whole = here.refs(), on_disk(here.root)
    async with over(here) as pilot:
        assert "main (ada" in screen_text(pilot.app)
        await press(pilot, "u")
        assert "remove     title" in await asked(pilot)
        await press(pilot, "enter")
        assert not (here.root / "title").exists() and "Undone turn 2" in said(pilot)
        await press(pilot, "u")
        assert here.read("poem") == "roses\n"
        await press(pilot, "ctrl+r", "ctrl+r")
        assert on_disk(here.root) == whole
        await press(pilot, "b", "r", "x", "enter")
        assert "branch main belongs to ada and cannot be renamed here" in screen_text(pilot.app)
        assert "ada" in screen_text(pilot.app).split("▸")[1].splitlines()[0]
        await press(pilot, "a", "escape")
        await press(pilot, "G", "enter")
        await asked(pilot)
        await press(pilot, "enter")
        assert here.read("poem") == "roses\n" and here.refs() == theirs
        await press(pilot, "U")
        await asked(pilot)
        await press(pilot, "enter")
        assert on_disk(here.root) == whole
    here.turn("On from there", poem="mine\n")
    async with over(here) as pilot:
        assert "main-2 · turn 3" in screen_text(pilot.app)
        await press(pilot, "u")
        assert on_disk(here.root) == whole
    here.whole()


@in_terminal
async def test_a_session_where_nobody_stands_here_is_looked_at_and_refuses_to_move(
    tmp_path: Path, hub: str, ada: Machine
) -> None:
    here = Machine(tmp_path, "bob").init(poem="roses\n", bobs="b\n")
    here.turn("Bob's own", own="o\n")
    here.attach(hub)
    files, refs = bit_by_bit(here.root), here.refs("refs/")
    async with over(here, "shell@ada") as pilot:
        assert "shell@ada · main (ada" in screen_text(pilot.app) and "Add a title" in screen_text(pilot.app)
        for keys in (("u",), ("ctrl+r",), ("g", "minus"), ("j", "enter"), ("r",)):
            await press(pilot, *keys)
            assert complained(pilot) and "belongs to ada and is not checked out here" in said(pilot), keys
            assert "snapstore goto --exact" in said(pilot)
            await press(pilot, "d", "t")
        await command(pilot, "switch main")
        assert complained(pilot)
    assert bit_by_bit(here.root) == files and here.refs("refs/") == refs
