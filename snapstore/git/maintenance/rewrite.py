"""History made again without something: other trees, other commits, and in the end no trace of the old ones.

Nothing is ever changed in place. New trees and commits are written beside the old, refs move over (through the journal,
which is not our business here), and then the purge (git/maintenance/purge.py) leaves in the store what refs lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, FOLDER, TAG, TREE, Entry, object_id
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.trees import Trees
from snapstore.git.repository import Shadow


class Change(Protocol):
    """What is to be different. Asked for each commit after its parents."""

    def drops(self, commit: bytes) -> bool: ...

    def tree(self, commit: bytes, tree: bytes, parents: tuple[bytes, ...]) -> bytes: ...

    def message(self, commit: bytes, text: bytes) -> bytes: ...


class RefChange(Change, Protocol):
    """The same for what refs may lead to besides."""

    def filtered(self, tree: bytes) -> bytes: ...

    def takes(self, blob: bytes) -> bool: ...

    def said(self, text: bytes) -> bytes: ...


class Finder:
    """Finds the files of a tree that match, by path, mode and id; where a folder does, all in it. A folder that was
    seen before at the same place is not opened again."""

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
        for place, own, below in reversed(order):  # folders before those that they lie in
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
    """Commits of a repository with a change; `new` is what became of each. One that is dropped became its parent."""

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
        """Where a ref goes that stood at an object: a commit, a tree, a blob, or a tag that leads to one. None where it
        led to what is to go."""
        if oid in self.new:
            return self.new[oid]
        kind = self._shadow.objects.header(oid)[0]
        if kind == TREE:
            return change.filtered(oid)
        if kind == BLOB:
            return None if change.takes(oid) else oid
        if kind != TAG:
            return oid
        data = self._shadow.objects.read(oid)[1]
        head, gap, text = data.partition(b"\n\n")
        target, _, fields = head.partition(b"\n")
        new = self.ref(bytes.fromhex(target[7:47].decode()), change)
        if new is None:
            return None
        made = b"object " + new.hex().encode() + b"\n" + fields + gap + change.said(text)
        return oid if made == data else self._writer.add(TAG, made)


def peel(shadow: Shadow, oid: bytes) -> tuple[bytes, bytes]:
    """Kind and id of what a ref's object leads to."""
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
