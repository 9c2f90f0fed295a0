"""The search of `/`, which finds the nodes that contain a text.

The texts on the screen are searched at once. Whole prompts and changed paths have to be read first, which happens on a
thread. Texts are kept once read, because commits never change.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from textual.widgets import Input

from snapstore.api import Store
from snapstore.base.text import quote
from snapstore.errors import SnapstoreError
from snapstore.git.repository import Shadow
from snapstore.timeline.history.nodes import parent_tree
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.search_index import Words
from snapstore.tui.snapshot import Snapshot

_AT_ONCE = 250  # nodes to read before the hits so far are shown
_LONGEST = 20_000  # characters of a prompt that are searched


class Search:
    """One search and its hits so far. `known` are the texts of nodes read before."""

    def __init__(self, text: str, snapshot: Snapshot, known: Words) -> None:
        self.text = text
        self.snapshot = snapshot
        self.whole = False  # whether everything has been searched
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
        """Read the next nodes and return whether there are new hits.

        Reading begins at `start` and wraps around. Call until `whole` is set.
        """
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
        """Return the nearest hit below or above, and whether the search wrapped around.

        With `here`, the start itself counts too.
        """
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
        """Return the position of a node among the hits, from the top; 0 if it is no hit."""
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
    """Return the whole prompt and all changed paths of a node.

    A damaged node has no text, so that it does not prevent other nodes from being found.
    """
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
    """The input line for a search, which shows the nearest hit after every letter."""

    def __init__(self, look_for: Callable[[str], None]) -> None:
        super().__init__("/")
        self._look_for = look_for

    def on_input_changed(self, event: Input.Changed) -> None:
        self._look_for(event.value)
