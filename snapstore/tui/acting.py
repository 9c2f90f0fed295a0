"""What keys and commands do. Looking never moves; what does goes the one way through `moving`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType

from snapstore.errors import SnapstoreError
from snapstore.timeline.branch import ARCHIVED
from snapstore.timeline.branches import Branches
from snapstore.timeline.ops import Operation
from snapstore.timeline.painting import NARROW
from snapstore.timeline.session import Session
from snapstore.timeline.store import Store
from snapstore.timeline.text import safe
from snapstore.tui.branches import RENAME, SWITCH, BranchesScreen, read_branches
from snapstore.tui.commandline import COMMANDS, Command, parse
from snapstore.tui.diffview import DiffView, name_of
from snapstore.tui.linescreen import LineScreen
from snapstore.tui.moves import trouble
from snapstore.tui.moving import MovingApp
from snapstore.tui.undolist import UndolistScreen

_UNSELECTED = "A run of turns is folded there: Enter opens it, then select one."


class ActingApp(MovingApp):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo"),
        Binding("ctrl+r", "redo", "redo"),
        Binding("g", "prefix", show=False),
        Binding("minus", "in_time('earlier')", show=False),
        Binding("plus", "in_time('later')", show=False),
        Binding("enter", "go", "go"),
        Binding("r", "revert", "revert"),
        Binding("U", "take_back", "take back"),
        Binding("b", "branches", "branches"),
        Binding("d", "diff", "diff"),
        Binding("m", "mark", "mark"),
        Binding("colon", "command", "command"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._keys = 0
        self._prefix = -1  # which key was the `g` of `g-`
        self._typed: list[str] = []  # commands, as they were typed

    # What the app itself has.

    def open_run(self) -> None:
        """Unfolds what is selected."""
        raise NotImplementedError

    def select(self, oid: bytes) -> None:
        """Looks at a node."""
        raise NotImplementedError

    def diff_shown(self, shown: bool) -> None:
        """Makes room for the diff panel, or takes it back."""
        raise NotImplementedError

    def action_help(self) -> None:
        raise NotImplementedError

    def count(self) -> int:
        """How often, from digits typed before the key."""
        return 1

    # Keys that move.

    def action_undo(self) -> None:
        self._undo(self.count())

    def action_redo(self) -> None:
        self._redo(self.count())

    def _undo(self, number: int) -> None:
        self.run_move(lambda session, policy: session.plan_undo(number, policy=policy), "undo", "Nothing to undo.")

    def _redo(self, number: int | None) -> None:
        self.run_move(lambda session, policy: session.plan_redo(number, policy=policy), "redo", "Nothing to redo.")

    def action_prefix(self) -> None:
        self._prefix = self._keys

    def after_g(self) -> bool:
        """Whether the key before this one was `g`."""
        return self._keys == self._prefix + 1

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._keys += 1
        await super().on_event(event)

    def action_in_time(self, verb: str) -> None:
        """`g-` and `g+`."""
        if self.after_g():
            self._in_time(verb, {"count": self.count()})

    def _in_time(self, verb: str, how: dict[str, int]) -> None:
        nothing = f"Nothing is {verb}." if "count" in how else f"Nothing is {verb} by so much."
        if verb == "earlier":
            self.run_move(lambda session, policy: session.plan_earlier(**how, policy=policy), verb, nothing)
        else:
            self.run_move(lambda session, policy: session.plan_later(**how, policy=policy), verb, nothing)

    def action_go(self) -> None:
        if self.selected is None:
            self.open_run()
        else:
            self._goto(self.selected.hex())

    def _goto(self, address: str) -> None:
        self.run_move(
            lambda session, policy: session.plan_goto(address, policy=policy), "goto", "You are there already."
        )

    def action_revert(self) -> None:
        if self.selected is None:
            self.say(_UNSELECTED)
        else:
            self._revert(self.selected.hex())

    def _revert(self, address: str) -> None:
        nothing = "Nothing to revert: nothing of it is left."
        self.run_move(lambda session, policy: session.plan_revert(address, policy=policy), "revert", nothing)

    def action_take_back(self) -> None:
        nothing = "There is nothing to take back."
        self.run_move(lambda session, policy: session.plan_ops_undo(policy=policy), "take back", nothing)

    # Keys that look.

    def action_diff(self) -> None:
        """Against where you are, then against the node before, then against the marked one, then away with it."""
        view = self.query_one(DiffView)
        ways = view.ways()
        at = ways.index(view.against) + 1 if view.display and view.against in ways else 0
        view.display = at < len(ways)
        view.against = ways[at % len(ways)]
        self.diff_shown(view.display)
        view.show(self.selected, self.snapshot)

    def action_mark(self) -> None:
        """Marks the selected node for `d`; again, and it is unmarked."""
        if self.selected is None:
            self.say(_UNSELECTED)
            return
        self.marked = None if self.marked == self.selected else self.selected
        view = self.query_one(DiffView)
        if self.marked is None:
            self.say("Unmarked.")
            view.against = view.ways()[0]
        else:
            self.say(f"Marked {name_of(self.snapshot, self.marked)}: `d` also compares with it.")
        view.show(self.selected, self.snapshot)

    # Branches.

    def action_branches(self) -> None:
        self.in_background(self._branches())

    async def _branches(self) -> None:
        at = notice = ""
        while True:
            found = await self.in_thread(read_branches, self.snapshot.session)
            picked = await self.push_screen_wait(BranchesScreen(found, self.clock(), at, notice))
            if picked is None:
                return
            verb, branch = picked
            at, notice = branch.name, ""
            if verb == SWITCH:
                self._switch(at)
                return
            if verb == RENAME:
                name = await self.push_screen_wait(LineScreen(f"New name for {safe(at)}: ", at))
                if name is None or name.strip() in ("", at):
                    continue
                at = name.strip()
                told = f"Branch {safe(branch.name)} is now called {safe(at)}"
                notice = await self._tried(partial(_rename, branch.name, at), told)
            elif branch.state == ARCHIVED:
                notice = await self._tried(partial(_unarchive, at), f"Branch {safe(at)} is listed again")
            else:
                notice = await self._tried(partial(_archive, at), f"Branch {safe(at)} is in the archive, whole")

    async def _tried(self, made: Callable[[Session], Operation], told: str) -> str:
        """What came of a change, to be read in the list it was asked for in."""
        try:
            await self.change(made, told)
        except (SnapstoreError, OSError) as error:
            await self.refresh_snapshot()
            return trouble(error)
        return f"{told}."

    def _switch(self, address: str) -> None:
        nothing = "You are there already."
        self.run_move(lambda session, policy: session.plan_switch(address, policy=policy), "switch", nothing)

    # Commands.

    def action_command(self) -> None:
        self.in_background(self._command())

    async def _command(self) -> None:
        text = await self.push_screen_wait(LineScreen(":", typed=self._typed, known=COMMANDS))
        if text is None or not text.strip():
            return
        self._typed.append(text)
        command = parse(text)
        if command is not None:
            await self.obey(command)

    async def obey(self, command: Command) -> None:
        meant: dict[str, Callable[[Any], Awaitable[None] | None]] = {
            "undo": self._undo,
            "redo": self._redo,
            "earlier": partial(self._in_time, "earlier"),
            "later": partial(self._in_time, "later"),
            "goto": self._goto,
            "switch": self._switch,
            "revert": lambda address: self._revert(address) if address is not None else self.action_revert(),
            "checkpoint": self._checkpoint,
            "undolist": lambda _: self._undolist(),
            "branches": lambda _: self._branches(),
            "back": lambda _: self.action_take_back(),
            "cancel": lambda _: self._cancel(),
            "help": lambda _: self.action_help(),
            "quit": lambda _: self.exit(),
        }
        done = meant[command.name](command.operand)
        if done is not None:
            await done

    async def _checkpoint(self, name: str) -> None:
        """Pins a name to the selected node."""
        oid = self.selected or self.snapshot.cursor
        told = f"Checkpoint {safe(name)} is at {name_of(self.snapshot, oid)}"
        await self.change(lambda session: Branches(session).checkpoint(name, oid), told)

    async def _undolist(self) -> None:
        found = await self.push_screen_wait(UndolistScreen(self.snapshot, self.clock(), self.size.width < NARROW))
        if found is not None:
            self.select(found)

    async def _cancel(self) -> None:
        closed = await self.in_thread(_close_open_turn, self.snapshot.session)
        await self.refresh_snapshot()
        self.say("Closed the open turn as interrupted." if closed else "No turn is open.")


def _close_open_turn(opened: Callable[[], AbstractContextManager[Store]], session: str) -> bool:
    with opened() as store:
        return store.session(session).close_open_turn() is not None


def _rename(old: str, new: str, session: Session) -> Operation:
    return Branches(session).rename(old, new)


def _archive(name: str, session: Session) -> Operation:
    return Branches(session).archive(name)


def _unarchive(name: str, session: Session) -> Operation:
    return Branches(session).unarchive(name)
