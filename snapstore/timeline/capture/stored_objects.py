"""Which objects count as stored: only those that something holds.

An object that is there may be garbage: nothing refers to it any more, and a `git repack -a -d` of somebody's that began
a moment ago has already decided to leave it out. A turn that relied on such an object would report success, and its
file would be unreadable afterwards. So a writer leaves an object out of its own pack only when it is known that

- a pack that was borrowed from the user's repository holds it: its `.keep` was there before it was visible, and nobody
  takes that away but our own gc, under the store's lock, which looks at what refers to its objects; or
- a ref held it all the time: it is in the tree of a commit that a ref of ours leads to, at the same path, or in the
  tree of the disk as last recorded.

Whatever cannot be shown cheaply to be held is stored once more. That costs some bytes, which gc gives back, and only
where a file gets a content that it had long ago, or that another file has. The usual case asks nothing: a file that did
not change is in the tree that is being built on, and a new content is nowhere.

Refs that our own commands remove are removed under the store's lock, as all of this runs, so what was held when it was
asked about is held until the new refs are in place.
"""

from __future__ import annotations

from snapstore.errors import SnapstoreError
from snapstore.git.objects.ids import EMPTY_TREE
from snapstore.git.objects.store import store_again
from snapstore.git.ref_names import DISK_REF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snapstore.git.objects.ids import Entry
    from snapstore.git.objects.pack_writer import PackWriter
    from snapstore.store.handle import StoreHandle

_CURSORS = "refs/snapstore/cursor/"
_NEAR = 64  # commits in whose trees a small file is looked for: beyond them, storing it again costs less
_FAR = 1024  # the same for a large file, or for a whole tree


class Held:
    """What is known to be held, for one change of one store. Ask under the store's lock."""

    def __init__(self, store: StoreHandle) -> None:
        self._store = store
        self._shadow = store.shadow
        self._known: set[bytes] = {EMPTY_TREE}  # trees
        self._found: list[bytes] = []  # trees of commits, as far as the walk has come
        self._walk: Iterator[bytes] | None = None
        self._disk: set[bytes] | None = None

    def trust(self, tree: bytes | None) -> None:
        """The caller knows that a ref leads to this tree, or that it has just been written."""
        if tree is not None and tree not in self._known:
            self._known.add(tree)
            self._found.insert(0, tree)

    def has_tree(self, tree: bytes) -> bool:
        """Whether a ref is known to lead to a tree."""
        return tree in self._known or any(found == tree for found in self._trees(_FAR))

    def has(self, path: bytes, oid: bytes, *, large: bool = False) -> bool:
        """Whether a file's blob can be left out of what is written."""
        objects = self._shadow.objects
        if objects.is_borrowed(oid):
            return True
        if not objects.contains(oid, fresh=False):
            return False
        return any(self._is_at(tree, path, oid) for tree in self._trees(_FAR if large else _NEAR)) or self._on_disk(oid)

    def keep(self, writer: PackWriter, entries: Iterable[tuple[bytes, Entry | None]]) -> None:
        """Stores once more whichever blob of some files is neither held nor about to be written."""
        for path, entry in entries:
            if entry is not None and entry[1] not in writer and not self.has(path, entry[1], large=True):
                store_again(self._shadow.objects, writer, entry[1])

    def _is_at(self, tree: bytes, path: bytes, oid: bytes) -> bool:
        try:
            entry = self._shadow.trees.file(tree, path)
        except SnapstoreError:  # a damaged one proves nothing
            return False
        return entry is not None and entry[1] == oid

    def _on_disk(self, oid: bytes) -> bool:
        """Whether some file of the disk's tree has it: one that was moved or copied."""
        if self._disk is None:
            cache = self._store.cache
            known = cache.coverage is not None and self.has_tree(cache.tree)
            self._disk = {row[6] for row in cache.files.values()} if known else set()
        return oid in self._disk

    def _trees(self, most: int) -> Iterator[bytes]:
        """Trees that refs lead to, those that are most likely asked for first."""
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
        """The disk's tree, and those of commits: where sessions stand, then other refs, each line back from its end."""
        refs = self._shadow.refs
        disk = refs.read(DISK_REF)
        if disk is not None:
            yield disk
        seen: set[bytes] = set()
        parents: list[bytes] = []
        for place in (_CURSORS, "refs/heads/", "refs/snapstore/", ""):
            # The last round is that of the parents, and theirs: the list grows while it is gone through.
            for oid in refs.list(place).values() if place else parents:
                if oid in seen:
                    continue
                seen.add(oid)
                try:
                    commit = self._shadow.commit(oid)
                except SnapstoreError:  # a tree, somebody's own tag, or damage that `check` names
                    continue
                yield commit.tree
                parents += commit.parents[:1]
