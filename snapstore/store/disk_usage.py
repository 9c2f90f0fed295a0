"""Disk usage of a store by session, branch, path and file.

Every object is counted once, with the bytes that it takes in its pack. The set of refs that hold a commit is a bit mask
with one bit per ref; masks are passed down from the tips. A tree is read only when a ref reaches it for the first time.
So the cost grows with the number of objects, not with the number of branches times objects.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from snapstore.errors import SnapstoreError
from snapstore.git.objects import notes
from snapstore.git.objects.ids import COMMIT, FOLDER, GITLINK, TREE
from snapstore.git.objects.pack import Extents
from snapstore.git.objects.pack_files import is_linked
from snapstore.git.objects.reachability import commit_links
from snapstore.git.ref_names import (
    ARCHIVE,
    CURSORS,
    DELETED,
    DISK_REF,
    HEADS,
    MACHINES,
    PRUNED,
    REMOTES,
    SAFETY,
    STORES,
    TAGS,
)
from snapstore.store.handle import StoreHandle

_PLACES = {
    HEADS: "listed",
    ARCHIVE: "archived",
    DELETED: "deleted",
    PRUNED: "pruned",
    SAFETY: "safety",
    TAGS: "checkpoint",
}
_SHARING = (MACHINES, STORES, REMOTES)
_LARGEST = 20
_DEPTH = 2  # path components of the folders that are counted separately


class Holder:
    """A ref, with the bytes that only this ref holds and the bytes that it shares."""

    __slots__ = ("exclusive", "name", "ref", "session", "shared", "state", "tip")

    def __init__(self, ref: str, tip: bytes) -> None:
        place = next(place for place in _PLACES if ref.startswith(place))
        self.ref = ref
        self.tip = tip
        self.state = _PLACES[place]
        self.session, _, rest = ref[len(place) :].partition("/")
        self.name = rest.rpartition("/")[2]
        self.exclusive = self.shared = 0


class DiskUse:
    """The disk usage of a store at one moment; `measure` fills it in."""

    def __init__(self, store: StoreHandle) -> None:
        self.store = store
        self._objects = store.shadow.objects
        self.sizes: dict[bytes, int] = {}
        self.borrowed = 0  # in packs that are hard links to packs of the user's repository
        self.index = 0  # pack indexes
        self.loose = 0
        self.total = folder_size(store.folder)
        self.records = 0
        self.unreferenced = 0
        self.holders: list[Holder] = []
        self.sessions: dict[str, tuple[int, int]] = {}
        self.paths: dict[bytes, int] = {}
        self.files: dict[bytes, list[int]] = {}  # path: bytes, versions
        self._masks: dict[bytes, int] = {}

    def measure(self, only: Iterable[str] | None = None) -> DiskUse:
        """Measure everything; with `only`, count the other refs together."""
        self._measure_objects()
        refs = self.store.shadow.refs.list("refs/")
        separate = None if only is None else set(only)
        bits: list[tuple[bytes, int]] = []
        records: list[bytes] = []
        for name, oid in sorted(refs.items()):
            if name in notes.REFS or name.startswith(_SHARING):
                records.append(oid)
                continue
            if name.startswith(tuple(_PLACES)) and (separate is None or name in separate):
                self.holders.append(Holder(name, oid))
                bits.append((oid, 1 << len(self.holders)))
            elif separate is not None or not name.startswith((CURSORS, DISK_REF)):
                bits.append((oid, 1))  # held, but by no branch
        self._pass_down(bits)
        self._add_up()
        self._count_records(records)
        counted = sum(self.sizes[oid] for oid in self._masks if oid in self.sizes)
        self.unreferenced = max(sum(self.sizes.values()) - counted - self.records, 0)
        return self

    def _measure_objects(self) -> None:
        for pack in self._objects.packs():
            try:
                linked = is_linked(os.stat(f"{pack.base}.pack"))
                extents = Extents(pack)
                self.index += os.stat(f"{pack.base}.idx").st_size
            except FileNotFoundError:
                continue
            if linked:
                self.borrowed += pack.size()
            for oid, offset in pack.offsets().items():
                self.sizes.setdefault(oid, 0 if linked else extents.end(offset) - offset)
        for oid in self._objects.loose_ids():
            try:
                st = os.stat(self._objects.loose_path(oid))
            except FileNotFoundError:
                continue
            size = 0 if is_linked(st) else st.st_blocks * 512
            self.loose += size
            self.sizes.setdefault(oid, size)

    def _pass_down(self, bits: list[tuple[bytes, int]]) -> None:
        """Pass masks from tips to commits, then to trees, those with the most refs first."""
        masks: dict[bytes, int] = {}
        trees: dict[bytes, bytes] = {}
        parents: dict[bytes, tuple[bytes, ...]] = {}
        tops: list[tuple[bytes, int]] = []
        for oid, bit in bits:
            kind = self._kind(oid)
            if kind == COMMIT:
                masks[oid] = masks.get(oid, 0) | bit
            elif kind == TREE:
                tops.append((oid, bit))
        waiting = list(masks)
        children: dict[bytes, int] = {}
        while waiting:
            oid = waiting.pop()
            if oid in parents:
                continue
            try:
                trees[oid], parents[oid], _ = commit_links(self._objects.read_kind(oid, COMMIT), oid)
            except SnapstoreError:
                parents[oid] = ()  # `check` reports the damage
            for parent in parents[oid]:
                children[parent] = children.get(parent, 0) + 1
                waiting.append(parent)
        ready = [oid for oid in parents if oid not in children]
        while ready:  # each commit once, after all its children
            oid = ready.pop()
            for parent in parents[oid]:
                masks[parent] = masks.get(parent, 0) | masks[oid]
                children[parent] -= 1
                if not children[parent]:
                    ready.append(parent)
        self._masks.update(masks)
        tops += [(trees[oid], mask) for oid, mask in masks.items() if oid in trees]
        tops.sort(key=lambda top: -top[1].bit_count())
        for tree, mask in tops:
            self._walk(tree, mask)

    def _walk(self, tree: bytes, mask: int) -> None:
        masks, sizes = self._masks, self.sizes
        waiting = [(tree, b"")]
        while waiting:
            oid, prefix = waiting.pop()
            known = masks.get(oid, 0)
            if known | mask == known:
                continue
            masks[oid] = known | mask
            try:
                entries = self.store.shadow.trees.read(oid)
            except SnapstoreError:
                continue
            for name, (mode, child) in entries.items():
                if mode == FOLDER:
                    waiting.append((child, prefix + name + b"/"))
                elif mode != GITLINK:
                    before = masks.get(child, 0)
                    masks[child] = before | mask
                    if not before:
                        self._count_file(prefix + name, sizes.get(child, 0))

    def _count_file(self, path: bytes, size: int) -> None:
        row = self.files.setdefault(path, [0, 0])
        row[0] += size
        row[1] += 1
        parts = path.split(b"/")
        folder = b"/".join(parts[: min(_DEPTH, len(parts) - 1)]) + b"/" if len(parts) > 1 else b""
        self.paths[folder] = self.paths.get(folder, 0) + size

    def _add_up(self) -> None:
        by_mask: dict[int, int] = {}
        for oid, mask in self._masks.items():
            by_mask[mask] = by_mask.get(mask, 0) + self.sizes.get(oid, 0)
        of_session: dict[str, int] = {}
        for at, holder in enumerate(self.holders, 1):
            of_session[holder.session] = of_session.get(holder.session, 0) | 1 << at
        for mask, size in by_mask.items():
            for at, holder in enumerate(self.holders, 1):
                if mask == 1 << at:
                    holder.exclusive += size
                elif mask >> at & 1:
                    holder.shared += size
            for session, bits in of_session.items():
                if mask & bits:
                    exclusive, shared = self.sessions.get(session, (0, 0))
                    alone = not mask & ~bits
                    self.sessions[session] = (exclusive + size * alone, shared + size * (not alone))

    def _count_records(self, tips: Iterable[bytes]) -> None:
        """Count the records of turns, and what machines publish about themselves."""
        shadow = self.store.shadow
        found: set[bytes] = set()
        commits, trees = list(tips), []
        try:
            while commits:
                oid = commits.pop()
                if oid not in found:
                    found.add(oid)
                    commit = shadow.commit(oid)
                    commits += commit.parents
                    trees.append(commit.tree)
            while trees:
                oid = trees.pop()
                if oid not in found:
                    found.add(oid)
                    below = shadow.trees.read(oid).values()
                    trees += [child for mode, child in below if mode == FOLDER]
                    found.update(child for mode, child in below if mode != FOLDER)
        except SnapstoreError:
            pass  # `check` reports the damage
        self.records = sum(self.sizes.get(oid, 0) for oid in found if oid not in self._masks)

    def _kind(self, oid: bytes) -> bytes | None:
        try:
            return self._objects.header(oid)[0]
        except SnapstoreError:
            return None

    def largest(self) -> list[tuple[bytes, int, int]]:
        """Return the largest files: path, bytes of all versions, number of versions."""
        rows = sorted(self.files.items(), key=lambda row: (-row[1][0], row[0]))[:_LARGEST]
        return [(path, size, versions) for path, (size, versions) in rows if size]

    def folders(self) -> list[tuple[bytes, int]]:
        return sorted(self.paths.items(), key=lambda row: (-row[1], row[0]))[:_LARGEST]

    def freed_by(self, refs: Iterable[str]) -> int:
        """Return the bytes that only these refs hold."""
        bits = sum(1 << at for at, holder in enumerate(self.holders, 1) if holder.ref in set(refs))
        return sum(self.sizes.get(oid, 0) for oid, mask in self._masks.items() if not mask & ~bits)

    def saved(self) -> tuple[int, int]:
        """Return the number of safety commits, and the bytes that only these hold."""
        refs = [holder.ref for holder in self.holders if holder.state == "safety"]
        return len(refs), self.freed_by(refs) if refs else 0

    def files_size(self) -> int:
        """Return the bytes of all objects that refs hold, without records."""
        return sum(self.sizes.get(oid, 0) for oid in self._masks)


def folder_size(folder: str) -> int:
    """Return the bytes on disk of a folder; files with other hard links count as zero."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                st = os.lstat(os.path.join(path, name))
            except FileNotFoundError:
                continue
            if st.st_nlink == 1:
                total += st.st_blocks * 512
    return total
