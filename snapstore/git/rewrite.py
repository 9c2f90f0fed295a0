"""History made again without something: other trees, other commits, and in the end no trace of the old ones.

Nothing is ever changed in place. New trees and commits are written beside the old, refs move over (through the journal,
which is not our business here), and then `purge` leaves in the store what refs lead to, and not a byte else.
"""

from __future__ import annotations

import os

from snapstore.git.missing import between
from snapstore.git.objects import COMMIT, EMPTY_TREE, FOLDER, TAG, TREE, object_id
from snapstore.git.packs import Pack
from snapstore.git.packwriter import sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol

    from snapstore.git.objects import Entry
    from snapstore.git.odb import Objects
    from snapstore.git.packwriter import PackWriter
    from snapstore.git.repack import Packing
    from snapstore.git.shadow import Shadow
    from snapstore.git.trees import Trees

    class Change(Protocol):
        """What is to be different. Asked for each commit after its parents."""

        def drops(self, commit: bytes) -> bool: ...

        def tree(self, commit: bytes, tree: bytes, parents: tuple[bytes, ...]) -> bytes: ...

        def message(self, commit: bytes, text: bytes) -> bytes: ...


_WORK = "snapstore_purge"
_BESIDE = ("pack/multi-pack-index", "info/commit-graph", "info/packs")


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

    def ref(self, oid: bytes) -> bytes:
        """Where a ref goes that stood at an object: a commit, or a tag that leads to one."""
        if oid in self.new:
            return self.new[oid]
        kind, data = self._shadow.objects.read(oid)
        if kind != TAG:
            return oid
        head, newline, rest = data.partition(b"\n")
        target = bytes.fromhex(head[7:47].decode())
        new = self.ref(target)
        return oid if new == target else self._writer.add(TAG, b"object " + new.hex().encode() + newline + rest)


def peel(shadow: Shadow, oid: bytes) -> tuple[bytes, bytes]:
    """Kind and id of what a ref's object leads to."""
    kind, data = shadow.objects.read(oid)
    while kind == TAG:
        oid = bytes.fromhex(data[7:47].decode())
        kind, data = shadow.objects.read(oid)
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


class Purge:
    """Leaves in an object store what some objects reach, in packs of its own, and nothing else: also packs go that
    were borrowed or kept, since they hold whatever the user's own repository holds. Call it under the store's lock. It
    can be cut short anywhere and done again."""

    def __init__(self, objects: Objects, packing: Packing, progress: Callable[[int], None] | None = None) -> None:
        self.objects = objects
        self.folder = f"{objects.folder}/{_WORK}"
        self.kept: list[Pack] = []
        self.progress = progress
        self.lock = -1
        self._packing = packing

    def run(self, roots: Iterable[bytes]) -> None:
        objects = self.objects
        os.makedirs(self.folder, 0o700, exist_ok=True)
        self._empty()
        objects.reload()
        old = [pack.base for pack in objects.packs()]
        self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made = self._packing(self, sorted(set(roots)), True)  # type: ignore[arg-type]
        finally:
            os.close(self.lock)
        self._check(made, roots)
        shown = [self._show(base) for base in made]
        sync_folder(objects.pack_folder)
        for name in _BESIDE:
            _remove(f"{objects.folder}/{name}")
        for base in old:
            if base not in shown:
                _remove_pack(base)
        self._remove_others(shown)
        self._empty()
        os.rmdir(self.folder)
        objects.close()  # what is gone is not to be read from an open file either

    def _check(self, made: list[str], roots: Iterable[bytes]) -> None:
        """Before anything goes: everything that is needed is in the new packs."""
        packs = [Pack(base) for base in made]
        try:
            for oid, _, _, _ in between(self.objects, sorted(set(roots)), ()):
                if not any(pack.find(oid) is not None for pack in packs):
                    from snapstore.git.objects import Missing

                    raise Missing(oid)
        finally:
            for pack in packs:
                pack.close()

    def _show(self, base: str) -> str:
        target = f"{self.objects.pack_folder}/{os.path.basename(base)}"
        for suffix in (".pack", ".rev", ".idx"):  # only with its index does a pack count
            if os.path.exists(base + suffix):
                fd = os.open(base + suffix, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fchmod(fd, 0o444)
                    os.fsync(fd)
                finally:
                    os.close(fd)
                os.rename(base + suffix, target + suffix)
        return target

    def _remove_others(self, shown: list[str]) -> None:
        """Loose objects, and whatever lies in the folder of packs that belongs to none of ours."""
        objects = self.objects
        for oid in list(objects.loose_ids()):
            _remove(objects.loose_path(oid))
        for first in range(256):
            folder = f"{objects.folder}/{first:02x}"
            if os.path.isdir(folder):
                for name in os.listdir(folder):
                    _remove(f"{folder}/{name}")  # an object that was never finished
                os.rmdir(folder)
        names = {f"{os.path.basename(base)}{suffix}" for base in shown for suffix in (".pack", ".idx", ".rev")}
        for name in os.listdir(objects.pack_folder):
            if name not in names:
                _remove(f"{objects.pack_folder}/{name}")
        graphs = f"{objects.folder}/info/commit-graphs"
        if os.path.isdir(graphs):
            for name in os.listdir(graphs):
                _remove(f"{graphs}/{name}")
        sync_folder(objects.pack_folder)

    def _empty(self) -> None:
        for name in os.listdir(self.folder):
            _remove(f"{self.folder}/{name}")


def _remove_pack(base: str) -> None:
    for suffix in (".idx", ".rev", ".bitmap", ".mtimes", ".promisor", ".keep", ".pack"):
        _remove(base + suffix)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
