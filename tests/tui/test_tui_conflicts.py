"""Conflicts of a move, settled file by file in the terminal tree."""

from __future__ import annotations

import threading

import pytest
from helpers import all_refs, assert_whole, bit_by_bit, write
from tui_helpers import in_terminal, screen_text, terminal, until
from tui_project import Project, asked, command, conflicting, edited, press, project, rest, said

from snapstore.timeline.moves.plan import PathMove
from snapstore.timeline.moves.three_way import ThreeWay
from snapstore.tui.screens.conflicts import ConflictScreen
from snapstore.tui.screens.plan import PlanScreen

__all__ = ["edited", "project"]  # fixtures


def texts(project: Project) -> tuple[str, str]:
    return (project.root / "merges").read_text(), (project.root / "clashes").read_text()


@in_terminal
async def test_conflicts_are_settled_file_by_file(edited: Project) -> None:
    """G-38: merge one, take theirs for the other; U brings back what was on disk, both sides."""
    edited.store.configure(auto_merge=False)
    before = texts(edited)
    async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        shown = await conflicting(pilot)
        assert "2 files changed since" in shown and "Mine" in shown and "Theirs" in shown
        assert "undecided  clashes" in shown and "-turn" in shown and "+mine" in shown
        await press(pilot, "enter")
        assert "2 files undecided" in screen_text(pilot.app)
        await press(pilot, "m")
        assert "cannot be resolved that way: both sides changed the same lines" in screen_text(pilot.app)
        await press(pilot, "t", "j", "m", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await rest(pilot)
        merged, clashed = texts(edited)
        assert clashed == "old\n" and merged.startswith("first\n") and merged.endswith("mine\n")
        assert "merged: merges · what was on disk is saved" in said(pilot) and "U undoes this" in said(pilot)
        await press(pilot, "U")
        if isinstance(pilot.app.screen, PlanScreen):
            await press(pilot, "enter")
        assert texts(edited) == before
    assert_whole(edited.store)


@in_terminal
async def test_mine_can_be_kept_and_markers_asked_for(edited: Project) -> None:
    """G-38."""
    edited.store.configure(auto_merge=False)
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
    """M-19: what merges cleanly is merged without being asked about, and named."""

    @in_terminal
    async def story() -> None:
        async with terminal(edited, 120, 40) as pilot:  # type: ignore[arg-type]
            await press(pilot, "u")
            shown = await conflicting(pilot)
            assert "1 file changed since" in shown and "undecided  clashes" in shown and "merges" not in shown
            await press(pilot, key, "enter")
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
            await rest(pilot)
            merged, clashed = texts(edited)
            assert clashed == outcome and merged.startswith("first\n") and merged.endswith("mine\n")
            assert "merged: merges · what was on disk is saved" in said(pilot)

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
    edited.store.configure(auto_merge=False)
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
        await until(pilot, lambda: "2 files still being computed" in screen_text(pilot.app))
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
        await until(pilot, lambda: "changed meanwhile" in screen_text(pilot.app))
        assert texts(edited)[1] == "newer still\n"
        await rest(pilot)
        assert "+newer still" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert texts(edited)[1] == "newer still\n"
