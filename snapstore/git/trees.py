"""Trees: read, rewrite the spine above changed paths, compare two while skipping what is equal."""

from __future__ import annotations

import re

from snapstore.errors import Corrupt
from snapstore.git.objects import EMPTY_TREE, FOLDER, TREE, Entry, object_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from snapstore.git.odb import Objects
    from snapstore.git.packwriter import PackWriter

# One pass of the regular expression engine over a tree of thousands of entries, no Python step for each.
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_CACHED_TREES = 4096

Change = tuple[bytes, Entry | None, Entry | None]


class Trees:
    """Trees of one object store, with the recently read ones at hand."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._cache: dict[bytes, dict[bytes, Entry]] = {}

    def read(self, oid: bytes) -> dict[bytes, Entry]:
        """A folder's entries by name. Treat the result as read-only: it is shared."""
        entries = self._cache.get(oid)
        if entries is None:
            entries = {} if oid == EMPTY_TREE else parse(self._objects.read_kind(oid, TREE), oid)
            self._remember(oid, entries)
        return entries

    def lookup(self, tree: bytes, path: bytes) -> Entry | None:
        """What the tree holds at a path, folders included."""
        *folders, name = path.split(b"/")
        for folder in folders:
            entry = self.read(tree).get(folder)
            if entry is None or entry[0] != FOLDER:
                return None
            tree = entry[1]
        return self.read(tree).get(name)

    def file(self, tree: bytes, path: bytes) -> Entry | None:
        """What the tree holds at a path when that is a file or a link."""
        entry = self.lookup(tree, path)
        return None if entry is None or entry[0] == FOLDER else entry

    def walk(self, tree: bytes, prefix: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        """Every file below a tree, in git's order."""
        for name, entry in self.read(tree).items():
            if entry[0] == FOLDER:
                yield from self.walk(entry[1], prefix + name + b"/")
            else:
                yield prefix + name, entry

    def rewrite(self, writer: PackWriter, base: bytes, changes: Mapping[bytes, Entry | None]) -> bytes:
        """The tree that results from setting (or with None removing) some paths; only the folders above them are
        read and written. A path may turn from file to folder or back; folders left empty disappear."""
        by_folder: dict[bytes, dict[bytes, Entry | None]] = {b"": {}}
        below: dict[bytes, set[bytes]] = {}
        for path, entry in changes.items():
            folder, _, name = path.rpartition(b"/")
            group = by_folder.get(folder)
            if group is None:
                group = by_folder[folder] = {}
                child = folder
                while child:
                    parent = child.rpartition(b"/")[0]
                    siblings = below.setdefault(parent, set())
                    if child in siblings:
                        break
                    siblings.add(child)
                    child = parent
            group[name] = entry
        return self._rewrite(writer, b"", base, by_folder, below)

    def _rewrite(
        self,
        writer: PackWriter,
        folder: bytes,
        base: bytes,
        by_folder: Mapping[bytes, Mapping[bytes, Entry | None]],
        below: Mapping[bytes, set[bytes]],
    ) -> bytes:
        entries = dict(self.read(base))
        in_order = True  # while names stay and no file becomes a folder, the base's order is the order
        for name, entry in by_folder.get(folder, {}).items():
            old = entries.get(name)
            if entry is not None:
                in_order = in_order and old is not None and old[0] != FOLDER
                entries[name] = entry
            elif old is not None and old[0] != FOLDER:
                del entries[name]
        for child in below.get(folder, ()):
            name = child.rpartition(b"/")[2]
            old = entries.get(name)
            was_folder = old is not None and old[0] == FOLDER
            new = self._rewrite(writer, child, old[1] if old and was_folder else EMPTY_TREE, by_folder, below)
            if new != EMPTY_TREE:
                in_order = in_order and was_folder
                entries[name] = (FOLDER, new)
            elif was_folder:
                del entries[name]
        if not entries:
            return EMPTY_TREE
        if not in_order:
            entries = sort(entries)
        data = b"".join([b"%s %s\0%s" % (mode, name, oid) for name, (mode, oid) in entries.items()])
        oid = object_id(TREE, data)
        if oid != base:
            writer.add(TREE, data, oid)
            self._remember(oid, entries)
        return oid

    def diff(self, old: bytes, new: bytes, prefix: bytes = b"") -> Iterator[Change]:
        """Each path whose entry differs, as (path, old, new), in path order within a folder; equal folders are not
        opened. A file that became a folder is given as the file removed and the folder's files added."""
        if old == new:
            return
        before, after = self.read(old), self.read(new)
        names = [name for name, entry in before.items() if after.get(name) != entry]
        names += [name for name in after if name not in before]
        for name in sorted(names):
            path = prefix + name
            a, b = before.get(name), after.get(name)
            a_folder = a is not None and a[0] == FOLDER
            b_folder = b is not None and b[0] == FOLDER
            file_a = None if a_folder else a
            file_b = None if b_folder else b
            if file_a is not None or file_b is not None:
                yield path, file_a, file_b
            if a_folder or b_folder:
                tree_a = a[1] if a is not None and a_folder else EMPTY_TREE
                tree_b = b[1] if b is not None and b_folder else EMPTY_TREE
                yield from self.diff(tree_a, tree_b, path + b"/")

    def _remember(self, oid: bytes, entries: dict[bytes, Entry]) -> None:
        if len(self._cache) >= _CACHED_TREES:
            self._cache.clear()
        self._cache[oid] = entries


def parse(data: bytes, oid: bytes) -> dict[bytes, Entry]:
    entries: dict[bytes, Entry] = {}
    count = size = 0
    for mode, name, entry_id in _ENTRY.findall(data):
        entries[name] = (mode, entry_id)
        size += len(mode) + len(name) + 22
        count += 1
    if size != len(data) or count != len(entries):  # something between the entries, or a name twice
        raise Corrupt(f"tree {oid.hex()} is damaged", object=oid.hex())
    return entries


def sort(entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """In git's order: a folder sorts as though its name ended in a slash."""
    order = sorted([(name + b"/" if entry[0] == FOLDER else name, name) for name, entry in entries.items()])
    return {name: entries[name] for _, name in order}
