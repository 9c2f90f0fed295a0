"""The part of the benchmark for the page: `scripts/bench page`. In a real Chromium, the server as people start it."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any, Protocol

FEW, MANY = 10, 10_000
FRAME = 50  # ms that none may take
POLL = 250  # ms: who asks that often sees a change half of it later, on average
RUNS = 7

SCROLL = """async (where) => {
    const box = document.querySelector(where), frames = 120;
    const stride = box.scrollHeight / frames;
    box.scrollTop = box.scrollHeight;
    for (let wait = 0; wait < 30; wait += 1) await new Promise(requestAnimationFrame);
    let last = performance.now(), longest = 0;
    for (let step = 0; step < frames; step += 1) {
        box.scrollTop -= stride;
        const now = await new Promise(requestAnimationFrame);
        longest = Math.max(longest, now - last);
        last = now;
    }
    return longest;
}"""
HEARING = """() => new Promise((opened) => {
    const events = new EventSource("api/events");
    window.heard = [];
    events.addEventListener("session.updated", () => window.heard.push(Date.now()));
    events.addEventListener("open", opened);
})"""


class Bench(Protocol):
    work: Path

    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool) -> None: ...
    def forget(self) -> None: ...


def page(bench: Bench) -> None:
    """First screen, scrolling and events, each against what was asked for."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
    try:
        from page_helpers import CHROMIUM, Sight, Story, browser, command, many_turns, remember

        if CHROMIUM is None:
            raise ImportError("chromium")
    except ImportError as error:
        print(f"page: left out, {error.name or error} is missing (scripts/setup --dev)")
        return
    from snapstore import Store

    bench.forget()
    root = bench.work / "page"
    root.mkdir()
    with Store.open(root, create=True) as store, browser(bench.work) as chromium:
        story = Story(store, root)
        for number in range(1, FEW + 1):
            story.turn(f"Prompt {number}", {f"f{number}.txt": f"{number}\n"}, reply=f"Reply {number}")

        def opened(url: str) -> Any:
            return Sight(chromium.new_context(viewport={"width": 1280, "height": 900}), url)

        with command(root) as url:
            few = first_screen(opened(url))
        many_turns(story, MANY - FEW)
        remember(story)
        with command(root) as url:
            sight = opened(url)
            many = first_screen(sight)
            bench.note("first screen, against 10 turns", MANY, many, few, many / few, "<= 3", many <= 3 * few)
            frames(bench, sight, "list", "#timeline")
            sight.view("Tree").locator(".node").first.wait_for()
            frames(bench, sight, "tree", ".tree-box")
            events(bench, sight, story)


def first_screen(sight: Any) -> float:
    """Milliseconds from asking for the page to a turn that can be read."""
    found = []
    for _ in range(RUNS):
        start = time.perf_counter()
        sight.page.reload()
        sight.page.locator("#timeline .turn .prompt").first.wait_for()
        found.append((time.perf_counter() - start) * 1000)
    return statistics.median(found)


def frames(bench: Bench, sight: Any, what: str, where: str) -> None:
    longest = statistics.median(sight.page.evaluate(SCROLL, where) for _ in range(3))
    bench.note(f"longest frame, {what}, against 50 ms", MANY, longest, FRAME, longest / FRAME, "<= 1", longest <= FRAME)


def events(bench: Bench, sight: Any, story: Any) -> None:
    """From the end of a command's change to the page that hears of it, against one that asks every 250 ms."""
    sight.page.evaluate(HEARING)
    found = []
    for number in range(RUNS):
        story.undo(1) if number % 2 == 0 else story.session.move(story.session.plan_redo(1))
        done = time.time() * 1000
        sight.page.wait_for_function("number => window.heard.length > number", arg=number)
        found.append(max(sight.page.evaluate("window.heard.at(-1)") - done, 0))
        sight.page.evaluate("number => { window.heard.length = number + 1 }", number)
    took = statistics.median(found)
    bench.note("event, against a poll of 250 ms", MANY, took, POLL / 2, took / (POLL / 2), "<= 1", took <= POLL / 2)
