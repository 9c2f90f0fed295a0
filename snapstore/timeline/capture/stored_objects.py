"""Find the objects that need not be written again, because a ref holds them.

An object that exists may be garbage: nothing refers to it, and a user's `git repack -a -d` that began a moment ago may
already have decided to leave it out. A turn that relied on such an object would report success, and its file would be
unreadable afterwards. So a writer leaves an object out of its own pack only in these cases:

- A pack borrowed from the user's repository holds the object. The pack's `.keep` existed before the pack was visible.
  Only snapstore's own gc removes the `.keep`, under the store's lock, after checking what refers to the pack's objects.
- A ref has held the object all the time: the object is in the tree of a commit that a ref of the store leads to, at the
  same path, or in the tree of the disk as last recorded.

Any other object is stored again. The copy costs some bytes, which gc frees, and is made only if a file gets content
that it had long ago or that another file has. The usual case needs no search: an unchanged file is in the tree that is
being built on, and new content is nowhere.

Snapstore's own commands remove refs under the store's lock, and this code runs under the same lock. So an object that
is held now stays held until the new refs are in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from snapstore.errors import SnapstoreError
from snapstore.git.objects.ids import EMPTY_TREE, Entry
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.store import store_again
from snapstore.git.ref_names import CURSORS, DISK_REF, HEADS
from snapstore.store.handle import StoreHandle

_NEAR = 64  # commits whose trees are searched for a small file; beyond them, storing it again costs less
_FAR = 1024  # the same for a large file or a whole tree


class ReachableObjects:
    """Tells which objects refs hold, during one change. Call under the store's lock."""

    def __init__(self, store: StoreHandle) -> None:
        self._store = store
        self._shadow = store.shadow
        self._known: set[bytes] = {EMPTY_TREE}  # trees that a ref leads to
        self._found: list[bytes] = []  # the same trees in the order of the walk, as far as it has come
        self._walk: Iterator[bytes] | None = None
        self._disk: set[bytes] | None = None

    def trust(self, tree: bytes | None) -> None:
        """Accept a tree that the caller knows a ref leads to, or has just written."""
        if tree is not None and tree not in self._known:
            self._known.add(tree)
            self._found.insert(0, tree)

    def has_tree(self, tree: bytes) -> bool:
        """Return whether a ref is known to lead to a tree."""
        return tree in self._known or any(found == tree for found in self._trees(_FAR))

    def has(self, path: bytes, oid: bytes, *, large: bool = False) -> bool:
        """Return whether a file's blob is held and can be left out of the pack."""
        objects = self._shadow.objects
        if objects.is_borrowed(oid):
            return True
        if not objects.contains(oid, fresh=False):
            return False
        return any(self._is_at(tree, path, oid) for tree in self._trees(_FAR if large else _NEAR)) or self._on_disk(oid)

    def keep(self, writer: PackWriter, entries: Iterable[tuple[bytes, Entry | None]]) -> None:
        """Store blobs again that are neither held nor about to be written."""
        for path, entry in entries:
            if entry is not None and entry[1] not in writer and not self.has(path, entry[1], large=True):
                store_again(self._shadow.objects, writer, entry[1])

    def _is_at(self, tree: bytes, path: bytes, oid: bytes) -> bool:
        try:
            entry = self._shadow.trees.file(tree, path)
        except SnapstoreError:  # a damaged tree proves nothing
            return False
        return entry is not None and entry[1] == oid

    def _on_disk(self, oid: bytes) -> bool:
        """Return whether any file on disk has this blob, such as one moved or copied."""
        if self._disk is None:
            cache = self._store.cache
            known = cache.coverage is not None and self.has_tree(cache.tree)
            self._disk = {row[6] for row in cache.files.values()} if known else set()
        return oid in self._disk

    def _trees(self, most: int) -> Iterator[bytes]:
        """Yield up to `most` trees that refs lead to, the likeliest first."""
        at = 0
        while at < most:
            if at == len(self._found):
                if self._walk is None:
                    self._walk = self._walked()
                tree = next(self._walk, None)
                if tree is None:
                    return
                self._known.add(tree)
                self._found.append(tree)
            yield self._found[at]
            at += 1

    def _walked(self) -> Iterator[bytes]:
        """Yield the disk's tree, then those of commits: cursors, other refs, ancestors."""
        refs = self._shadow.refs
        disk = refs.read(DISK_REF)
        if disk is not None:
            yield disk
        seen: set[bytes] = set()
        parents: list[bytes] = []
        for place in (CURSORS, HEADS, "refs/snapstore/", ""):
            # The last round visits the parents and their parents: the list grows during the loop.
            for oid in refs.list(place).values() if place else parents:
                if oid in seen:
                    continue
                seen.add(oid)
                try:
                    commit = self._shadow.commit(oid)
                except SnapstoreError:  # a tree, somebody's own tag, or damage that `check` reports
                    continue
                yield commit.tree
                parents += commit.parents[:1]
