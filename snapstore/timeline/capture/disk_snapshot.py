"""Capture the state of the disk: by a scan, or at named paths only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from snapstore.base.paths import is_git
from snapstore.base.platform import collector_paused
from snapstore.git.objects.ids import FOLDER, Entry, Missing
from snapstore.git.objects.pack_writer import HashOnlyWriter
from snapstore.git.objects.store import store_again
from snapstore.store.handle import StoreHandle
from snapstore.timeline.capture.stored_objects import ReachableObjects
from snapstore.worktree.ignore.never_capture import never_capture_of
from snapstore.worktree.ignore.rules import RuleBook
from snapstore.worktree.scan.blob_reader import SPECIAL, UNREADABLE, Blobs, LeftOut
from snapstore.worktree.scan.borrow import Borrow, NotBorrowable
from snapstore.worktree.scan.compare import row_of, through_link, watch_parents
from snapstore.worktree.scan.found import Found
from snapstore.worktree.scan.rule_reader import RuleReader
from snapstore.worktree.scan.scan import Scan
from snapstore.worktree.scan.stat_cache import YOUNG, FileStat, scans_in
from snapstore.worktree.scan.walk import FOLDER_ERRORS, GONE_ERRORS
from snapstore.worktree.usergit.index import IndexUnreadable, index_mark, read_index
from snapstore.worktree.usergit.user_repo import UserRepo

_NO_BLOB = bytes(20)  # an id that no file has


class Capture:
    """The state of the disk, in objects that are written but not yet visible.

    With `hash_only`, content is hashed and nothing is written.
    """

    def __init__(self, store: StoreHandle, *, hash_only: bool = False) -> None:
        self._store = store
        self._trees = store.shadow.trees
        store.shadow.objects.refresh()
        store.shadow.trees.start()
        self.writer = HashOnlyWriter() if hash_only else store.shadow.objects.writer()
        self.held = ReachableObjects(store)
        self._hash_only = hash_only
        self._blobs = Blobs(store.root, self.writer, None if hash_only else self.held)
        self._policy = store.policy
        self.disk: bytes | None = None  # the tree of the whole disk, as far as it is known
        self.found = Found()

    def scan(self, reference: bytes | None, at_least: int = 0) -> bytes:
        """Scan the whole root and return the tree of the disk.

        `reference` is the session's own tree. A scan without a cache starts from it, so that the session's files stay
        tracked. A cache with fewer scans than `at_least` has lost the scan at the start of the turn, and so does not
        tell what was visible then. Such a cache is dropped.
        """
        store, cache = self._store, self._store.cache
        cache.load()
        if scans_in(cache.coverage) < at_least:
            cache.drop()
            cache.load()
        self.held.trust(reference)
        if cache.coverage is not None and not self._hash_only and not self.held.has_tree(cache.tree):
            self._read_again(reference)
        if cache.coverage is None and reference is not None:
            cache.seed(reference, self._trees.walk(reference))
        home = os.fsencode(os.path.expanduser("~"))
        repo = store.user_repo()
        borrow = None
        if cache.coverage is None and reference is None and repo is not None:
            try:
                borrow = Borrow(repo, store.root, home)
            except NotBorrowable:
                pass
        # Files that the session has and the cache lacks: a move restored them, and ignore rules may hide them now.
        unseen: dict[bytes, Entry] = {}
        if reference not in (None, cache.tree):
            assert reference is not None
            unseen = {path: new for path, old, new in self._trees.diff(cache.tree, reference) if old is None and new}
        try:
            return self._scan(repo, home, borrow, unseen)
        except NotBorrowable:  # only trying to link shows this; read everything instead
            return self._scan(repo, home, None, unseen)

    def _read_again(self, reference: bytes | None) -> None:
        """Reset cache entries whose blobs no ref is known to hold.

        No ref is known to lead to the cache's tree, so its objects may be removed at any moment. Whatever that tree has
        beyond the reference is read and stored again. This is rare: usually a branch or the disk's own ref leads to the
        tree, unless somebody removed these refs.
        """
        cache = self._store.cache
        try:
            differing = list(self._trees.diff(reference, cache.tree)) if reference is not None else []
        except Missing:  # removed already
            reference = None
        if reference is None:
            cache.drop()
            cache.load()
            return
        for path, ours, theirs in differing:
            if ours is not None:
                cache.files[path] = (YOUNG, 0, 0, 0, 0, *ours)
            elif theirs is not None:
                cache.files[path] = (YOUNG, 0, 0, 0, 0, theirs[0], _NO_BLOB)
        cache.tree = reference

    def _scan(self, repo: UserRepo | None, home: bytes, borrow: Borrow | None, unseen: dict[bytes, Entry]) -> bytes:
        store, cache = self._store, self._store.cache
        mark = index_mark(repo) if repo is not None else None
        scan = Scan(
            store.root,
            cache,
            self._blobs,
            RuleReader(store.root, cache, repo, home),
            max_file_size=store.header.max_file_size,
            hint=borrow,
            tracked=borrow.tracked if borrow is not None else self._newly_tracked(repo, mark),
            own=unseen,
            index_mark=mark,
            progress=store.progress,
            policy=self._policy,
        )
        with collector_paused():  # every row is a new tuple; searching them for cycles takes a fifth of the time
            self.found = scan.run()
        for reported in (self.found.newly_left_out, self.found.lost):
            # Files of other programs change in every turn, and users did not ask about them.
            for path in [path for path in reported if self._policy.is_others(path)]:
                del reported[path]
        base, changes = cache.tree, self.found.changes
        if borrow is not None:
            found = borrow.base(changes, self.found.hinted)
            if found is not None:
                base, changes = found
            else:
                changes.update({path: row[5:7] for path, row in self.found.hinted.items()})
            borrow.link(store.shadow.objects, self.found.hinted)
            if store.shadow.refs.list("refs/"):  # otherwise the store is new, and no git process knows of it
                for oid in borrow.linked_loose():
                    store_again(store.shadow.objects, self.writer, oid)
        self.disk = self._trees.rewrite(self.writer, base, changes) if changes else base
        return self.disk

    def _newly_tracked(self, repo: UserRepo | None, mark: tuple[int, ...] | None) -> list[bytes]:
        """Return the paths that the user's git tracks, if its index changed since the scan.

        Tracked files are captured whatever the ignore rules say.
        """
        coverage = self._store.cache.coverage
        if repo is None or mark is None or (coverage is not None and coverage.get("index") == mark):
            return []
        try:
            paths = read_index(os.path.join(repo.git_dir, b"index")).entries
        except IndexUnreadable:
            return []
        prefix = self._store.root[len(repo.top.rstrip(b"/")) + 1 :] + b"/" if self._store.root != repo.top else b""
        return [path[len(prefix) :] for path in paths if path.startswith(prefix)]

    def look(self, paths: Iterable[bytes], before: bytes) -> dict[bytes, Entry | None]:
        """Return the states of named paths, regardless of ignore rules and size limits.

        A folder means every file in it, on disk or in the tree `before`. Files that are never captured have no state.
        """
        states: dict[bytes, Entry | None] = {}
        for path in paths:
            self._look_at(path, before, states)
        return states

    def covered(self, path: bytes) -> bool:
        """Return whether the last scan would have seen a file at this path."""
        cache = self._store.cache
        cache.load()
        if cache.coverage is None:
            return False
        left: dict[bytes, object] = cache.coverage["left_out"]  # type: ignore[assignment]
        rules: Any = cache.coverage["rules"]
        hidden = any(path == top or path.startswith(top + b"/") for top in left)
        return (
            not hidden
            and not RuleBook(*rules).ignored(path, False)
            and not never_capture_of(cache.coverage).matches(path)
        )

    def apply(self, states: dict[bytes, Entry | None], base: bytes, result: bytes) -> None:
        """Add the states of named paths to the known tree of the disk.

        `result` is `base` with `states` applied. If only one session is active, `result` is the disk's tree too, and no
        tree is rewritten twice.
        """
        tree = self._store.cache.load_tree()
        self.held.trust(base)
        if tree is not None and self.held.has_tree(tree):  # otherwise the next scan compares the disk itself
            self.disk = result if tree == base else self._trees.rewrite(self.writer, tree, states)

    def remember(self) -> None:
        """Write the cache. Call once refs hold the objects that the cache names."""
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
        if os.path.isdir(full) and not os.path.islink(full) and os.path.realpath(full) == full:
            if known is not None and known[0] != FOLDER:
                states[path] = self.found.files[path] = None  # drop its cache row too: the file may come back unchanged
            for folder, folders, names in os.walk(full, onerror=self._not_listed):
                folders[:] = [name for name in folders if not is_git(name) and not self._is_never(folder, name)]
                links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
                for name in names + links:
                    below = os.path.join(folder, name)[len(self._store.root.rstrip(b"/")) + 1 :]
                    if not is_git(name) and below not in states:
                        self._look_at_file(below, before, states, now)
        else:
            self._look_at_file(path, before, states, now)

    def _not_listed(self, error: OSError) -> None:
        if error.errno in FOLDER_ERRORS:
            path = os.fsencode(error.filename)[len(self._store.root.rstrip(b"/")) + 1 :]
            self.found.newly_left_out[path] = f"{UNREADABLE}: {error.strerror}"
        elif error.errno not in GONE_ERRORS:
            raise error

    def _is_never(self, folder: bytes, name: bytes) -> bool:
        """Return whether a folder must not be entered; note the reason in `found`."""
        path = os.path.join(folder, name)[len(self._store.root.rstrip(b"/")) + 1 :]
        if self._policy.is_store(path):
            return True
        why = self._policy.excluded(path, True)
        if why is not None:
            self.found.newly_left_out[path] = why
        return why is not None

    def _is_hidden(self, path: bytes) -> bool:
        """Return whether a file cannot exist because a folder above is missing or a link.

        Raises LeftOut for a folder that cannot be entered: its content is unknown.
        """
        try:
            return through_link(self._store.root.rstrip(b"/") + b"/", path)
        except OSError as error:
            if error.errno in GONE_ERRORS:
                return True
            if error.errno in FOLDER_ERRORS:
                raise LeftOut(f"{UNREADABLE}: {error.strerror}") from None
            raise

    def _look_at_file(self, path: bytes, before: bytes, states: dict[bytes, Entry | None], now: int) -> None:
        why_not = self._policy.excluded(path)
        if why_not is not None:
            self.found.newly_left_out[path] = why_not
            states.pop(path, None)
            return
        known = self._trees.file(before, path)
        row: FileStat | None = None
        try:
            hidden = self._is_hidden(path)
            taken = None if hidden else self._blobs.take(path, known and known[1])
        except LeftOut as why:
            self.found.newly_left_out[path] = str(why.args[0])
            states.pop(path, None)
            if why.args[0] == SPECIAL and known is not None:
                states[path] = None  # the recorded file no longer exists
            return
        self.found.newly_left_out.pop(path, None)  # a scan may have left it out
        if taken is not None:
            states[path] = taken[0]
            row = row_of(taken, now)
            self.found.folders.update(watch_parents(path))
        elif known is not None or path in states:
            states[path] = None
        else:
            states.setdefault(path, None)
        self.found.files[path] = row
