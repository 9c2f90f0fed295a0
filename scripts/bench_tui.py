"""The terminal tree: 10,000 turns in 500 branches against 100 turns in 5, through Textual's Pilot.

A key is measured from its arrival until the screen shows what came of it. Pilot's own `press` waits in steps of 20 ms
until the process is idle, which would hide what is looked for here.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench_moves import Bench, plant
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from snapstore import Store
from snapstore.tui.app import SnapstoreApp

FEW, MANY = (100, 5), (10_000, 500)  # turns and branches
ROUNDS, OPENINGS, KEYS = 4, 4, 15
MANY_ROWS = 105  # of the small tree, when all of it is unfolded
REACH = 2.0


def tui(bench: Bench) -> None:
    """In rounds that take turns, so that what else the machine does meets both."""
    folders = {}
    for turns, branches in (FEW, MANY):
        folder = bench.work / f"tree-of-{turns}"
        folder.mkdir()
        with Store.open(folder, create=True, session="bench") as store:
            plant(store, turns, branches)
        folders[turns] = folder
        asyncio.run(_opening(folder))  # the first time reads the commits one by one, and keeps what they say
    gc.set_threshold(100_000)  # both as the program does
    gc.freeze()
    times: dict[int, dict[str, list[float]]] = {turns: {} for turns in folders}
    for _ in range(ROUNDS):
        for turns, folder in folders.items():
            for work, taken in asyncio.run(_measured(folder)).items():
                times[turns].setdefault(work, []).extend(taken)
    for work in times[FEW[0]]:
        few, many = (median(times[turns][work]) * 1000 for turns, _ in (FEW, MANY))
        bench.note(f"tui: {work}", MANY[0], many, few, many / few, f"<= {REACH:g}", many / few <= REACH)


async def _measured(folder: Path) -> dict[str, list[float]]:
    """The seconds that each took."""
    found = {"opening": [await _opening(folder) for _ in range(OPENINGS)]}
    app = SnapstoreApp(str(folder))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.3)
        await _to_a_run(pilot)
        found["z, unfold"] = await _often(lambda: _key(pilot, "z"), lambda: _key(pilot, "z"))
        await _key(pilot, "z")
        found["z, fold"] = await _often(lambda: _key(pilot, "z"), lambda: _key(pilot, "z"))
        await _key(pilot, "z")
        found["Z, fold or unfold all"] = await _often(lambda: _key(pilot, "Z"))
        if app.tree_view.virtual_size.height < MANY_ROWS:
            await _key(pilot, "Z")
        await _key(pilot, "home")
        for _ in range(35):  # from here every step scrolls, in both trees
            await _key(pilot, "j")
        found["j"] = await _often(lambda: _step(pilot, "j"))
        for _ in range(35):
            await _key(pilot, "k")
        found["k"] = await _often(lambda: _step(pilot, "k"), lambda: _step(pilot, "j"))
        await _key(pilot, "full_stop")
        found["/, to what is found"] = await _often(lambda: _search(pilot, "number 17 of"), lambda: _rest(pilot))
        await _search(pilot, "number 1")
        await _rest(pilot)
        found["n"] = await _often(lambda: _step(pilot, "n"))
    return found


async def _opening(folder: Path) -> float:
    """Until the first screen shows the tree."""
    gc.collect()  # what another opening left is not this one's to clear away
    start = time.perf_counter()
    app = SnapstoreApp(str(folder))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot._wait_for_screen()
        assert "Turn >" in "".join(strip.text for strip in app.screen._compositor.render_strips())
        return time.perf_counter() - start


async def _often(
    work: Callable[[], Awaitable[None]], after: Callable[[], Awaitable[None]] | None = None
) -> list[float]:
    times = []
    for _ in range(KEYS):
        await asyncio.sleep(0.12)  # the panels read what was selected
        start = time.perf_counter()
        await work()
        times.append(time.perf_counter() - start)
        if after is not None:
            await after()
    return times


async def _key(pilot: Pilot[Any], key: str) -> None:
    app = pilot.app
    assert app._driver is not None
    app._driver.send_message(events.Key(key, key if len(key) == 1 else None))
    await _shown(pilot)


async def _step(pilot: Pilot[Any], key: str) -> None:
    """A key that looks at another row."""
    app = pilot.app
    assert isinstance(app, SnapstoreApp)
    before = app.tree_view.selected
    await _key(pilot, key)
    assert app.tree_view.selected != before


async def _shown(pilot: Pilot[Any]) -> None:
    """All that was sent has been answered, and what changed is on the screen."""
    screen = pilot.app.screen
    await pilot._wait_for_screen()
    await pilot._wait_for_screen()
    while screen._dirty_widgets or screen._layout_required or screen._scroll_required:
        await asyncio.sleep(0)


async def _search(pilot: Pilot[Any], text: str) -> None:
    await _key(pilot, "slash")
    while not isinstance(pilot.app.focused, Input):
        await asyncio.sleep(0)
    pilot.app.screen.query_one(Input).value = text
    await _shown(pilot)
    await _key(pilot, "enter")
    while len(pilot.app.screen_stack) > 1:
        await asyncio.sleep(0)
    await _shown(pilot)
    assert text.encode() in _selected(pilot).encode()


def _selected(pilot: Pilot[Any]) -> str:
    app = pilot.app
    assert isinstance(app, SnapstoreApp) and app.tree_view.selected is not None
    return app.snapshot.node(app.tree_view.selected).subject


async def _rest(pilot: Pilot[Any]) -> None:
    """Whole prompts and paths are read behind a search; then back to where it began."""
    while any(not worker.is_finished and worker.group == "search" for worker in pilot.app.workers):
        await asyncio.sleep(0.01)
    await _key(pilot, "full_stop")


async def _to_a_run(pilot: Pilot[Any]) -> None:
    app = pilot.app
    assert isinstance(app, SnapstoreApp)
    while app.tree_view.run is None:
        await _key(pilot, "j")
