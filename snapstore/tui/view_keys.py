"""Keys that only look: rows, branches, folds, search and display options."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.worker import WorkType

from snapstore.base.text import counted
from snapstore.errors import SnapstoreError
from snapstore.tui.move_keys import MoveKeys
from snapstore.tui.screens.help import HelpScreen
from snapstore.tui.search import Search, SearchScreen
from snapstore.tui.search_index import Words
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.terminal.themes import THEMES, other
from snapstore.tui.widgets.tree import TreeView

_LONGEST_COUNT = 6  # digits


class ViewKeys(MoveKeys):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "walk(1)", "older"),
        Binding("k,up", "walk(-1)", "newer"),
        Binding("h,left", "beside(-1)", "branch to the left"),
        Binding("l,right", "beside(1)", "branch to the right"),
        Binding("a", "branch_point", "fork"),
        Binding("e", "end", "end of the branch"),
        Binding("full_stop", "here", "where you are"),
        Binding("G,end", "edge(1)", "bottom", show=False),
        Binding("home", "edge(-1)", "top", show=False),
        Binding("pagedown,ctrl+d,ctrl+f", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("z", "fold", "fold"),
        Binding("Z", "folds", "fold all"),
        Binding("A", "archived", "archived branches"),
        Binding("slash", "search", "search"),
        Binding("n", "found(1)", "next"),
        Binding("N", "found(-1)", "previous"),
        Binding("t", "dates", "age or time"),
        Binding("T", "theme", "light or dark"),
        Binding("escape", "back_to_tree", show=False),
        Binding("question_mark", "help", "help"),
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("ctrl+z", "suspend_process", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._digits = ""
        self._counting = False
        self._search: Search | None = None
        self._read_words = Words()
        self._origin: bytes | None = None

    @property
    def tree_view(self) -> TreeView:
        # Keys arrive only on the tree's own screen, but a task that a key started may end while another screen is on
        # top.
        return self.screen_stack[0].query_one("#tree", TreeView)

    def select(self, oid: bytes) -> None:
        if oid in self.snapshot.shown:
            self.tree_view.select(oid)

    def open_run(self) -> None:
        self.tree_view.toggle_fold()

    async def show_archived(self, archived: bool) -> None:
        raise NotImplementedError

    def at_once(self, work: WorkType[None], group: str) -> None:
        """Start a worker, and cancel the previous one of the same group."""
        self.run_worker(work, group=group, exclusive=True)

    # Counts: `3j`.

    def note(self, key: str) -> None:
        super().note(key)
        digit = len(key) == 1 and key in "0123456789" and (key != "0" or self._counting)
        if not self._counting:
            self._digits = ""
        if digit:
            self._digits = (self._digits + key)[:_LONGEST_COUNT]
        self._counting = digit or (key == "g" and self._counting)

    def count(self) -> int:
        digits, self._digits = self._digits, ""
        return int(digits or 1)

    # Rows and branches.

    def action_walk(self, step: int) -> None:
        self.tree_view.walk(step * self.count())

    def action_page(self, step: int) -> None:
        self.tree_view.walk(step * max(self.tree_view.size.height - 2, 1))

    def action_edge(self, step: int) -> None:
        self.tree_view.walk(step * len(self.snapshot.graph.nodes) * 2)

    def action_prefix(self) -> None:
        """Go to the top on `gg`. Other keys after `g` belong to moves."""
        if self.after_g():
            self.action_edge(-1)
        else:
            super().action_prefix()

    def _selected_node(self) -> bytes:
        """Return the selected node, or the newest node of the selected run."""
        run = self.tree_view.run
        return run.folded[0].oid if run is not None else self.tree_view.selected or self.snapshot.cursor

    def action_beside(self, step: int) -> None:
        found = self.snapshot.beside(self._selected_node(), step)
        if found is None:
            self.say(f"No branch to the {'right' if step > 0 else 'left'} of this one.")
        else:
            self.select(found)

    def action_branch_point(self) -> None:
        self.select(self.snapshot.branch_point(self._selected_node()))

    def action_end(self) -> None:
        self.select(self.snapshot.end(self._selected_node()))

    def action_here(self) -> None:
        self.select(self.snapshot.cursor)

    # Folds.

    def action_fold(self) -> None:
        if not self.tree_view.toggle_fold():
            self.say("Nothing is folded here.")

    def action_folds(self) -> None:
        self.tree_view.toggle_folds()

    async def action_archived(self) -> None:
        if not self.snapshot.graph.archived:
            self.say("No branch is archived.")
            return
        await self.show_archived(not self.snapshot.archived)
        number = len(self.snapshot.graph.archived)
        what = counted(number, "archived branch", "archived branches")
        self.say(f"{what} {'shown' if self.snapshot.archived else 'hidden'}.")

    # Search.

    async def action_search(self) -> None:
        self._origin = self._selected_node()
        await self.push_screen(SearchScreen(self.look_for), self._searched)

    def look_for(self, text: str) -> None:
        """Select the nearest hit from where the search began, while the text is typed."""
        self._search = Search(text, self.snapshot, self._read_words) if text else None
        found = self._search.next(self._origin, 1, here=True) if self._search is not None else None
        self._show_found()
        place = found[0] if found is not None else self._origin
        if place is not None:
            self.select(place)

    def _searched(self, text: str | None) -> None:
        if not text:
            self._forget_search()
            if self._origin is not None:
                self.select(self._origin)
            return
        if self._search is None or self._search.text != text:
            self.look_for(text)
        self._tell_found()
        self.at_once(self._look_further, "search")

    async def _look_further(self) -> None:
        """Search whole prompts and paths, which have to be read from the store.

        If there was no hit before, the first new one is selected.
        """
        search = self._search
        if search is None:
            return
        while not search.whole:
            waiting = not search.hits
            try:
                more = await search.look_further(
                    lambda: self.store(recover=False), self._origin or self.snapshot.cursor
                )
            except SnapstoreError as error:
                self.say(f"{error.message} {error.hint}", error=True)
                return
            if more:
                self._show_found()
                found = search.next(self._origin, 1, here=True) if waiting else None
                if found is not None:
                    self.select(found[0])
        self._tell_found()

    def action_found(self, step: int) -> None:
        search = self._search
        if search is None:
            self.say("Type / and a text first.")
            return
        for _ in range(self.count()):
            found = search.next(self._selected_node(), step)
            if found is None:
                break
            self.select(found[0])
            self._tell_found(wrapped=found[1])

    def _tell_found(self, *, wrapped: bool = False) -> None:
        search = self._search
        if search is None:
            return
        if not search.hits:
            self.say(f"/{search.text}: not found." if search.whole else f"/{search.text}: searching…")
            return
        end = ", wrapped around" if wrapped else ""
        more = "" if search.whole else "…"
        self.say(f"/{search.text}: {search.number(self._selected_node())} of {len(search.hits):,}{more}{end}")

    def _show_found(self) -> None:
        search = self._search
        self.tree_view.show_found(frozenset(search.hits) if search else frozenset(), search.text if search else "")

    def _forget_search(self) -> None:
        self._search = None
        self._show_found()

    def search_again(self, snapshot: Snapshot) -> None:
        """Continue the current search in a new snapshot."""
        if self._search is not None:
            self._search = Search(self._search.text, snapshot, self._read_words)
            self._show_found()
            self.at_once(partial(self._look_quietly, self._search), "search")

    async def _look_quietly(self, search: Search) -> None:
        try:
            while not search.whole:
                await search.look_further(lambda: self.store(recover=False), self.snapshot.cursor)
        except SnapstoreError:  # the next search reports the error
            return
        self._show_found()

    # Display options.

    def action_dates(self) -> None:
        self.say("Showing times." if self.tree_view.toggle_dates() else "Showing ages.")

    def action_theme(self) -> None:
        if self.theme == THEMES["none"]:
            self.say("There are no themes without colour.")
            return
        self.theme = other(self.theme)

    def action_back_to_tree(self) -> None:
        self._digits, self._counting = "", False
        self.tree_view.focus()
        self._forget_search()

    async def action_help(self) -> None:
        await self.push_screen(HelpScreen())
