"""`/`: the nodes that a text is in. What the drawing shows is looked through at once; whole prompts and changed paths,
which must be read first, in a thread, and what was read once is kept: commits never change."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left, bisect_right

from textual.widgets import Input

from snapstore.base.text import quote
from snapstore.errors import SnapstoreError
from snapstore.timeline.history.nodes import parent_tree
from snapstore.tui.screens.line import LineScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from snapstore.api import Store
    from snapstore.git.repository import Shadow
    from snapstore.tui.search_index import Words
    from snapstore.tui.snapshot import Snapshot

_AT_ONCE = 250  # nodes read before what was found is shown
_LONGEST = 20_000  # characters of a prompt that are looked through


class Search:
    """One text, and where it is found so far. `known` are the words of nodes that were read before."""

    def __init__(self, text: str, snapshot: Snapshot, known: Words) -> None:
        self.text = text
        self.snapshot = snapshot
        self.whole = False  # whether everything was looked through
        self._wanted = text.casefold()
        self._known = known
        self.hits: set[bytes] = set()
        self._take(snapshot.words.holding(self._wanted))
        self._take(known.holding(self._wanted))
        self._unread: list[bytes] | None = None
        self._order: list[int] = []

    def _take(self, found: Iterable[bytes]) -> None:
        shown = self.snapshot.shown
        self.hits |= {oid for oid in found if oid in shown}

    async def look_further(self, open_store: Callable[[], AbstractContextManager[Store]], start: bytes) -> bool:
        """Reads on from a node, and says whether more was found; to be called until all was looked through."""
        before = len(self.hits)
        if self._unread is None:
            order, known = self.snapshot.order, self._known.texts
            first = self.snapshot.places.get(start, 0)
            missing = len(order) > len(known) or not all(oid in known for oid in order)
            self._unread = [oid for oid in (*order[first:], *order[:first]) if oid not in known] if missing else []
        if self._unread:
            found = await asyncio.to_thread(_read, open_store, self._unread[:_AT_ONCE])
            del self._unread[:_AT_ONCE]
            self._known.add(found)
            self._take(oid for oid, words in found.items() if self._wanted in words)
        self.whole = not self._unread
        return len(self.hits) > before

    def next(self, start: bytes | None, step: int, *, here: bool = False) -> tuple[bytes, bool] | None:
        """The nearest node below, or above, and whether that is round the end; with `here` the start counts too."""
        if not self.hits:
            return None
        places, order = self.snapshot.places, self.snapshot.order
        found = self._places()
        at = places.get(start, 0) if start is not None else 0
        if step > 0:
            place = bisect_left(found, at) if here else bisect_right(found, at)
            return order[found[place % len(found)]], place == len(found)
        place = bisect_left(found, at) - 1
        return order[found[place]], place < 0

    def number(self, oid: bytes | None) -> int:
        """Which of the hits a node is, from the top; 0 for none."""
        place = self.snapshot.places.get(oid, -1) if oid is not None else -1
        return bisect_right(self._places(), place) if oid in self.hits else 0

    def _places(self) -> list[int]:
        if len(self._order) != len(self.hits):
            self._order = sorted(self.snapshot.places[oid] for oid in self.hits)
        return self._order


def _read(open_store: Callable[[], AbstractContextManager[Store]], oids: Iterable[bytes]) -> dict[bytes, str]:
    with open_store() as store:
        return {oid: _words(store.shadow, oid) for oid in oids}


def _words(shadow: Shadow, oid: bytes) -> str:
    """The whole prompt and every changed path. One that is damaged is not found, and hides no other."""
    try:
        commit = shadow.commit(oid)
        if not commit.parents:
            return ""
        changes = shadow.trees.diff(parent_tree(shadow, commit.parents), commit.tree)
        paths = "\n".join(quote(path) for path, _, _ in changes)
        note = shadow.note(oid)
        record = json.loads(note) if note is not None else {}
    except (SnapstoreError, OSError, ValueError):
        return ""
    prompt = record.get("prompt") if isinstance(record, dict) else None
    return f"{prompt[:_LONGEST] if isinstance(prompt, str) else ''}\n{paths}".casefold()


class SearchScreen(LineScreen):
    """Where the text is typed. What it leads to is shown with every letter."""

    def __init__(self, look_for: Callable[[str], None]) -> None:
        super().__init__("/")
        self._look_for = look_for

    def on_input_changed(self, event: Input.Changed) -> None:
        self._look_for(event.value)
