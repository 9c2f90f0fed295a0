"""What the tests of the terminal tree share: a project with branches, the app in a terminal of some size, its screen as
text, and pictures of screens to compare with."""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from garden import Garden, forked
from textual.pilot import Pilot

from snapstore.tui.app import SnapstoreApp

PICTURES = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("SNAPSTORE_UPDATE"))  # read before a test hides the variable


def in_terminal(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that awaits: pytest runs it to its end."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 120))  # type: ignore[arg-type]

    return run


@asynccontextmanager
async def terminal(garden: Garden, columns: int = 100, lines: int = 30, **named: Any) -> AsyncIterator[Pilot[None]]:
    """The app over a garden's project, under the garden's clock."""
    app = SnapstoreApp(str(garden.root), garden.session, clock=garden.clock, **named)
    app.reading_time = 0.001  # nobody reads here
    async with app.run_test(size=(columns, lines)) as pilot:
        await settled(pilot)
        yield pilot


async def settled(pilot: Pilot[None]) -> None:
    """Everything that was asked for is on the screen. What goes on for ever is not waited for, nor what waits for a
    person's answer."""
    quiet = 0
    for _ in range(3000):
        await pilot._wait_for_screen()
        quiet = 0 if _at_work(pilot.app) else quiet + 1
        if quiet == 3:
            return
        await asyncio.sleep(0.004)
    raise AssertionError(f"still at work: {list(pilot.app.workers)}")


def _at_work(app: Any) -> bool:
    screen = app.screen
    if screen._layout_required or screen._scroll_required or screen._dirty_widgets:
        return True
    if len(app.screen_stack) == 1 and any(not it.is_finished and it.group != "follow" for it in app.workers):
        return True
    timers = [getattr(panel, "_waiting", None) for panel in app.screen_stack[0].query("#preview, #diff")]
    return any(timer is not None and timer._task is not None and not timer._task.done() for timer in timers)


async def until(pilot: Pilot[None], there: Callable[[], object], seconds: float = 20) -> None:
    """Waits for something that another thread or process brings about."""
    for _ in range(int(seconds * 50)):
        await pilot.pause()
        if there():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"it did not come about:\n{screen_text(pilot.app)}")


def app_of(pilot: Pilot[None]) -> SnapstoreApp:
    assert isinstance(pilot.app, SnapstoreApp)
    return pilot.app


def screen_text(app: Any) -> str:
    """Return the screen as text, without colours and trailing blanks."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip("\n") + "\n"


def lines_of(app: Any, selector: str, *, stripped: bool = True) -> list[str]:
    """The lines of one part of the app; without the tree's gutter when stripped."""
    x, y, width, height = app.screen_stack[0].query_one(selector).region
    strips = app.screen_stack[0]._compositor.render_strips()[y : y + height]
    lines = [strip.crop(x, x + width).text.rstrip() for strip in strips]
    return [line[2:] for line in lines] if stripped else lines


def selected_line(app: Any) -> str:
    return next(line for line in lines_of(app, "#tree", stripped=False) if line.startswith("▌"))


def assert_picture(app: Any, name: str) -> None:
    """The screen is exactly what a file under tests/snapshots says. SNAPSTORE_UPDATE=1 writes the file instead: look
    at what changed before you keep it."""
    seen = re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{8}\b", "#" * 8, screen_text(app))  # who made a commit is part of its id
    path = PICTURES / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    assert path.exists(), f"no picture {path.name} yet; SNAPSTORE_UPDATE=1 takes it"
    kept = path.read_text(encoding="utf-8")
    assert seen == kept, "\n".join(unified_diff(kept.splitlines(), seen.splitlines(), path.name, "seen", lineterm=""))


__all__ = ["Garden", "forked"]
