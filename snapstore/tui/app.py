"""The terminal app: the tree of a session, its selected node and live updates."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.geometry import Size
from textual.widget import Widget

from snapstore.api import Store
from snapstore.base.text import safe
from snapstore.store.changes import Folders
from snapstore.store.handle import failed
from snapstore.tui.move_steps import spoken, trouble
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.terminal.ascii import PlainSigns
from snapstore.tui.terminal.driver import LastingDriver
from snapstore.tui.terminal.paste import PasteParser
from snapstore.tui.terminal.themes import DARK, LIGHT, PLAIN, THEMES
from snapstore.tui.view_keys import ViewKeys
from snapstore.tui.widgets.bars import StatusBar, TitleBar
from snapstore.tui.widgets.diff import DiffView
from snapstore.tui.widgets.preview import Preview
from snapstore.tui.widgets.tree import TreeView

W = TypeVar("W", bound=Widget)

LOOK_EVERY = 0.25  # seconds
AGES_EVERY = 10.0
WIDE, HIGH = 100, 16  # columns for two panels side by side, lines for two panels one above the other


class SnapstoreApp(ViewKeys):
    """The terminal app.

    `snapshot` is the tree on the screen, `selected` the selected node, `marked` the node to compare with. All work on
    the store runs on threads. The store's lock is never held while a person looks at the screen.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "snapstore"
    CSS = """
    * { scrollbar-color: $lane; scrollbar-color-hover: $quiet; scrollbar-color-active: $here;
        scrollbar-background: $background; scrollbar-background-hover: $background;
        scrollbar-background-active: $background; }
    #body { layout: vertical; height: 1fr; }
    #tree { height: 3fr; width: 1fr; }
    #side { height: 2fr; width: 1fr; border-top: solid $lane; }
    #preview, #diff { height: 1fr; scrollbar-size: 1 1; scrollbar-gutter: stable; }
    #diff { display: none; border-top: solid $lane; border-title-color: $here; border-subtitle-color: $quiet; }
    #side:focus-within { border-top: solid $here; }

    .-wide {
        #body { layout: horizontal; }
        #tree { height: 1fr; width: 11fr; }
        #side { height: 1fr; width: 10fr; border-top: none; border-left: solid $lane; }
        #side:focus-within { border-left: solid $here; }
        &.-diff #side { width: 14fr; }
        &.-diff #preview { height: 2fr; }
        &.-diff #diff { height: 5fr; }
    }
    .-narrow {
        &.-diff #preview { display: none; }
        &.-diff #side { height: 4fr; border-top: none; }
        &.-short #side { display: none; }
        &.-short.-diff #side { display: block; }
        &.-short.-diff #tree { display: none; }
    }
    """

    def __init__(
        self,
        folder: str = ".",
        session: str | None = None,
        *,
        home: str | None = None,
        clock: Callable[[], float] = time.time,
        look: str = "dark",
        ascii: bool = False,
        encoding: str | None = None,
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (HIGH, "-high")]
        self.clock = clock
        with Store.open(folder, home=home, clock=clock, say=self.words.append) as store:
            self.root, self.home = store.root, store.home
            self._folders = Folders(store.folder)
            self._folders.changed()
            self.snapshot = Snapshot(store, session)
        self._ascii = ascii
        if ascii:
            self._filters.append(PlainSigns(encoding))
        self._trouble = ""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = THEMES["none" if self.no_color else look]

    def get_driver_class(self) -> type[Driver]:
        """Return Textual's driver with our paste parser, made to survive a lost terminal."""
        linux_driver.XTermParser = PasteParser  # type: ignore[attr-defined]
        found = super().get_driver_class()
        return LastingDriver if found is linux_driver.LinuxDriver else found

    @property
    def native_ansi_color(self) -> bool:
        """Return whether to use the terminal's own colours.

        Textual asks before a theme is set. Without colour the terminal's own two colours are used, not greys derived
        from ours.
        """
        return bool(getattr(self, "no_color", False)) or super().native_ansi_color

    @property
    def mistake(self) -> Exception | None:
        """The unexpected exception that ended the app, if any."""
        return self._exception

    def _fatal_error(self) -> None:
        """Close without Textual's traceback; the command line reports the error."""
        self._close_messages_no_wait()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return PLAIN

    def compose(self) -> ComposeResult:
        yield TitleBar(os.path.basename(os.fsdecode(self.root)) or "/", id="title")
        with Container(id="body"):
            yield TreeView(self.clock, ascii=self._ascii, id="tree")
            with Vertical(id="side"):
                yield Preview(id="preview")
                yield DiffView(id="diff")
        yield StatusBar(id="status")

    def on_mount(self) -> None:
        self._main_loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._main_loop.add_signal_handler(number, self._end, number)
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        self.tree_view.focus()
        self._show(self.snapshot)
        if self.words:
            self.tell("")
        self.at_once(self._follow, "follow")
        self.set_interval(AGES_EVERY, self.tree_view.repaint)
        self.set_interval(LOOK_EVERY, self._fit)

    def _fit(self) -> None:
        """Post a resize if the terminal has another size, and end if the terminal is gone.

        A resize while the program starts, or two in quick succession, have been seen to go unnoticed: half of the
        screen was drawn for the old size until the next key. A lost terminal is not always signalled either.
        """
        if self.is_headless:
            return
        try:
            size = Size(*os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1))
        except ValueError:
            return
        except OSError as error:
            if error.errno == errno.EIO:
                self._end(signal.SIGHUP)
            return
        if size != self.size and size.area:
            self.post_message(events.Resize(size, size))

    def _end(self, number: int) -> None:
        """End the app after a signal, with the terminal restored.

        A move in progress is finished first.
        """
        self.exit(return_code=128 + number)

    # The store, and what the app shows of it.

    @contextmanager
    def store(self, *, recover: bool = True) -> Iterator[Store]:
        """Open the store again, so that changes by other processes are seen.

        A store that was removed is noticed too. Call from threads only.
        """
        try:
            root = os.fsdecode(self.root)
            with Store.open(root, home=self.home, clock=self.clock, recover=recover, say=self._hear) as store:
                yield store
        except OSError as error:
            raise failed(error) from error

    def _hear(self, text: str) -> None:
        """Show a message of the store, which calls this on a thread.

        Messages about waiting are shown once. Other messages, such as a recovery finished for another process, are
        shown now and repeated with the result of the operation.
        """
        if not text.startswith("waiting"):
            self.words.append(text)
        self._main_loop.call_soon_threadsafe(self.say, spoken(text))

    async def refresh_snapshot(self, select: bytes | None = None) -> None:
        """Read and show the current tree.

        If the store cannot be read, the previous tree stays on the screen and the app says so.
        """
        found = await self._read(self.snapshot.archived)
        if found is not None:
            self._show(found, select)

    async def show_archived(self, archived: bool) -> None:
        found = await self._read(archived)
        if found is not None:
            self._show(found)

    async def show_session(self, name: str) -> None:
        if name == self.snapshot.session:
            return
        found = await self._read(False, name)
        if found is not None:
            self._show(found, found.cursor)
            self.say(f"Session {safe(name)}.")

    async def _read(self, archived: bool, session: str | None = None) -> Snapshot | None:
        before = self.snapshot

        def read() -> Snapshot:
            with self.store(recover=False) as store:
                if session is not None:
                    return Snapshot(store, session, archived=archived)
                return Snapshot.now(store, before, archived=archived)

        try:
            found = await asyncio.to_thread(read)
        except Exception as error:  # the store is gone, damaged or being changed: keep polling
            self._folders.look_again()
            if trouble(error) != self._trouble:
                self._trouble = trouble(error)
                self.say(f"{self._trouble} The tree shown may be out of date.", error=True)
            return None
        if self._trouble:
            self._trouble = ""
            self.say("The store can be read again.")
            self._show_selected()
        return found

    def _show(self, snapshot: Snapshot, select: bytes | None = None) -> None:
        before, self.snapshot = self.snapshot, snapshot
        if self.marked is not None and self.marked not in snapshot.graph.nodes:
            self.marked = None
        seen = self.tree_view.selected
        if select is None and seen in before.graph.nodes and seen not in snapshot.shown:
            select = _nearest(before, seen, snapshot)
            self.say("The selected turn is no longer shown: it was archived or deleted elsewhere.")
        self.tree_view.load(snapshot, select)
        self._on_first(TitleBar).show(snapshot)
        if snapshot is not before:
            self.search_again(snapshot)

    async def _follow(self) -> None:
        """Poll the store and show turns that other processes record."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                changed = await asyncio.to_thread(self._folders.changed)
            except OSError:
                changed = True
            if changed:
                before = self.snapshot
                found = await self._read(before.archived)
                if found is not None and found is not before and self.snapshot is before:
                    if found.cursor != before.cursor and not self._on_first(StatusBar).complains:
                        self.say("")  # its message is about a cursor that is no longer current
                    self._show(found)

    # Messages.

    def say(self, text: str, error: bool = False) -> None:
        """Show a text in the status line, with control characters made visible."""
        self._on_first(StatusBar).say(safe(text), error=error)

    def _on_first(self, kind: type[W]) -> W:
        """Return a widget of the app's first screen, whatever screen is on top."""
        return self.screen_stack[0].query_one(kind)

    # The selected node, in the panels beside the tree.

    def on_tree_view_selected(self, message: TreeView.Selected) -> None:
        self.selected = message.oid
        self._show_selected()

    def _show_selected(self) -> None:
        for panel in (self._on_first(Preview), self._on_first(DiffView)):
            panel.show(self.tree_view.selected, self.snapshot)

    def watch_marked(self, marked: bytes | None) -> None:
        self.tree_view.show_marked(marked)

    def diff_shown(self, shown: bool) -> None:
        self.screen_stack[0].set_class(shown, "-diff")


def _nearest(before: Snapshot, oid: bytes, now: Snapshot) -> bytes | None:
    """Return the node or its nearest ancestor that is still shown."""
    at: bytes | None = oid
    while at is not None and at not in now.shown:
        at = before.node(at).parent
    return at
