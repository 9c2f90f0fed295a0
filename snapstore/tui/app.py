"""The terminal tree: the app that shows a session's tree, follows what others record, and hands keys on."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager

from textual.app import App
from textual.binding import Binding
from textual.containers import Container
from textual.reactive import reactive

from snapstore.errors import SnapstoreError
from snapstore.timeline.store import Store, failed
from snapstore.timeline.text import safe
from snapstore.timeline.watching import Folders
from snapstore.tui.bars import StatusBar, TitleBar
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.themes import DARK, LIGHT, PLAIN, THEMES
from snapstore.tui.treeview import TreeView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import ClassVar

    from textual.app import ComposeResult
    from textual.binding import BindingType

LOOK_EVERY = 0.25  # seconds
AGES_EVERY = 10.0


class SnapstoreApp(App[None]):
    """`snapshot` is what is shown, `selected` the node looked at, `marked` the one that differences are against."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "snapstore"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (16, "-high")]
    CSS = """
    Screen { background: $background; }
    #body { layout: vertical; height: 1fr; }
    .-wide #body { layout: horizontal; }
    #tree { height: 3fr; width: 1fr; }
    .-wide #tree { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "walk(1)", "older"),
        Binding("k,up", "walk(-1)", "newer"),
        Binding("q,ctrl+c", "quit", "quit"),
    ]

    selected: reactive[bytes | None] = reactive(None, init=False)
    marked: reactive[bytes | None] = reactive(None, init=False)

    def __init__(
        self,
        folder: str = ".",
        session: str | None = None,
        *,
        home: str | None = None,
        clock: Callable[[], float] = time.time,
        look: str = "dark",
        ascii: bool = False,
    ) -> None:
        super().__init__()
        with Store.open(folder, home=home, clock=clock) as store:
            self.root, self.home, self.store_folder = store.root, store.home, store.folder
            self.snapshot = Snapshot(store, session)
        self.clock = clock
        self._folders = Folders(self.store_folder)
        self._ascii = ascii
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = THEMES["none" if self.no_color else look]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return PLAIN

    def compose(self) -> ComposeResult:
        yield TitleBar(id="title")
        with Container(id="body"):
            yield TreeView(self.clock, ascii=self._ascii, id="tree")
        yield StatusBar(id="status")

    def on_mount(self) -> None:
        self.tree_view.focus()
        self._show(self.snapshot)
        self.run_worker(self._follow(), group="follow")
        self.set_interval(AGES_EVERY, self.tree_view.repaint)

    @property
    def tree_view(self) -> TreeView:
        return self.query_one("#tree", TreeView)

    # The store, and what is shown of it.

    @contextmanager
    def store(self, *, recover: bool = True) -> Iterator[Store]:
        """The store, opened anew: what others did meanwhile is seen, one that is gone included. For threads."""
        try:
            with Store.open(os.fsdecode(self.root), home=self.home, clock=self.clock, recover=recover) as store:
                yield store
        except OSError as error:
            raise failed(error) from error

    async def refresh_snapshot(self, select: bytes | None = None) -> None:
        """Shows the tree as it is now. A store that cannot be read leaves the old one, and says so."""
        try:
            found = await asyncio.to_thread(self._read)
        except SnapstoreError as error:
            self.say(f"{error.message} {error.hint}", error=True)
            return
        self._show(found, select)

    def _read(self) -> Snapshot:
        with self.store(recover=False) as store:
            return Snapshot(store, self.snapshot.session)

    def _show(self, snapshot: Snapshot, select: bytes | None = None) -> None:
        self.snapshot = snapshot
        self.tree_view.load(snapshot, select)
        self.query_one(TitleBar).show(snapshot, os.path.basename(os.fsdecode(self.root)))

    async def _follow(self) -> None:
        """Turns that others record appear."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if await asyncio.to_thread(self._folders.changed):
                await self.refresh_snapshot()

    # Telling.

    def say(self, text: str, error: bool = False) -> None:
        """A word in the status line, as plain text."""
        self.query_one(StatusBar).say(safe(text), error=error)

    # Looking.

    def on_tree_view_selected(self, message: TreeView.Selected) -> None:
        self.selected = message.oid

    def action_walk(self, steps: int) -> None:
        self.tree_view.walk(steps)
