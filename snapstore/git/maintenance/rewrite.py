"""Create history again without some content: new trees and new commits.

Nothing is changed in place. New trees and commits are written next to the old ones, and refs move to them (through the
journal, by the caller). Then the purge (git/maintenance/purge.py) removes everything that is no longer reachable, so
that no trace of the old content is left (test_forget.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, FOLDER, TAG, TREE, Entry, object_id
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.trees import Trees
from snapstore.git.repository import Shadow


class Change(Protocol):
    """The change to make. Called for each commit after its parents."""

    def drops(self, commit: bytes) -> bool: ...

    def tree(self, commit: bytes, tree: bytes, parents: tuple[bytes, ...]) -> bytes: ...

    def message(self, commit: bytes, text: bytes) -> bytes: ...


class RefChange(Change, Protocol):
    """A change that also covers trees, blobs and tags that refs may point to."""

    def filtered(self, tree: bytes) -> bytes: ...

    def drops_blob(self, blob: bytes) -> bool: ...

    def redact_text(self, text: bytes) -> bytes: ...


class Finder:
    """Finds the files of a tree that match by path, mode and id.

    If a folder matches, all files in the folder do. A folder already seen at the same place is not opened again.
    """

    def __init__(self, trees: Trees, matches: Callable[[bytes, bytes, bytes], bool]) -> None:
        self._trees = trees
        self._matches = matches
        self._known: dict[tuple[bytes, bytes], tuple[bytes, ...]] = {}

    def paths(self, tree: bytes) -> tuple[bytes, ...]:
        top = (tree, b"")
        order: list[tuple[tuple[bytes, bytes], list[bytes], list[tuple[bytes, bytes]]]] = []
        waiting = [top]
        while waiting:
            place = waiting.pop()
            if place in self._known:
                continue
            own, below = self._look(*place)
            order.append((place, own, below))
            waiting += below
        for place, own, below in reversed(order):  # subfolders before their parents
            found = own
            for folder in below:
                found = [*found, *self._known[folder]] if self._known[folder] else found
            self._known[place] = tuple(found)
        return self._known[top]

    def _look(self, tree: bytes, prefix: bytes) -> tuple[list[bytes], list[tuple[bytes, bytes]]]:
        found: list[bytes] = []
        below: list[tuple[bytes, bytes]] = []
        for name, (mode, oid) in self._trees.read(tree).items():
            path = prefix + name
            if mode != FOLDER:
                if self._matches(path, mode, oid):
                    found.append(path)
            elif self._matches(path, mode, oid):
                found += [file for file, _ in self._trees.walk(oid, path + b"/")]
            else:
                below.append((oid, path + b"/"))
        return found, below


class Rewrite:
    """Rewrites commits. `new` maps each old commit to its replacement.

    A dropped commit is replaced by its parent.
    """

    def __init__(self, shadow: Shadow, writer: PackWriter, change: Change) -> None:
        self._shadow = shadow
        self._writer = writer
        self._change = change
        self.new: dict[bytes, bytes] = {}
        self.dropped: set[bytes] = set()

    def commits(self, tips: Iterable[bytes]) -> None:
        for oid in _parents_first(self._shadow, tips):
            if oid not in self.new:
                self._commit(oid)

    def _commit(self, oid: bytes) -> None:
        data = self._shadow.objects.read_kind(oid, COMMIT)
        head, _, text = data.partition(b"\n\n")
        commit = self._shadow.commit(oid)
        parents = tuple(self.new[parent] for parent in commit.parents)
        if self._change.drops(oid):
            self.new[oid] = parents[0]
            self.dropped.add(oid)
            return
        tree = self._change.tree(oid, commit.tree, commit.parents)
        if tree == EMPTY_TREE and commit.tree != EMPTY_TREE:
            self._writer.add(TREE, b"")
        lines = [line for line in head.split(b"\n") if not line.startswith((b"tree ", b"parent "))]
        links = [b"tree " + tree.hex().encode(), *(b"parent " + parent.hex().encode() for parent in parents)]
        made = b"\n".join([*links, *lines]) + b"\n\n" + self._change.message(oid, text)
        new = object_id(COMMIT, made)
        if new != oid:
            self._writer.add(COMMIT, made, new)
        self.new[oid] = new

    def ref(self, oid: bytes, change: RefChange) -> bytes | None:
        """Return the new value of a ref at a commit, tree, blob or tag.

        Returns None if the ref pointed to removed content.
        """
        if oid in self.new:
            return self.new[oid]
        kind = self._shadow.objects.header(oid)[0]
        if kind == TREE:
            return change.filtered(oid)
        if kind == BLOB:
            return None if change.drops_blob(oid) else oid
        if kind != TAG:
            return oid
        data = self._shadow.objects.read(oid)[1]
        head, gap, text = data.partition(b"\n\n")
        target, _, fields = head.partition(b"\n")
        new = self.ref(bytes.fromhex(target[7:47].decode()), change)
        if new is None:
            return None
        made = b"object " + new.hex().encode() + b"\n" + fields + gap + change.redact_text(text)
        return oid if made == data else self._writer.add(TAG, made)


def peel(shadow: Shadow, oid: bytes) -> tuple[bytes, bytes]:
    """Return kind and id of the object that a ref points to, through tags."""
    while (kind := shadow.objects.header(oid)[0]) == TAG:
        oid = bytes.fromhex(shadow.objects.read(oid)[1][7:47].decode())
    return kind, oid


def put(trees: Trees, writer: PackWriter, tree: bytes, states: Mapping[bytes, Entry | None]) -> bytes:
    return trees.rewrite(writer, tree, states) if states else tree


def _parents_first(shadow: Shadow, tips: Iterable[bytes]) -> list[bytes]:
    found: dict[bytes, None] = {}
    waiting = [(tip, False) for tip in tips]
    while waiting:
        oid, entered = waiting.pop()
        if oid in found:
            continue
        if entered:
            found[oid] = None
            continue
        waiting.append((oid, True))
        waiting += [(parent, False) for parent in shadow.commit(oid).parents if parent not in found]
    return list(found)
