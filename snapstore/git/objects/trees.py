"""Trees: read, rewrite the trees above changed paths, compare two trees.

Parsing is dulwich's. Three parts are ours, since a turn must cost what it touched, also in folders of thousands of
files (test_git_trees.py):
- dulwich's `commit_tree_changes` fails if a file becomes a folder.
- `tree_changes` reads each folder again and creates an object per entry: 11 ms for 3 files in a tree of 60,000 against
  0.3, and a turn compares trees several times. It finds the same changes.
- `serialize_tree` formats entry by entry: 2.5 ms for a folder of 3,000 names against 0.5.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Iterator, Mapping

from dulwich.errors import ObjectFormatException
from dulwich.objects import parse_tree

from snapstore.errors import Corrupt
from snapstore.git.objects.ids import EMPTY_TREE, FOLDER, TREE, Entry, object_id
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.store import Objects

_CACHED_ENTRIES = 1 << 15  # of all trees together: folders of one name and of thousands are both common

Change = tuple[bytes, Entry | None, Entry | None]


class Trees:
    """Trees of one object store, with a cache of recently read ones."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._cache: dict[bytes, dict[bytes, Entry]] = {}
        self._held = 0  # size of the cache: its entries plus one per tree
        self._written: dict[bytes, dict[bytes, Entry]] = {}  # not in the store until their pack is finished

    def start(self) -> None:
        """Start a new snapshot of the disk.

        The trees of the previous snapshot are in the store by now, or never will be.
        """
        self._written = {}

    def read(self, oid: bytes) -> dict[bytes, Entry]:
        """Return a folder's entries by name. The result is shared: do not change it."""
        entries = self._cache.get(oid) or self._written.get(oid)
        if entries is None:
            entries = {} if oid == EMPTY_TREE else parse(self._objects.read_kind(oid, TREE), oid)
            self._remember(oid, entries)
        return entries

    def lookup(self, tree: bytes, path: bytes) -> Entry | None:
        """Return the tree's entry at a path, which may be a folder."""
        *folders, name = path.split(b"/")
        for folder in folders:
            entry = self.read(tree).get(folder)
            if entry is None or entry[0] != FOLDER:
                return None
            tree = entry[1]
        return self.read(tree).get(name)

    def file(self, tree: bytes, path: bytes) -> Entry | None:
        """Return the tree's entry at a path, if it is a file or a link."""
        entry = self.lookup(tree, path)
        return None if entry is None or entry[0] == FOLDER else entry

    def missing(self, tree: bytes, path: bytes) -> Iterator[bytes]:
        """Yield the folders above a path that the tree lacks, deepest first."""
        while path := path.rpartition(b"/")[0]:
            entry = self.lookup(tree, path)
            if entry is not None and entry[0] == FOLDER:
                break
            yield path

    # No recursion below: a legal path may have two thousand folders.

    def files_at(self, tree: bytes, path: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield the file at a path, or every file below the path."""
        entry = self.lookup(tree, path) if path else (FOLDER, tree)
        if entry is not None and entry[0] == FOLDER:
            yield from self.walk(entry[1], path + b"/" if path else b"")
        elif entry is not None:
            yield path, entry

    def walk(self, tree: bytes, prefix: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        """Yield every file below a tree, in git's order."""
        levels = [(prefix, iter(self.read(tree).items()))]
        while levels:
            prefix, entries = levels[-1]
            for name, entry in entries:
                if entry[0] == FOLDER:
                    levels.append((prefix + name + b"/", iter(self.read(entry[1]).items())))
                    break
                yield prefix + name, entry
            else:
                levels.pop()

    def rewrite(self, writer: PackWriter, base: bytes, changes: Mapping[bytes, Entry | None]) -> bytes:
        """Return the tree with some paths set, or removed if the entry is None.

        Only the folders above these paths are read and written. A path may change from file to folder or back. Folders
        that become empty disappear.
        """
        by_folder: dict[bytes, dict[bytes, Entry | None]] = {b"": {}}
        for path, entry in changes.items():
            folder, _, name = path.rpartition(b"/")
            group = by_folder.get(folder)
            if group is None:
                group = by_folder[folder] = {}
                parent = folder
                while parent:
                    parent = parent.rpartition(b"/")[0]
                    if parent in by_folder:
                        break
                    by_folder[parent] = {}
            group[name] = entry
        # Top down: apply each folder's own changes to its old entries, to find the old trees of its subfolders.
        order = sorted(by_folder)  # parents before their subfolders
        bases: dict[bytes, bytes] = {b"": base}
        drafts: dict[bytes, tuple[dict[bytes, Entry], bool]] = {}
        for folder in order:
            if folder:
                parent, _, name = folder.rpartition(b"/")
                old = drafts[parent][0].get(name)
                bases[folder] = old[1] if old is not None and old[0] == FOLDER else EMPTY_TREE
            drafts[folder] = _draft(self.read(bases[folder]), by_folder[folder])
        # Bottom up: put each folder's new tree into its parent.
        result = EMPTY_TREE
        for folder in reversed(order):
            entries, in_order = drafts.pop(folder)
            result = self._write(writer, bases[folder], entries, in_order)
            if folder:
                parent, _, name = folder.rpartition(b"/")
                drafts[parent] = _place(drafts[parent], name, result)
        return result

    def _write(self, writer: PackWriter, base: bytes, entries: dict[bytes, Entry], in_order: bool) -> bytes:
        if not entries:
            return EMPTY_TREE
        if not in_order:
            entries = sort(entries)
        data = b"".join([b"%s %s\0%s" % (mode, name, oid) for name, (mode, oid) in entries.items()])
        oid = object_id(TREE, data)
        if oid != base:
            # A folder built from nothing may be in a pack borrowed from the user's repository. That the tree is stored
            # elsewhere is not enough: it may be garbage that git is about to remove
            # (timeline/capture/stored_objects.py).
            if base != EMPTY_TREE or not self._objects.is_borrowed(oid):
                writer.add(TREE, data, oid)
                self._written[oid] = entries
            else:
                self._remember(oid, entries)
        return oid

    def diff(self, old: bytes, new: bytes) -> Iterator[Change]:
        """Yield each path whose entry differs, as (path, old, new).

        Paths are in order within a folder. Equal folders are not opened. A file that became a folder is reported as the
        file removed and the folder's files added.
        """
        levels = [iter(self._differing(b"", old, new))]
        while levels:
            for path, a, b in levels[-1]:
                a_folder, b_folder = a is not None and a[0] == FOLDER, b is not None and b[0] == FOLDER
                file_a, file_b = None if a_folder else a, None if b_folder else b
                if file_a is not None or file_b is not None:
                    yield path, file_a, file_b
                if a_folder or b_folder:
                    tree_a = a[1] if a is not None and a_folder else EMPTY_TREE
                    tree_b = b[1] if b is not None and b_folder else EMPTY_TREE
                    levels.append(iter(self._differing(path + b"/", tree_a, tree_b)))
                    break
            else:
                levels.pop()

    def _differing(self, prefix: bytes, old: bytes, new: bytes) -> list[Change]:
        """Return the differing entries of one folder, subfolders included."""
        if old == new:
            return []
        before, after = self.read(old), self.read(new)
        names = [name for name, entry in before.items() if after.get(name) != entry]
        names += [name for name in after if name not in before]
        return [(prefix + name, before.get(name), after.get(name)) for name in sorted(names)]

    def _remember(self, oid: bytes, entries: dict[bytes, Entry]) -> None:
        if oid in self._cache:
            return
        self._held += len(entries) + 1
        self._cache[oid] = entries
        while self._held > _CACHED_ENTRIES and len(self._cache) > 1:
            self._held -= len(self._cache.pop(next(iter(self._cache)))) + 1


def _draft(old: dict[bytes, Entry], changes: Mapping[bytes, Entry | None]) -> tuple[dict[bytes, Entry], bool]:
    """Return a folder's entries with its changes, and whether they are in order.

    The old order is kept as long as no name is added and no file becomes a folder.
    """
    entries = dict(old)
    in_order = True
    for name, entry in changes.items():
        was = entries.get(name)
        if entry is not None:
            in_order = in_order and was is not None and was[0] != FOLDER
            entries[name] = entry
        elif was is not None and was[0] != FOLDER:
            del entries[name]
    return entries, in_order


def _place(draft: tuple[dict[bytes, Entry], bool], name: bytes, tree: bytes) -> tuple[dict[bytes, Entry], bool]:
    """Put a subfolder into a folder's entries, or remove it if it is empty."""
    entries, in_order = draft
    was_folder = name in entries and entries[name][0] == FOLDER
    if tree != EMPTY_TREE:
        in_order = in_order and was_folder
        entries[name] = (FOLDER, tree)
    elif was_folder:
        del entries[name]
    return entries, in_order


class _Modes(dict[int, bytes]):
    """Modes as written in trees, by number."""

    def __missing__(self, number: int) -> bytes:
        self[number] = found = b"%o" % number
        return found


_MODES = _Modes()
_SPELLED = re.compile(rb"(\d+) [^\0]+\0.{20}", re.DOTALL)


def parse(data: bytes, oid: bytes) -> dict[bytes, Entry]:
    """Return the entries of a tree by name.

    Other programs used to write the mode of a folder with a leading zero, which is accepted.
    """
    try:
        try:
            rows = list(parse_tree(data, 20, strict=True))
        except ObjectFormatException:
            if any(mode.startswith(b"0") and mode != b"040000" for mode in _SPELLED.findall(data)):
                raise
            rows = list(parse_tree(data, 20))
        entries = {name: (_MODES[mode], unhexlify(entry_id)) for name, mode, entry_id in rows}
    except (ObjectFormatException, ValueError):
        rows, entries = [], {}
    if not len(rows) == len(entries) >= bool(data) or b"" in entries:  # a duplicate name, or an empty one
        raise Corrupt(f"tree {oid.hex()} is damaged", object=oid.hex())
    return entries


def sort(entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """Return the entries in git's order: a folder sorts as if named `name/`."""
    order = sorted([(name + b"/" if entry[0] == FOLDER else name, name) for name, entry in entries.items()])
    return {name: entries[name] for _, name in order}


def letter(change: Change) -> str:
    _, old, new = change
    if old is None:
        return "A"
    if new is None:
        return "D"
    return "T" if old[0][:2] != new[0][:2] else "M"
