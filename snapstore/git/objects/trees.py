"""Trees: read, rewrite the spine above changed paths, compare two while skipping what is equal.

Parsed by dulwich. Ours is what it does less well (test_git_trees.py compares): its `commit_tree_changes` fails where
a file becomes a folder; `serialize_tree` is plain Python, 2.5 ms for a folder of 3,000 against 0.5; and `tree_changes`
has no trees at hand and makes an object of each entry, 52 ms for 2,000 changed files against 23, or 4 the second time.
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
    """Trees of one object store, with the recently read ones at hand."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._cache: dict[bytes, dict[bytes, Entry]] = {}
        self._held = 0  # entries in the cache, and one for each tree
        self._written: dict[bytes, dict[bytes, Entry]] = {}  # not in the store before their pack is finished

    def start(self) -> None:
        """A new look at the disk begins: what the one before wrote is in the store by now, or will never be."""
        self._written = {}

    def read(self, oid: bytes) -> dict[bytes, Entry]:
        """A folder's entries by name. Treat the result as read-only: it is shared."""
        entries = self._cache.get(oid) or self._written.get(oid)
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

    def missing(self, tree: bytes, path: bytes) -> Iterator[bytes]:
        """The folders above a path that a tree does not have, deepest first."""
        while path := path.rpartition(b"/")[0]:
            entry = self.lookup(tree, path)
            if entry is not None and entry[0] == FOLDER:
                break
            yield path

    # No recursion below: a legal path may have two thousand folders.

    def walk(self, tree: bytes, prefix: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        """Every file below a tree, in git's order."""
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
        """The tree that results from setting (or with None removing) some paths; only the folders above them are
        read and written. A path may turn from file to folder or back; folders left empty disappear."""
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
        # Down: from each folder's old entries and its own changes to the old trees of the folders in it.
        order = sorted(by_folder)  # a folder comes before those in it
        bases: dict[bytes, bytes] = {b"": base}
        drafts: dict[bytes, tuple[dict[bytes, Entry], bool]] = {}
        for folder in order:
            if folder:
                parent, _, name = folder.rpartition(b"/")
                old = drafts[parent][0].get(name)
                bases[folder] = old[1] if old is not None and old[0] == FOLDER else EMPTY_TREE
            drafts[folder] = _draft(self.read(bases[folder]), by_folder[folder])
        # Up: each folder's new tree into the one above it.
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
            # A folder built from nothing may be one that was borrowed with the user's packs. That it is stored is not
            # enough: it may be garbage that a git is about to remove (timeline/capture/stored_objects.py).
            if base != EMPTY_TREE or not self._objects.is_borrowed(oid):
                writer.add(TREE, data, oid)
                self._written[oid] = entries
            else:
                self._remember(oid, entries)
        return oid

    def diff(self, old: bytes, new: bytes) -> Iterator[Change]:
        """Each path whose entry differs, as (path, old, new), in path order within a folder; equal folders are not
        opened. A file that became a folder is given as the file removed and the folder's files added."""
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
        """The entries of one folder that differ, folders included."""
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
    """A folder's entries with its own changes, and whether they are still in order: while names stay and no file
    becomes a folder, the old order is the order."""
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
    """The folder with another one put into it, or taken out when that is empty."""
    entries, in_order = draft
    was_folder = name in entries and entries[name][0] == FOLDER
    if tree != EMPTY_TREE:
        in_order = in_order and was_folder
        entries[name] = (FOLDER, tree)
    elif was_folder:
        del entries[name]
    return entries, in_order


class _Modes(dict[int, bytes]):
    """Modes as trees spell them, by number."""

    def __missing__(self, number: int) -> bytes:
        self[number] = found = b"%o" % number
        return found


_MODES = _Modes()
_SPELLED = re.compile(rb"(\d+) [^\0]+\0.{20}", re.DOTALL)


def parse(data: bytes, oid: bytes) -> dict[bytes, Entry]:
    """The entries of a tree by name. Of old, other programs spelled the mode of a folder with a zero before it."""
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
    if not len(rows) == len(entries) >= bool(data) or b"" in entries:  # a name twice, or none
        raise Corrupt(f"tree {oid.hex()} is damaged", object=oid.hex())
    return entries


def sort(entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """In git's order: a folder sorts as though its name ended in a slash."""
    order = sorted([(name + b"/" if entry[0] == FOLDER else name, name) for name, entry in entries.items()])
    return {name: entries[name] for _, name in order}


def letter(change: Change) -> str:
    _, old, new = change
    if old is None:
        return "A"
    if new is None:
        return "D"
    return "T" if old[0][:2] != new[0][:2] else "M"
