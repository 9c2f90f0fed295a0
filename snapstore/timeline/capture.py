"""One look at the disk: by scan, or at named paths only."""

from __future__ import annotations

import os
import time

from snapstore.git.objects import FOLDER, Entry
from snapstore.git.packwriter import ForgetfulWriter
from snapstore.worktree.blobs import Blobs, LeftOut
from snapstore.worktree.names import is_git
from snapstore.worktree.rules import RuleReader
from snapstore.worktree.scan import Found, Scan, row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.timeline.store import Store
    from snapstore.worktree.statcache import FileStat


class Capture:
    """What is on disk now, in objects that are written but not yet visible."""

    def __init__(self, store: Store, *, bulk: bool = False, forget: bool = False) -> None:
        self._store = store
        self._trees = store.shadow.trees
        self.writer = ForgetfulWriter() if forget else store.shadow.objects.writer(bulk=bulk)
        self._blobs = Blobs(store.root, store.shadow.objects, self.writer)
        self.disk: bytes | None = None  # the tree of everything on disk, as far as we know it
        self.found = Found()

    def scan(self, reference: bytes | None) -> bytes:
        """Looks at the whole root; gives the tree of the disk. `reference` is a tree to start from when the cache is
        lost: the session's own, so that files it tracks stay tracked."""
        store, cache = self._store, self._store.cache
        cache.load()
        if cache.coverage is None and reference is not None:
            cache.seed(reference, self._trees.walk(reference))
        home = os.fsencode(os.path.expanduser("~"))
        inside = os.fsencode(store.home)
        skip = inside[len(store.root.rstrip(b"/")) + 1 :] if inside.startswith(store.root.rstrip(b"/") + b"/") else None
        scan = Scan(
            store.root,
            cache,
            self._blobs,
            RuleReader(store.root, cache, store.user_repo(), home),
            max_file_size=store.header.max_file_size,
            progress=store.progress,
            skip=skip,
        )
        self.found = scan.run()
        self.disk = (
            self._trees.rewrite(self.writer, cache.tree, self.found.changes) if self.found.changes else cache.tree
        )
        return self.disk

    def look(self, paths: Iterable[bytes], before: bytes) -> dict[bytes, Entry | None]:
        """Looks at named paths, whatever rules and limits say; gives their states. A folder stands for every file
        in it, on disk or in the tree before."""
        states: dict[bytes, Entry | None] = {}
        for path in paths:
            self._look_at(path, before, states)
        return states

    def apply(self, states: dict[bytes, Entry | None]) -> None:
        """Named paths are part of what is known of the disk from now on."""
        tree = self._store.cache.load_tree()
        if tree is not None:
            self.disk = self._trees.rewrite(self.writer, tree, states)

    def remember(self) -> None:
        """Writes the cache, once the objects it speaks of are held by refs."""
        found = self.found
        if self.disk is None:
            return
        cache = self._store.cache
        coverage = found.coverage if found.coverage and found.coverage != cache.coverage else None
        if found.files or found.folders or coverage is not None or self.disk != cache.tree:
            cache.change(self.disk, found.files, found.folders, coverage)

    def _look_at(self, path: bytes, before: bytes, states: dict[bytes, Entry | None]) -> None:
        known = self._trees.lookup(before, path)
        now = time.time_ns()
        if known is not None and known[0] == FOLDER:
            for below, _ in self._trees.walk(known[1], path + b"/"):
                if below not in states:
                    states[below] = None
                    self._look_at_file(below, before, states, now)
        full = self._store.root.rstrip(b"/") + b"/" + path
        if os.path.isdir(full) and not os.path.islink(full):
            if known is not None and known[0] != FOLDER:
                states[path] = None
            for folder, folders, names in os.walk(full):
                folders[:] = [name for name in folders if not is_git(name)]
                links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
                for name in names + links:
                    below = os.path.join(folder, name)[len(self._store.root.rstrip(b"/")) + 1 :]
                    if not is_git(name) and below not in states:
                        self._look_at_file(below, before, states, now)
        else:
            self._look_at_file(path, before, states, now)

    def _look_at_file(self, path: bytes, before: bytes, states: dict[bytes, Entry | None], now: int) -> None:
        known = self._trees.file(before, path)
        row: FileStat | None = None
        try:
            taken = self._blobs.take(path, known and known[1])
        except LeftOut as why:
            self.found.newly_left_out[path] = str(why)
            states.pop(path, None)
            return
        if taken is not None:
            states[path] = taken[0]
            row = row_of(taken, now)
        elif known is not None or path in states:
            states[path] = None
        else:
            states.setdefault(path, None)
        self.found.files[path] = row
