"""Verify a store: every ref, reachable object and state file.

With `read_data`, every byte of every object is verified too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from snapstore.base.paths import has_unsafe_part
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.git.objects import notes
from snapstore.git.objects.ids import COMMIT, EMPTY_TREE, FOLDER, GITLINK, TREE, Missing
from snapstore.git.program import refuse_planted
from snapstore.git.ref_names import cursor_ref
from snapstore.store.handle import StoreHandle
from snapstore.timeline.history.operations import Operations, cursor_value


class Problem:
    """One fault of a store: where it is, a message, and the name of its error."""

    __slots__ = ("error", "message", "refusal", "where")

    def __init__(self, where: str, message: str, error: str = "", refusal: SnapstoreError | None = None) -> None:
        self.where = where
        self.message = message
        self.error = error
        self.refusal = refusal

    def __repr__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(slots=True)
class Report:
    refs: int = 0
    commits: int = 0
    trees: int = 0
    blobs: int = 0
    read_data: bool = False
    problems: list[Problem] = field(default_factory=list)


class Check:
    """Checks one store; `run` goes on after a fault and returns the report."""

    def __init__(
        self, store: StoreHandle, *, read_data: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        self._store = store
        self._shadow = store.shadow
        self._report = Report(read_data=read_data)
        self._read_data = read_data
        self._progress = progress
        self._seen: set[bytes] = set()

    def run(self) -> Report:
        self._try("configuration", lambda: refuse_planted(self._shadow.git_dir))
        self._state()
        self._refs()
        return self._report

    def _state(self) -> None:
        store = self._store
        self._try("state", store.documents.header)
        self._try("state", store.open_turns)
        for number in Operations(store).damaged():
            where, message = f"operation {number}", "its record is damaged, so it cannot be undone"
            self._report.problems.append(Problem(where, message, "corrupt"))
        known: list[str] = []
        self._try("refs", lambda: known.extend(store.sessions()))
        for name in known:
            self._try("state", lambda name=name: store.documents.session(name))  # type: ignore[misc]
            self._try("refs", lambda name=name: cursor_value(store, name))  # type: ignore[misc]
        for name in store.documents.sessions():
            self._try("refs", lambda name=name: self._branch_of(name))  # type: ignore[misc]
        with store.lock:
            store.cache.load()
            if store.cache.coverage is not None and store.cache.tree:
                self._walk_tree(store.cache.tree, "the tree of the last scan")

    def _branch_of(self, session: str) -> None:
        """Raise Corrupt if somebody deleted the branch that a session stands on."""
        refs, git_dir = self._shadow.refs, self._shadow.git_dir
        branch = refs.value(cursor_ref(session))
        if isinstance(branch, str) and refs.read(branch) is None:
            raise Corrupt(
                f"{branch}, the branch of session {session}, is missing",
                f"Find its last commit with `git --git-dir {git_dir} fsck --lost-found`, and name it again: "
                f"`git --git-dir {git_dir} update-ref {branch} COMMIT`.",
                ref=branch,
            )

    def _refs(self) -> None:
        damaged: list[Corrupt] = []
        refs = self._shadow.refs.list("refs/", damaged)
        for error in damaged:
            self._problem("refs", error)
        for name, oid in refs.items():
            self._report.refs += 1
            try:
                kind, _ = self._shadow.objects.header(oid)
            except SnapstoreError as error:
                self._problem(name, error)
                continue
            if kind == TREE:
                self._walk_tree(oid, name)
            elif kind == COMMIT:
                self._walk_commits(oid, name)
        self._try("HEAD", self._head)

    def _head(self) -> None:
        head = self._shadow.refs.value("HEAD")  # a user may have detached it
        if head is None or (isinstance(head, bytes) and not self._shadow.objects.contains(head)):
            self._report.problems.append(Problem("HEAD", "HEAD is missing or damaged"))

    def _walk_commits(self, tip: bytes, where: str) -> None:
        waiting = [tip]
        while waiting:
            oid = waiting.pop()
            if oid in self._seen:
                continue
            self._seen.add(oid)
            self._report.commits += 1
            self._tick()
            try:
                if self._read_data:
                    self._shadow.objects.verify(oid)
                commit = self._shadow.commit(oid)
            except SnapstoreError as error:
                self._problem(f"{where}, commit {oid.hex()}", error)
                continue
            self._walk_tree(commit.tree, f"{where}, commit {oid.hex()[:12]}", names=where not in notes.REFS)
            waiting += commit.parents

    def _walk_tree(self, top: bytes, where: str, names: bool = True) -> None:
        waiting = [(top, b"")]
        while waiting:
            oid, prefix = waiting.pop()
            if oid in self._seen:
                continue
            self._seen.add(oid)
            self._report.trees += 1
            self._tick()
            try:
                if self._read_data and oid != EMPTY_TREE:
                    self._shadow.objects.verify(oid)
                entries = self._shadow.trees.read(oid)
            except SnapstoreError as error:
                self._problem(f"{where}, folder {os.fsdecode(prefix) or '.'}", error)
                continue
            for name, (mode, child) in entries.items():
                path = prefix + name
                if names and (has_unsafe_part(name) or b"/" in name):
                    message = f"unsafe name {os.fsdecode(path)!r}"
                    self._report.problems.append(Problem(where, message, "unsafe"))
                if mode == FOLDER:
                    waiting.append((child, path + b"/"))
                elif mode != GITLINK and child not in self._seen:
                    self._seen.add(child)
                    self._report.blobs += 1
                    self._tick()
                    self._try(f"{where}, file {os.fsdecode(path)!r}", lambda child=child: self._blob(child))  # type: ignore[misc]

    def _blob(self, oid: bytes) -> None:
        if self._read_data:
            self._shadow.objects.verify(oid)
        elif not self._shadow.objects.contains(oid):
            raise Missing(oid)

    def _tick(self) -> None:
        if self._progress is not None and len(self._seen) % 1024 == 0:
            self._progress(len(self._seen))

    def _try(self, where: str, action: Callable[[], object]) -> None:
        try:
            action()
        except SnapstoreError as error:
            self._problem(where, error)

    def _problem(self, where: str, error: SnapstoreError) -> None:
        self._report.problems.append(Problem(where, error.message, error.name, error))
