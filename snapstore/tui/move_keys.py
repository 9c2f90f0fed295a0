"""Keys and commands that change something.

All changes go through `move_controller`. Keys that only look at the tree never move the cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input

from snapstore.api import Store
from snapstore.base.text import safe
from snapstore.surface.tree_rows import NARROW
from snapstore.timeline.moves.branches import Branches
from snapstore.tui.command_line import COMMANDS, Command, parse
from snapstore.tui.move_controller import MoveController
from snapstore.tui.screens.branches import BranchesScreen
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.screens.sessions import SessionsScreen
from snapstore.tui.screens.undo_list import UndolistScreen
from snapstore.tui.widgets.diff import DiffView, name_of
from snapstore.tui.widgets.tree import TreeView

_UNSELECTED = "These turns are folded: press Enter to unfold them, then select one."


class MoveKeys(MoveController):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo"),
        Binding("ctrl+r", "redo", "redo"),
        Binding("g", "prefix", show=False),
        Binding("minus", "in_time('earlier')", show=False),
        Binding("plus", "in_time('later')", show=False),
        Binding("enter", "go", "go"),
        Binding("r", "revert", "revert"),
        Binding("U", "undo_operation", "undo move"),
        Binding("b", "branches", "branches"),
        Binding("s", "sessions", "sessions"),
        Binding("d", "diff", "diff"),
        Binding("m", "mark", "mark"),
        Binding("colon", "command", "command"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._keys = 0
        self._prefix = -1  # number of the key that was the `g` of `g-`
        self._typed: list[str] = []  # commands, as typed

    # Implemented by the app.

    def open_run(self) -> None:
        """Unfold the selected run."""
        raise NotImplementedError

    def select(self, oid: bytes) -> None:
        """Select a node."""
        raise NotImplementedError

    async def show_archived(self, archived: bool) -> None:
        """Show or hide archived branches."""
        raise NotImplementedError

    async def show_session(self, name: str) -> None:
        """Show the tree of another session."""
        raise NotImplementedError

    def diff_shown(self, shown: bool) -> None:
        """Show or hide the diff panel."""
        raise NotImplementedError

    async def action_help(self) -> None:
        raise NotImplementedError

    @property
    def looked_at(self) -> bytes | None:
        """The selected node as the tree widget has it now.

        Keys that arrive in one burst are handled before the app receives the widget's message.
        """
        return self.screen_stack[0].query_one(TreeView).selected

    def count(self) -> int:
        """Return the count from the digits typed before the key, or 1."""
        return 1

    # One key at a time.

    async def on_event(self, event: events.Event) -> None:
        """Handle each key before the next one, however many arrive at once.

        Textual would send the keys to the widget first, and their actions would see the counts and screens of later
        keys.
        """
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self.hears(event):
            self.note(event.key)
            if isinstance(self.focused, Input) and event.is_printable:
                await self._type(self.focused, event)
            elif not await self._check_bindings(event.key, priority=True):
                await self._check_bindings(event.key)

    async def _type(self, line: Input, event: events.Key) -> None:
        """Forward a letter to an input line and wait until the line contains it."""
        await super().on_event(event)
        there = asyncio.Event()
        if line.call_later(there.set):
            with suppress(TimeoutError):  # the line was closed by other means
                await asyncio.wait_for(there.wait(), 1)

    def note(self, key: str) -> None:
        """Count a key before it is handled."""
        self._keys += 1

    # Actions that open a screen wait until the screen is up: the next keys belong to the screen, not to the tree.

    async def action_command(self) -> None:
        await self.push_screen(LineScreen(":", typed=self._typed, known=COMMANDS), self._entered)

    async def action_branches(self) -> None:
        screen = BranchesScreen()
        await self.push_screen(screen, self._chosen)
        await screen.read()

    async def action_sessions(self) -> None:
        screen = SessionsScreen()
        await self.push_screen(screen, self._look_at_session)
        await screen.read()

    async def _look_at_session(self, name: str | None) -> None:
        if name is not None:
            await self.show_session(name)

    # Keys that move.

    def action_undo(self) -> None:
        self._undo(self.count())

    def action_redo(self) -> None:
        self._redo(self.count())

    def _undo(self, number: int) -> None:
        self.run_move(lambda session, how: session.plan_undo(number, **how), "undo", "Nothing to undo.")

    def _redo(self, number: int | None) -> None:
        self.run_move(lambda session, how: session.plan_redo(number, **how), "redo", "Nothing to redo.")

    def action_prefix(self) -> None:
        self._prefix = self._keys

    def after_g(self) -> bool:
        """Return whether the previous key was `g`."""
        return self._keys == self._prefix + 1

    def action_in_time(self, verb: str) -> None:
        """Handle `g-` and `g+`."""
        if self.after_g():
            self._in_time(verb, {"count": self.count()})

    def _in_time(self, verb: str, far: dict[str, int]) -> None:
        nothing = f"There is no {verb} turn." if "count" in far else f"There is no turn that much {verb}."
        if verb == "earlier":
            self.run_move(lambda session, how: session.plan_earlier(**far, **how), verb, nothing)
        else:
            self.run_move(lambda session, how: session.plan_later(**far, **how), verb, nothing)

    def action_go(self) -> None:
        oid = self.looked_at
        if oid is None:
            self.open_run()
        else:
            self._goto(oid.hex())

    def _goto(self, address: str) -> None:
        nothing = "You are there already."
        self.move_in_view(lambda session, how: session.plan_goto(address, **how), "goto", nothing)

    def action_revert(self) -> None:
        oid = self.looked_at
        if oid is None:
            self.say(_UNSELECTED)
        else:
            self._revert(oid.hex())

    def _revert(self, address: str) -> None:
        nothing = "Nothing to revert: none of its changes are left."
        self.move_in_view(lambda session, how: session.plan_revert(address, **how), "revert", nothing)

    def action_undo_operation(self) -> None:
        nothing = "There is no move to undo."
        self.run_move(lambda session, how: session.plan_ops_undo(**how), "undo of the last move", nothing)

    # Keys that look.

    def action_diff(self) -> None:
        """Cycle the diff: against the cursor, the parent, the marked node, then hidden."""
        view = self.query_one(DiffView)
        ways = view.ways()
        at = ways.index(view.against) + 1 if view.display and view.against in ways else 0
        view.display = at < len(ways)
        view.against = ways[at % len(ways)]
        self.diff_shown(view.display)
        view.show(self.looked_at, self.snapshot)

    def action_mark(self) -> None:
        """Mark the selected node for `d`, or unmark it."""
        oid = self.looked_at
        if oid is None:
            self.say(_UNSELECTED)
            return
        self.marked = None if self.marked == oid else oid
        view = self.query_one(DiffView)
        if self.marked is None:
            self.say("Unmarked.")
            view.against = view.ways()[0]
        else:
            self.say(f"Marked {name_of(self.snapshot, self.marked)}: `d` also compares with it.")
        view.show(self.looked_at, self.snapshot)

    def _chosen(self, branch: str | None) -> None:
        if branch is not None:
            self._switch(branch)

    def _switch(self, address: str) -> None:
        nothing = "You are there already."
        self.move_in_view(lambda session, how: session.plan_switch(address, **how), "switch", nothing)

    # Commands.

    def _entered(self, text: str | None) -> None:
        if text is not None and text.strip():
            self._typed.append(text)
            self.in_background(partial(self._obey, text), f":{safe(text.strip()).lstrip(':')}")

    async def _obey(self, text: str) -> None:
        command = parse(text)
        if command is not None:
            await self.obey(command)

    async def obey(self, command: Command) -> None:
        actions: dict[str, Callable[[Any], Awaitable[None] | None]] = {
            "undo": self._undo,
            "redo": self._redo,
            "earlier": partial(self._in_time, "earlier"),
            "later": partial(self._in_time, "later"),
            "goto": self._goto,
            "switch": self._switch,
            "revert": lambda address: self._revert(address) if address is not None else self.action_revert(),
            "checkpoint": self._checkpoint,
            "undolist": lambda _: self._undolist(),
            "branches": lambda _: self.action_branches(),
            "sessions": lambda _: self.action_sessions(),
            "back": lambda _: self.action_undo_operation(),
            "cancel": lambda _: self._cancel(),
            "help": lambda _: self.action_help(),
            "quit": lambda _: self.exit(),
        }
        done = actions[command.name](command.operand)
        if done is not None:
            await done

    async def _checkpoint(self, name: str) -> None:
        """Pin a checkpoint to the selected node."""
        oid = self.looked_at or self.snapshot.cursor
        told = f"Checkpoint {safe(name)} is at {name_of(self.snapshot, oid)}"
        await self.change(lambda session: Branches(session).checkpoint(name, oid), told)

    async def _undolist(self) -> None:
        await self.push_screen(UndolistScreen(self.snapshot, self.clock(), self.size.width < NARROW), self._looked_up)

    async def _looked_up(self, oid: bytes | None) -> None:
        if oid is None:
            return
        if oid not in self.snapshot.shown:
            await self.show_archived(True)
        self.select(oid)

    async def _cancel(self) -> None:
        closed = await self.in_thread(_close_open_turn, self.snapshot.session)
        await self.refresh_snapshot()
        self.say("Closed the open turn as interrupted." if closed else "No turn is open.")


def _close_open_turn(opened: Callable[[], AbstractContextManager[Store]], session: str) -> bool:
    with opened() as store:
        return store.session(session).close_open_turn() is not None
