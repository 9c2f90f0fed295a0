"""A session's line of nodes, addresses on it, and differences between its states and the disk."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import islice

from snapstore.git.objects import LINK
from snapstore.timeline.addresses import resolve
from snapstore.timeline.capture import Capture
from snapstore.timeline.graph import Graph
from snapstore.timeline.nodes import FileChange, Node, file_changes, read_node
from snapstore.worktree.statcache import first_seen_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapstore.timeline.session import Session
    from snapstore.timeline.store import Store


class History:
    """What a session has recorded, read-only."""

    def __init__(self, session: Session, graph: Graph | None = None) -> None:
        self.session = session
        self.store: Store = session.store
        self._shadow = session.store.shadow
        self.graph = graph or Graph(session.store, session.name)
        self.cursor, self.branch, self.tip = self.graph.cursor, self.graph.branch, self.graph.tip

    def line(self, limit: int | None = None) -> list[bytes]:
        """Commits of the current line, oldest first; with `limit` only the newest."""
        return [node.oid for node in islice(self.graph.upwards(self.tip), limit)][::-1]

    def nodes(self, limit: int | None = None, *, counts: bool = False) -> list[Node]:
        return [self._node(oid, self.branch, counts) for oid in self.line(limit)]

    def node(self, oid: bytes, *, counts: bool = False) -> Node:
        branch = self.branch if oid in (self.cursor, self.tip) else self.graph.branch_of(oid)
        return self._node(oid, branch or "", counts)

    def _node(self, oid: bytes, branch: str, counts: bool) -> Node:
        node = read_node(self._shadow, oid, branch=branch, counts=counts)
        node.undone = oid in self._undone
        node.checkpoints = list(self.graph.pinned.get(oid, ()))
        return node

    @cached_property
    def _undone(self) -> set[bytes]:
        return set(self.graph.undone())

    def resolve(self, address: str) -> bytes:
        """The commit an address stands for; see `addresses`."""
        return resolve(self.graph, address)

    def tree(self, address: str) -> bytes:
        return self._shadow.commit(self.resolve(address)).tree

    # Differences, recorded and on disk.

    def disk(self) -> bytes:
        """The tree of the disk now. Nothing is stored: its new blobs are known by id only."""
        return self.look_at_disk()[0]

    def look_at_disk(self) -> tuple[bytes, set[bytes]]:
        """The tree of the disk, and the files in it of which nobody knows since when they are there."""
        with self.store.changing():
            capture = Capture(self.store, forget=True)
            disk = capture.scan(self._shadow.commit(self.cursor).tree)
            return disk, first_seen_in(capture.found.coverage)

    def edits(self) -> list[FileChange]:
        """What differs on disk from where the session stands."""
        return file_changes(self._shadow, self._shadow.commit(self.cursor).tree, self.disk())

    def patch(self, changes: list[FileChange]) -> Iterator[bytes]:
        """The changes as a patch that git can apply."""
        from snapstore.git import linediff

        for change in changes:
            yield from linediff.patch(
                change.path,
                change.old,
                change.new,
                self._data(change, change.old),
                self._data(change, change.new),
            )

    def _data(self, change: FileChange, entry: tuple[bytes, bytes] | None) -> bytes:
        from snapstore.git import linediff

        if entry is None:
            return b""
        if self._size(change, entry) > linediff.LARGEST:
            return b"\0"  # in a patch as if it were binary
        if self._shadow.objects.contains(entry[1], fresh=False):
            return self._shadow.objects.read(entry[1])[1]
        full = os.path.join(self.store.root, change.path)  # on disk only
        if entry[0] == LINK:
            return os.readlink(full)
        with open(full, "rb") as file:
            return file.read()

    def is_large(self, change: FileChange) -> bool:
        """Whether one of its sides is too large to be compared line by line."""
        from snapstore.git import linediff

        return any(entry and self._size(change, entry) > linediff.LARGEST for entry in (change.old, change.new))

    def _size(self, change: FileChange, entry: tuple[bytes, bytes]) -> int:
        if self._shadow.objects.contains(entry[1], fresh=False):
            return self._shadow.objects.header(entry[1])[1]
        return os.lstat(os.path.join(self.store.root, change.path)).st_size  # on disk only
