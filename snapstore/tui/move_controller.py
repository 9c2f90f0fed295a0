"""The controller of moves and changes: plan, confirm, execute, report.

Everything that touches the store runs on threads, one move at a time. No error leaves the app.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from textual import events, work
from textual.screen import Screen

from snapstore.api import Session, Store
from snapstore.errors import Conflict, Usage
from snapstore.surface.move_request import MakePlan
from snapstore.timeline.history.operations import Operation
from snapstore.timeline.moves.plan import Policy
from snapstore.timeline.moves.stale import changed_since_seen, changing
from snapstore.tui.move_steps import PlannedMove, WantedMove, carry_out, preview, spoken, trouble
from snapstore.tui.screens.ask import AskingScreen
from snapstore.tui.screens.conflicts import ConflictScreen
from snapstore.tui.screens.plan import PlanScreen
from snapstore.tui.tree_app import TreeApp

T = TypeVar("T")

LOOK_EVERY = 0.05  # seconds between checks whether a screen has been closed


class MoveController(TreeApp):
    """Runs the moves and changes that keys and screens request."""

    def __init__(self) -> None:
        super().__init__()
        self._one_move = asyncio.Lock()
        self.words: list[str] = []  # messages of the store, for example about a recovery finished for another process
        self._closed_at = -math.inf
        self._under_way = 0
        self._run = 0  # number of the current run of keys; a move that fails or asks a person ends the run

    def say(self, text: str, error: bool = False) -> None:
        """Show a text in the status line."""
        raise NotImplementedError

    def hears(self, event: events.Key) -> bool:
        """Return whether a key is meant for what is on the screen.

        An Enter right after the one that closed a line or a list is a key that bounced, and is ignored.
        """
        if isinstance(self.screen, AskingScreen):
            return self.screen.hears(event)
        bounced = event.time - self._closed_at < self.reading_time
        return not (event.key == "enter" and len(self.screen_stack) == 1 and bounced)

    def closed(self, screen: Screen[Any]) -> None:
        """Note the time at which a screen over the tree was closed. Called by the screen."""
        self._closed_at = time.monotonic()

    # Moves.

    def run_move(self, make_plan: MakePlan, verb: str, nothing: str = "") -> None:
        """Start a move, or queue it behind the move in progress.

        Queued moves are dropped if the move before them fails or needs confirmation, because they build on its
        result.
        """
        self._under_way += 1
        self.in_background(partial(self._in_turn, WantedMove(make_plan, nothing), self._run), verb)

    def move_in_view(self, make_plan: MakePlan, verb: str, nothing: str) -> None:
        """Start a move to a target that a person chose on the screen.

        While another move is in progress the screen is about to be out of date, so the move is refused. The second
        Enter on a plan must not go back to the node that the first one left (G-08).
        """
        if self._under_way:
            self.say("Another move is in progress: wait for its result.")
        else:
            self.run_move(make_plan, verb, nothing)

    async def _in_turn(self, wanted: WantedMove, run: int) -> None:
        try:
            async with self._one_move:
                if run == self._run:
                    await self.move(wanted)
        finally:
            self._under_way -= 1

    async def move(self, wanted: WantedMove) -> None:
        seen = self.snapshot
        found = await self.in_thread(preview, seen.session, seen.cursor, wanted)
        if found.plan.conflicts:
            resolved = await self._resolve(found)
            if resolved is None:
                self.say("Nothing was written.")
                return
            found = resolved
            if found.unseen and not await self._ask(PlanScreen(found)):
                self.say("Nothing was written.")
                return
        elif not await self._agreed(found):
            self.say("Nothing was changed.")
            return
        told = await self.in_thread(carry_out, found)
        if told.moved:
            await self.refresh_snapshot(told.target)
        self.tell(told.text)

    async def _agreed(self, found: PlannedMove) -> bool:
        """Return whether to execute a plan. Asks a person if needed (C13)."""
        if not found.due or found.plan.nothing_to_do:
            return True
        return await self._ask(PlanScreen(found))

    async def _ask(self, screen: AskingScreen[T]) -> T:
        """Show a dialog, but never over another screen, where keys would not be answers."""
        if len(self.screen_stack) > 1:
            self.say("A move waits for your answer: close this first.")
        while len(self.screen_stack) > 1:
            await asyncio.sleep(LOOK_EVERY)
        self._run += 1
        return await self.push_screen_wait(screen)

    async def _resolve(self, found: PlannedMove) -> PlannedMove | None:
        """Ask how to resolve each conflict, until none is left (G-38).

        If files change on disk meanwhile, the move is planned again.
        """
        session, seen, wanted, notice = found.plan.session, found.plan.start, found.wanted, ""
        while True:
            choices = await self._ask(ConflictScreen(found, notice))
            if choices is None:
                return None
            resolved = await self.in_thread(preview, session, seen, wanted, Policy(each=choices))
            if changed_since_seen(resolved.plan, found.seen):
                notice = "Files changed meanwhile: choose again."
                found = await self.in_thread(preview, session, seen, wanted)
                if not found.plan.conflicts:
                    return found if await self._agreed(found) else None
            elif resolved.plan.conflicts:
                notice = "Some conflicts are still unresolved."
            else:
                return resolved

    # Changes of branches and checkpoints.

    async def change(self, made: Callable[[Session], Operation | None], what: str) -> None:
        """Make a change only if the cursor is still where the person saw it."""
        seen = self.snapshot

        def work(opened: Callable[[], AbstractContextManager[Store]]) -> Operation | None:
            with opened() as store:
                session = store.session(seen.session)
                return changing(session, seen.cursor.hex(), lambda: made(session))

        operation = await self.in_thread(work)
        await self.refresh_snapshot()
        self.say(f"{what} · U undoes this" if operation is not None else "There was nothing to do.")

    # Threads and errors.

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(work, self.store, *arguments)

    @work(group="acting")
    async def in_background(self, doing: Callable[[], Awaitable[None]], verb: str) -> None:
        """Run a coroutine and report every error.

        The report names the failed action (S2-20) and what to do next. A stale view is refreshed first (G-08).
        """
        try:
            await doing()
        except Exception as error:
            self._run += 1
            if isinstance(error, Conflict) and error.details.get("stale"):
                await self.refresh_snapshot()
            failed = "" if isinstance(error, Usage) else f"{verb} failed: "
            self.tell(f"{failed}{trouble(error)}", error=True)

    def tell(self, text: str, error: bool = False) -> None:
        """Show the result of an action, preceded by the messages of the store."""
        self.say(" ".join([*map(spoken, self.words), text]).strip(), error=error)
        self.words.clear()
