"""Read one session's line of nodes, and compare recorded states and the disk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from snapstore.git.diff import patch as linediff
from snapstore.git.diff.renames import LARGEST, LEAST_SIMILAR, similarity
from snapstore.git.objects.ids import BLOB, LINK, Entry, object_id
from snapstore.git.objects.trees import letter
from snapstore.store.handle import SessionHandle, StoreHandle
from snapstore.timeline.capture.disk_snapshot import Capture
from snapstore.timeline.history.addresses import resolve
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import FileChange, Node, file_changes, read_node, renamed, stored
from snapstore.worktree.scan.stat_cache import first_seen_in


class History:
    """Reads what a session has recorded."""

    def __init__(self, session: SessionHandle, graph: Graph | None = None) -> None:
        self.session = session
        self.store: StoreHandle = session.store
        self._shadow = session.store.shadow
        self.graph = graph or view(session)
        self.cursor, self.branch, self.tip = self.graph.cursor, self.graph.branch, self.graph.tip

    def line(self, limit: int | None = None) -> list[bytes]:
        """Return commits of the current line, oldest first; with `limit`, the newest."""
        return list(islice(self._upwards(), limit))[::-1]

    def nodes(self, limit: int | None = None, *, counts: bool = False) -> list[Node]:
        return list(self.newest_first(limit, counts=counts))[::-1]

    def newest_first(self, limit: int | None = None, *, counts: bool = False) -> Iterator[Node]:
        """Yield the nodes of the current line, each read on demand: there may be many."""
        undone = self.cursor != self.tip and any(oid == self.cursor for oid in self._upwards())
        for oid in islice(self._upwards(), limit):
            undone = undone and oid != self.cursor
            yield self._node(oid, self.branch, counts, undone)

    def _upwards(self) -> Iterator[bytes]:
        """Yield commits from the tip to the root without keeping them, unlike `Graph`."""
        at: bytes | None = self.tip
        while at is not None:
            yield at
            parents = self._shadow.commit(at).parents
            at = parents[0] if parents else None

    def node(self, oid: bytes, *, counts: bool = False, lines: bool = False) -> Node:
        branch = self.branch if oid in (self.cursor, self.tip) else self.graph.branch_of(oid)
        return self._node(oid, branch or "", counts, oid in self._undone, lines)

    def _node(self, oid: bytes, branch: str, counts: bool, undone: bool, lines: bool = False) -> Node:
        node = read_node(self._shadow, oid, branch=branch, counts=counts, lines=lines)
        node.undone = undone
        node.checkpoints = list(self.graph.pinned.get(oid, ()))
        return node

    @cached_property
    def _undone(self) -> set[bytes]:
        return set(self.graph.undone())

    def resolve(self, address: str) -> bytes:
        """Return the commit of an address; see `addresses`."""
        return resolve(self.graph, address)

    def tree(self, address: str) -> bytes:
        return self._shadow.commit(self.resolve(address)).tree

    # Diffs of recorded states and the disk.

    def side(self, address: str | None) -> DiffSide:
        """Return one side of a diff: the state at an address, or the disk for None."""
        if address is None:
            return DiffSide(None, self.disk())
        oid = self.resolve(address)
        commit = self._shadow.commit(oid)
        return DiffSide(address, commit.tree, oid, commit.number("Turn"))

    def disk(self) -> bytes:
        """Return the tree of the disk. Nothing is stored: new blobs are only hashed."""
        return self.look_at_disk()[0]

    def look_at_disk(self) -> tuple[bytes, set[bytes]]:
        """Return the disk's tree, and its files that may be older than their first scan."""
        with self.store.changing():
            capture = Capture(self.store, hash_only=True)
            disk = capture.scan(self._shadow.commit(self.graph.here).tree)
            return disk, first_seen_in(capture.found.coverage)

    def changes(self, old: bytes, new: bytes) -> list[FileChange]:
        """Return the changes with renames between two trees; one may be the disk's."""
        return file_changes(self._shadow, old, new, renames=True, read=self._read)

    def renamed(self, path: bytes, was: bytes, old: Entry, new: Entry) -> FileChange:
        """Return the change of a file that had another path in the old state."""
        a, b = self._read(was, old), self._read(path, new)
        alike = 100 if old[1] == new[1] else similarity(a, b) if a is not None and b is not None else LEAST_SIMILAR
        return renamed(path, was, old, new, alike)

    def _read(self, path: bytes, entry: Entry) -> bytes | None:
        """Return the content of a file, which may be on disk only."""
        data = stored(self._shadow, entry)
        if data is not None or self._shadow.objects.contains(entry[1], fresh=False):
            return data
        return self.store.writer("look", []).read(path, LARGEST + 1, link=entry[0] == LINK)

    def edits(self) -> list[FileChange]:
        """Return the changes from the tree where the session stands to the disk."""
        return file_changes(self._shadow, self._shadow.commit(self.graph.here).tree, self.disk())

    def patch(self, changes: list[FileChange]) -> Iterator[bytes]:
        """Yield the changes as a patch that git can apply."""
        for change in changes:
            sides = self.sides(change)
            if sides is not None:
                yield from sides.patch()

    def sides(self, change: FileChange) -> Sides | None:
        """Return a change with the content of both sides, None if no change is left.

        A file that is on disk only may have changed since the comparison. Then the result describes the file as it is
        now, and a missing file counts as deleted.
        """
        old, a, large_a = self._content(change, change.old)
        new, b, large_b = self._content(change, change.new)
        if (old, new) != (change.old, change.new):
            if old == new:
                return None
            if change.renamed_from is not None and new is not None:
                change = renamed(change.path, change.renamed_from, old, new, similarity(a, b))
            else:
                path = change.path if change.renamed_from is None else change.renamed_from
                change = FileChange(path, letter((path, old, new)), old, new)
        return Sides(change, a, b, large_a or large_b)

    def _content(self, change: FileChange, entry: Entry | None) -> tuple[Entry | None, bytes, bool]:
        """Return one side's entry, its bytes, and whether it is too large to diff."""
        objects = self._shadow.objects
        if entry is None:
            return None, b"", False
        if objects.contains(entry[1], fresh=False):
            large = objects.header(entry[1])[1] > linediff.LARGEST
            data = objects.read(entry[1])[1] if not large else None
        else:  # the content is on disk only
            disk = self.store.writer("look", [])
            found = disk.read(change.path, linediff.LARGEST + 1, link=entry[0] == LINK)
            if found is None:
                return None, b"", False
            large = len(found) > linediff.LARGEST
            data = found if not large else None
            if data is not None:
                entry = (entry[0], object_id(BLOB, data))
        return entry, b"\0" if data is None else data, large  # a patch shows a large file as binary


class DiffSide:
    """One side of a diff: the tree of a node, or of the disk (no address, no commit)."""

    __slots__ = ("address", "commit", "tree", "turn")

    def __init__(self, address: str | None, tree: bytes, commit: bytes | None = None, turn: int | None = None) -> None:
        self.address = address
        self.tree = tree
        self.commit = commit
        self.turn = turn


class Sides:
    """One file's change, with the content before and after."""

    __slots__ = ("change", "large", "new", "old")

    def __init__(self, change: FileChange, old: bytes, new: bytes, large: bool) -> None:
        self.change = change
        self.old = old
        self.new = new
        self.large = large

    def patch(self) -> Iterator[bytes]:
        change = self.change
        return linediff.patch(
            change.path,
            change.old,
            change.new,
            self.old,
            self.new,
            renamed_from=change.renamed_from,
            similarity=change.similarity,
        )
