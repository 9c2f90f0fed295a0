"""Save before a move: content that is on disk only, and results of merges."""

from __future__ import annotations

import os

from snapstore.errors import Conflict
from snapstore.git.objects import commits
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, TREE
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.trees import letter
from snapstore.git.ref_names import SAFETY
from snapstore.git.repository import SNAPSTORE
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.timeline.capture.disk_snapshot import Capture
from snapstore.timeline.capture.stored_objects import ReachableObjects
from snapstore.timeline.moves.plan import SAFETY_KIND, PathMove, Plan
from snapstore.worktree.scan.blob_reader import Blobs, LeftOut


class Saved:
    """What was saved: the pack, the commit of the disk, and the ref that will hold it."""

    __slots__ = ("commit", "pack", "ref", "refs")

    def __init__(self) -> None:
        self.pack: str | None = None
        self.commit: bytes | None = None
        self.ref: str | None = None
        self.refs: list[RefMove] = []


def save(store: StoreHandle, plan: Plan, number: int, what: str) -> Saved:
    """Save what a plan would replace. Call under the store's lock.

    No ref leads to the saved objects before the journal is written.
    """
    saver = _Saver(store, plan, number, what)
    if not plan.saves and saver.all_stored():
        return Saved()
    return saver.run()


def stale(why: str) -> Conflict:
    """Return the refusal of a plan that no longer fits what is on disk or in the store."""
    return Conflict(f"the plan is out of date: {why}", "Nothing was written. Run the command again.", stale=True)


class _Saver:
    def __init__(self, store: StoreHandle, plan: Plan, number: int, what: str) -> None:
        self._store = store
        self._shadow = store.shadow
        self._plan = plan
        self._number = number
        self._what = what

    def all_stored(self) -> bool:
        """Return whether the store holds what the move replaces and what it writes."""
        if any(move.merged is not None for move in self._plan.paths):
            return False
        held = ReachableObjects(self._store)
        held.trust(self._shadow.commit(self._plan.start).tree)
        found = [(move.path, move.found[1]) for move in self._plan.changing if isinstance(move.found, tuple)]
        return all(held.has(path, oid, large=True) for path, oid in found)

    def run(self) -> Saved:
        plan, saved = self._plan, Saved()
        capture = Capture(self._store)
        writer = capture.writer
        try:
            disk = self._scan(capture) if plan.exact else None
            capture.held.trust(self._shadow.commit(plan.start).tree)
            blobs = Blobs(self._store.root, writer, capture.held)
            for move in plan.paths:
                if move.merged is not None:
                    writer.add(BLOB, move.merged)
                if isinstance(move.found, tuple) and move.found[1] not in writer:
                    self._save_file(capture.held, blobs, move)
            if plan.saves:
                self._commit_saved(writer, disk, saved)
            saved.pack = self._shadow.objects.finish(writer)
        except BaseException:
            writer.abandon()
            raise
        return saved

    def _scan(self, capture: Capture) -> bytes:
        disk = capture.scan(self._shadow.commit(self._plan.start).tree)
        if disk != self._plan.source:
            raise stale("files changed since the plan was made")
        return disk

    def _save_file(self, held: ReachableObjects, blobs: Blobs, move: PathMove) -> None:
        assert isinstance(move.found, tuple)
        if held.has(move.path, move.found[1], large=True):
            return
        try:
            taken = blobs.take(move.path)
        except LeftOut as error:
            raise stale(f"{os.fsdecode(move.path)} cannot be saved first: {error.args[0]}") from None
        if taken is None or taken[0] != move.found:
            raise stale(f"{os.fsdecode(move.path)} changed since the plan was made")

    def _commit_saved(self, writer: PackWriter, disk: bytes | None, saved: Saved) -> None:
        """Commit what is on disk in the move's paths, on top of the cursor.

        Results of merges get a second commit, because no turn has them yet and undoing the move would lose them.
        """
        plan, trees = self._plan, self._shadow.trees
        start = self._shadow.commit(plan.start).tree
        found = {move.path: move.found for move in plan.paths if not isinstance(move.found, str)}
        before = trees.rewrite(writer, disk or start, found)
        saved.ref = f"{SAFETY}{plan.session}/{self._number}"
        saved.commit = self._commit(writer, f"On disk before {self._what}", start, before, plan.start)
        saved.refs.append((saved.ref, None, saved.commit))
        if any(move.merged is not None for move in plan.paths):
            after = trees.rewrite(writer, before, {move.path: move.new for move in plan.file_moves()})
            made = self._commit(writer, f"Made by {self._what}", before, after, saved.commit)
            saved.refs.append((f"{saved.ref}-merged", None, made))

    def _commit(self, writer: PackWriter, subject: str, old: bytes, tree: bytes, parent: bytes) -> bytes:
        if tree == EMPTY_TREE:
            writer.add(TREE, b"")  # git knows the empty tree without storing it, but `git fsck` wants to find it
        changes = [(letter(change), change[0]) for change in self._shadow.trees.diff(old, tree)]
        trailers = {"Kind": SAFETY_KIND, "Session": self._plan.session, "Operation": self._number}
        text = commits.message(subject, changes, trailers)
        seconds = max(0, int(self._store.clock()))
        return writer.add(COMMIT, commits.encode(tree, [parent], self._store.user, SNAPSTORE, seconds, text))
