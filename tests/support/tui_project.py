"""A project for the terminal tree, and what a person does in the app: press keys, type commands, read the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from garden import Clock
from helpers import on_disk, write
from textual.pilot import Pilot
from textual.widgets import Input
from tui_helpers import app_of, lines_of, screen_text, settled, until

from snapstore import Store
from snapstore.tui.screens.conflicts import ConflictScreen
from snapstore.tui.screens.plan import PlanScreen
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
        """Return whether the session is at a turn and the files are exactly that turn's."""
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
    """Return a turn's row as the tree draws it."""
    [row] = [line for line in lines_of(pilot.app, "#tree") if f" {prompt} " in line]
    return row


def complained(pilot: Pilot[None]) -> bool:
    return app_of(pilot).screen_stack[0].query_one(StatusBar).complains


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


EVIL = "\x1b[31mred\x1b[0m \u202egnp [bold]markup[/] \x07 e\u0301 世界"
