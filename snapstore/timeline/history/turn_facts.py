"""Look up what a move needs of every turn: touched files and numbers of replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import chain, islice
from typing import Protocol

from snapstore.git.objects import notes
from snapstore.git.objects.ids import BLOB, EMPTY_TREE
from snapstore.git.objects.trees import Change
from snapstore.git.repository import Shadow
from snapstore.timeline.history.commit_cache import MANY
from snapstore.timeline.history.turn_cache import MOST_TOUCHED, TurnCache, replies_in


class FactNode(Protocol):
    """The part of a `GraphNode` that is needed here; importing it would be a cycle."""

    parent: bytes | None
    tree: bytes


class TurnFacts:
    """Facts about a session's turns, from the store, or from the cache once opened.

    `node` finds a node of the session's graph, and `path` is the cache file.
    """

    def __init__(self, node: Callable[[bytes], FactNode], shadow: Shadow, path: str) -> None:
        self._node = node
        self._shadow = shadow
        self.cache = TurnCache(path)

    def touched(self, oid: bytes) -> Iterable[Change]:
        """Return what differs between a node and its parent, as `Trees.diff` does."""
        known = self.cache.touched.get(oid)
        if known is not None:
            return known
        node = self._node(oid)
        before = self._node(node.parent).tree if node.parent is not None else EMPTY_TREE
        changes = self._shadow.trees.diff(before, node.tree)
        first = list(islice(changes, MOST_TOUCHED + 1))
        if len(first) > MOST_TOUCHED:
            return chain(first, changes)
        self.cache.add(touched={oid: tuple(first)})
        return first

    def replies(self, oids: Iterable[bytes]) -> dict[bytes, int]:
        """Return the number of replies per node; ODD if the record must be read."""
        records = self._records
        found: dict[bytes, int] = {}
        for oid in oids:
            record = records(oid)
            if record is None:
                found[oid] = 0
                continue
            number = self.cache.replies.get(record)
            if number is None:
                number = replies_in(self._shadow.objects.read_kind(record, BLOB))
                self.cache.add(replies={record: number})
            found[oid] = number
        return found

    @cached_property
    def _records(self) -> Callable[[bytes], bytes | None]:
        """Return a function from commit to record id; with an open cache, list all at once."""
        tip = self._shadow.refs.read(notes.REF)
        if tip is None:
            return lambda oid: None
        tree, trees = self._shadow.commit(tip).tree, self._shadow.trees
        if not self.cache.opened:
            return lambda oid: notes.find(trees, tree, oid)
        found = {notes.commit_of(path): entry[1] for path, entry in trees.walk(tree)}
        return found.get

    def keep(self) -> None:
        """Save what was read of very many nodes for the next caller."""
        if self.cache.opened:
            self.cache.keep(MANY)
