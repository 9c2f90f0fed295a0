"""Forget files or a turn: rewrite history and purge the old objects.

One change through the journal moves every ref and every document of the store to the new commits. The last part of the
change is the purge, which keeps only what refs reach, in new packs. These packs are made before the journal is written,
because making them takes space and time and may fail. A kill before the journal is complete leaves the old store. After
that point the next snapstore command finishes the change, purge included. So nobody ever sees a state in between.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from snapstore.base import files as durable
from snapstore.errors import Busy, Failed, Unknown, Unsafe
from snapstore.git import branch_descriptions
from snapstore.git.maintenance import pack_builder
from snapstore.git.maintenance.purge import Purge, refuse_writers, sweep
from snapstore.git.maintenance.repack import Packing, Repack
from snapstore.git.maintenance.rewrite import Rewrite, peel
from snapstore.git.objects.ids import BLOB, COMMIT, TREE
from snapstore.git.objects.pack_writer import HashOnlyWriter, PackWriter
from snapstore.git.program import environment, refuse_planted
from snapstore.git.ref_names import DISK_REF, MACHINES, NOTES, REMOTES, STORES
from snapstore.git.reflog import files_below
from snapstore.store import config
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.store.state import encode
from snapstore.timeline.forget import rewritten_ids
from snapstore.timeline.forget.drop import DropPaths, DropTurn
from snapstore.timeline.forget.path_selection import PathSelection
from snapstore.timeline.forget.redaction import redactor_for
from snapstore.timeline.forget.remap import Remapping
from snapstore.timeline.forget.report import Forgotten
from snapstore.timeline.maintenance import manual_git
from snapstore.worktree.scan.stat_cache import YOUNG, FileStat, FolderStat

PURGE = "purge"
WHAT = "forgetting"
_NOT_HISTORY = (MACHINES, STORES, NOTES)  # refs that say who shares, and notes, which are rewritten separately
_QUICK = 1 << 25  # bytes that can be packed while other processes wait for the lock
_UNLOCKED_ATTEMPTS = 3  # attempts that make packs without the lock


class _StoreChanged(Busy):
    """The store changed while packs were made; the attempt starts over."""


class Forget:
    """Forgets files or a turn. Nothing changes before the journal's `carry_out`."""

    def __init__(self, store: StoreHandle, progress: Callable[[int], None] | None = None) -> None:
        self._store = store
        self._shadow = store.shadow
        self._progress = progress
        self._keeps_lock = False

    def paths(
        self,
        names: Iterable[bytes] = (),
        patterns: Iterable[str] = (),
        *,
        copies: bool = False,
        recapture: bool = False,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget files, folders and `.gitignore`-style patterns in every tree and record.

        The files are never captured again, unless `recapture` is set. With `copies`, also forget the same content under
        other names.
        """
        names, patterns = list(names), list(patterns)
        selection = PathSelection(names, patterns)
        return self._with_retries(lambda: self._paths(selection, patterns, copies, recapture, dry_run))

    def _paths(
        self, selection: PathSelection, patterns: Iterable[str], copies: bool, recapture: bool, dry_run: bool
    ) -> Forgotten:
        with self._exclusive(dry_run) as writer:
            trees = self._all_trees()
            change = DropPaths(self._shadow, writer, selection.matches)
            change.collect(trees)
            if not change.paths:
                raise Unknown(
                    f"no recorded file matches {selection}",
                    "Give paths from the root, as `snapstore log --stat` shows them, or patterns as in .gitignore.",
                )
            others = change.copies()
            while copies and others:
                selection = PathSelection([*selection.names, *sorted(others)], patterns)
                change = DropPaths(self._shadow, writer, selection.matches)
                change.collect(trees)
                others = change.copies()
            forgotten = Forgotten()
            scrub, forgotten.unsearched = redactor_for(self._store, selection, change)
            change.scrub = scrub.message
            forgotten.paths, forgotten.copies = sorted(change.paths), sorted(others)
            forgotten.versions = len(change.blobs)
            forgotten.never = [] if recapture else selection.new_patterns(self._store.header.never_capture)
            remapping = Remapping(self._store, scrub=scrub, is_forgotten=selection.matches)
            self._run(forgotten, writer, change, remapping, dry_run)
        return forgotten

    def turn(self, commit: bytes, *, dry_run: bool = False) -> Forgotten:
        """Forget one turn as if it had never happened; later turns keep their own changes."""
        return self._with_retries(lambda: self._turn(commit, dry_run))

    def _turn(self, commit: bytes, dry_run: bool) -> Forgotten:
        with self._exclusive(dry_run) as writer:
            change = DropTurn(self._shadow, writer, commit)
            forgotten = Forgotten()
            forgotten.turn, forgotten.paths = commit, sorted(change.paths)
            forgotten.versions = sum(1 for entry in change.left.values() if entry is not None)
            forgotten.on_disk = self._on_disk(change)
            self._run(forgotten, writer, change, Remapping(self._store, drop_turn=change), dry_run)
        return forgotten

    # The run itself.

    def _with_retries(self, work: Callable[[], Forgotten]) -> Forgotten:
        """Run `work`, and start over if another process recorded something meanwhile.

        After `_UNLOCKED_ATTEMPTS` attempts, the last one keeps the lock while it makes packs.
        """
        for _ in range(_UNLOCKED_ATTEMPTS):
            try:
                return work()
            except _StoreChanged:
                continue
        self._keeps_lock = True
        return work()

    @contextmanager
    def _exclusive(self, dry_run: bool) -> Iterator[PackWriter]:
        """Lock the store and yield a writer; refuse while a turn is open.

        A gc must not run at the same time, because it would write forgotten objects again.
        """
        store = self._store
        with Repack(self._shadow.objects, older_than=0.0, packing=pack_builder.without_git), store.changing():
            turns = store.open_turns()
            if turns:
                raise Busy(
                    f"a turn is open in session {turns[0].session}",
                    "Nothing was forgotten. End the turn first, or cancel it with `snapstore turn cancel`.",
                    session=turns[0].session,
                )
            refuse_writers(self._shadow.objects)
            manual_git.refuse_work_trees(self._shadow.git_dir)
            self._shadow.objects.refresh()
            self._shadow.trees.start()
            writer = HashOnlyWriter() if dry_run else self._shadow.objects.writer()
            try:
                yield writer
            except BaseException:
                writer.abandon()
                raise

    def _all_trees(self) -> list[bytes]:
        """Return every tree in history, each once, oldest first."""
        commits, trees = self._tips()
        found: dict[bytes, None] = {}
        seen = set(commits)
        waiting = list(commits)
        while waiting:
            commit = self._shadow.commit(waiting.pop())
            found[commit.tree] = None
            fresh = [parent for parent in commit.parents if parent not in seen]
            seen.update(fresh)
            waiting += fresh
        self._store.cache.load()
        if self._store.cache.coverage is not None:
            found[self._store.cache.tree] = None
        return [*reversed(found), *trees]

    def _refs(self) -> dict[str, bytes]:
        found = self._shadow.refs.list("refs/")
        return {name: oid for name, oid in found.items() if not name.startswith((*_NOT_HISTORY, REMOTES))}

    def _tips(self) -> tuple[list[bytes], list[bytes]]:
        """Return the commits and trees that refs and HEAD lead to."""
        found: dict[bytes, list[bytes]] = {COMMIT: [], TREE: [], BLOB: []}
        head = self._shadow.refs.value("HEAD")  # an id if a user detached it
        for oid in dict.fromkeys([*self._refs().values(), *([head] if isinstance(head, bytes) else [])]):
            kind, at = peel(self._shadow, oid)
            found[kind].append(at)
        return list(dict.fromkeys(found[COMMIT])), found[TREE]

    def _on_disk(self, change: DropTurn) -> list[bytes]:
        writer = self._store.writer("look", [])
        return sorted(path for path, left in change.left.items() if left is not None and writer.observe(path) == left)

    def _run(
        self,
        forgotten: Forgotten,
        writer: PackWriter,
        change: DropPaths | DropTurn,
        remapping: Remapping,
        dry_run: bool,
    ) -> None:
        rewrite = Rewrite(self._shadow, writer, change)
        rewrite.commits(self._tips()[0])
        if isinstance(change, DropTurn):
            forgotten.copies = sorted(change.surviving_files(rewrite.new))
        remapping.learn(rewrite.new, rewrite.dropped)
        moves = self._ref_moves(rewrite, change)
        forgotten.lost_refs = [name for name, _, new in moves if new is None]
        # These hold the former commits of what was exchanged; the next push or pull asks the server again.
        moves += [(name, oid, None) for name, oid in self._shadow.refs.list(REMOTES).items()]
        moves += remapping.cursors(moves)
        records, notes_move = remapping.notes(writer)
        moves += notes_move
        files = remapping.files()
        files |= {"stat": None, "stat.log": None}
        cache, cache_moves = self._cache(writer, change, moves)
        moves += cache_moves
        forgotten.commits = sum(1 for old, new in rewrite.new.items() if old != new)
        forgotten.records = records
        forgotten.refs = len(moves)
        forgotten.new = {old: new for old, new in rewrite.new.items() if old != new}
        forgotten.dry_run = dry_run
        files |= rewritten_ids.updated(self._store, forgotten.new, forgotten.turn)
        header = self._store.header
        known = header.never_capture, header.config
        if forgotten.never:
            files |= self._settings(forgotten.never, keep=dry_run)
        if dry_run:
            return
        _purge(self._store).must_be_possible()  # first: a pack that was visible stays, even if the rest fails
        pack = self._shadow.objects.finish(writer)
        try:
            self._prepare(self._roots(moves))
            self._store.journal.carry_out(moves, files, what=WHAT, then=PURGE)
        except BaseException:
            if not self._store.journal.pending():
                header.never_capture, header.config = known
                self._shadow.objects.give_up(pack)
                sweep(self._shadow.objects)
            raise
        if cache is not None:
            try:
                self._store.cache.replace(*cache)
            except Exception as error:  # the next scan reads every file once
                self._store.log(f"after forgetting: {type(error).__name__}: {error}")

    def _prepare(self, roots: set[bytes]) -> None:
        """Make the new packs; release the lock meanwhile if that may take long."""
        store, objects = self._store, self._shadow.objects
        before = self._recorded()
        quick = sum(pack.size() for pack in objects.packs()) <= _QUICK
        with nullcontext() if quick or self._keeps_lock else store.lock.released():
            _purge(store).prepare(roots)
        if store.journal.pending() or self._recorded() != before:
            raise _StoreChanged("something was recorded in this store while the new packs were made")
        refuse_writers(objects)

    def _recorded(self) -> tuple[object, ...]:
        """Return a fingerprint of everything that changes when something is recorded."""
        refs, state = self._shadow.refs, self._store.state
        files = {}
        for path in files_below(state):
            name = path[len(state) + 1 :]
            if "/" in name or not name.startswith(("lock", "stat", "graph-")):
                with suppress(FileNotFoundError):
                    st = os.stat(path)
                    files[path] = (st.st_ino, st.st_mtime_ns, st.st_size)
        return refs.value("HEAD"), refs.list("refs/"), files

    def _roots(self, moves: list[RefMove]) -> set[bytes]:
        """Return the objects that refs point to after the moves."""
        refs = self._shadow.refs
        moved = {name: new for name, _, new in moves}
        names = {*refs.list("refs/"), "HEAD", *moved}
        values = {name: moved[name] if name in moved else refs.value(name) for name in names}
        return {value for value in values.values() if isinstance(value, bytes)}  # a symbolic ref leads to another one

    def _ref_moves(self, rewrite: Rewrite, change: DropPaths | DropTurn) -> list[RefMove]:
        refs = self._shadow.refs
        moves: list[RefMove] = []
        for name in [*self._refs(), "HEAD"]:
            old = refs.value(name)
            if not isinstance(old, bytes):
                continue  # a symbolic ref follows its target
            new = rewrite.ref(old, change)
            if new != old:
                moves.append((name, old, new))
        return moves

    def _cache(
        self, writer: PackWriter, change: DropPaths | DropTurn, moves: list[RefMove]
    ) -> tuple[tuple[bytes, dict[bytes, FileStat], dict[bytes, FolderStat], dict[str, object]] | None, list[RefMove]]:
        """Return the stat cache without forgotten content, and the move of its ref.

        A file that the forgotten turn wrote is marked to be read again.
        """
        cache = self._store.cache
        cache.load()
        if cache.coverage is None:
            return None, []
        tree = change.filtered(cache.tree)
        files, folders = dict(cache.files), dict(cache.folders)
        for path, _, new in self._shadow.trees.diff(cache.tree, tree):
            files.pop(path, None)
            if new is not None:
                files[path] = (YOUNG, 0, 0, 0, 0, *new)
            above = path.rpartition(b"/")[0]
            if above in folders:
                folders[above] = (YOUNG, 0, 0)  # to be listed again
        coverage = {**cache.coverage}
        if isinstance(change, DropPaths):
            left: Any = coverage["left_out"]
            coverage["left_out"] = {path: why for path, why in left.items() if path not in change.paths}
        held = self._shadow.refs.value(DISK_REF)
        others = [move for move in moves if move[0] == DISK_REF]
        if others:
            moves.remove(others[0])
        return (tree, files, folders, coverage), [(DISK_REF, held, tree)] if held != tree else []

    def _settings(self, never: list[str], *, keep: bool) -> dict[str, bytes | None]:
        """Return the config file and header with more patterns; a dry run changes neither."""
        header = self._store.header
        patterns = [*header.never_capture, *never]
        try:
            text = config.change(self._store, {"never_capture": patterns})
        except config.TooLarge as error:
            error.hint = (
                f"Nothing was forgotten: {len(never):,} names would have to be added to never_capture. Forget a folder "
                "or a pattern instead, or remove the files and add `--recapture`."
            )
            raise
        if keep:
            return {}
        header.never_capture = patterns
        header.config = None
        return {**config.journal_entry(self._store, text), "format": encode(header)}


def follow_up(store: StoreHandle, what: str) -> None:
    """Purge old objects after a forget; safe to repeat if the process is killed."""
    if what != PURGE:
        raise Failed(
            f"an unfinished change ends with the step {what!r}, which this version of snapstore does not have",
            "Update snapstore, then run the command again.",
        )
    git_dir = store.shadow.git_dir
    for name in ("logs", "ORIG_HEAD", "FETCH_HEAD"):
        path = f"{git_dir}/{name}"
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        shutil.rmtree(path, ignore_errors=True) if is_folder else durable.remove_if_there(path)
    branch_descriptions.sweep(git_dir)
    durable.sync_folder(git_dir)  # a reflog that reappears after a power cut would name objects that are gone
    _sweep(store)
    refs = store.shadow.refs
    roots = set(refs.list("refs/").values())
    head = refs.read("HEAD")
    _purge(store).run(roots | ({head} if head is not None else set()))


def _purge(store: StoreHandle) -> Purge:
    return Purge(store.shadow.objects, _packing(store), store.progress)


def _packing(store: StoreHandle) -> Packing:
    program = shutil.which("git")
    try:
        refuse_planted(store.shadow.git_dir)
    except Unsafe:
        program = None
    return pack_builder.with_git(program, environment(store.shadow.git_dir)) if program else pack_builder.without_git


def _sweep(store: StoreHandle) -> None:
    """Remove half-written files of killed processes: they may hold forgotten content."""
    for folder, folders, names in os.walk(store.state):
        top = folder == store.state
        files = [name for name in names if name.endswith(".new") or (top and name.startswith("graph-"))]
        for name in files:
            durable.remove_if_there(f"{folder}/{name}")
        merges = [name for name in folders if name.startswith("snapstore-merge-")]
        for name in merges:
            shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        if files or merges:
            durable.sync_folder(folder)  # forgotten content must not reappear after a power cut either
