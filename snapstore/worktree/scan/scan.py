"""The scan: finds how the disk differs from the stat cache.

Every known file and folder is stat-ed. A folder whose stat changed is listed for new names. Only new and changed files
are read. A change of the ignore rules lists every folder again.

Coverage: a path that is missing from the last tree was missing on disk only if the last scan could see the path.
`first_seen` holds the other new paths (ignored, left out or unknown before), whose earlier state is unknown.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from snapstore.base.paths import has_unsafe_part, is_git
from snapstore.git.objects.ids import Entry
from snapstore.worktree.ignore.never_capture import never_capture_of
from snapstore.worktree.ignore.policy import EXCLUDED, CapturePolicy
from snapstore.worktree.ignore.rules import RuleBook
from snapstore.worktree.scan import blob_reader as reasons
from snapstore.worktree.scan.blob_reader import Blobs, LeftOut
from snapstore.worktree.scan.case_folding import not_listed, spelling_on_disk
from snapstore.worktree.scan.compare import (
    compare_files,
    compare_folders,
    must_be_readable,
    private_folders,
    row_of,
    through_link,
    watch_parents,
    with_parents,
)
from snapstore.worktree.scan.found import Found
from snapstore.worktree.scan.rule_reader import RuleReader
from snapstore.worktree.scan.stat_cache import (
    YOUNG,
    FileStat,
    FolderStat,
    StatCache,
    first_seen_in,
    private_in,
    scans_in,
)
from snapstore.worktree.scan.two_processes import WORTH_IT, run_in_two
from snapstore.worktree.scan.walk import GONE_ERRORS, IGNORE_FILES, Listing, Walk, state_mark


class Hint(Protocol):
    """A source that may know a file's blob without reading the file."""

    expected: int  # approximate number of files

    def rows(
        self, files: list[tuple[bytes, os.stat_result]], folders_with_attributes: list[bytes], limit: int
    ) -> dict[bytes, FileStat]: ...


Progress = Callable[[int], None]

# The result of a walk: rows of files with known blobs, rows of folders, what was left out, folders with rules, and the
# other files.
Sorted = tuple[
    dict[bytes, FileStat],
    dict[bytes, FolderStat],
    dict[bytes, tuple[str, tuple[int, ...]]],
    list[tuple[bytes, bytes | None, bytes | None]],
    list[bytes],
]
SPREAD = 64  # split a walk once there are this many folders


class Scan:
    """One scan of one root; `run` performs the scan."""

    def __init__(
        self,
        root: bytes,
        cache: StatCache,
        blobs: Blobs,
        rules: RuleReader,
        *,
        max_file_size: int,
        hint: Hint | None = None,
        tracked: Iterable[bytes] = (),
        own: Mapping[bytes, Entry] | None = None,
        index_mark: tuple[int, ...] | None = None,
        progress: Progress | None = None,
        policy: CapturePolicy,
    ) -> None:
        self._prefix = root.rstrip(b"/") + b"/"
        self._cache = cache
        self._blobs = blobs
        self._rules = rules
        self._limit = max_file_size
        self._hint = hint
        self._tracked = tracked
        self._own = own or {}  # tracked by snapstore, but missing from the cache
        self._index_mark = index_mark  # the state of the user's index that `tracked` comes from
        self._progress = progress
        self._found = Found()
        coverage = cache.coverage
        self._blind = coverage is None
        self._was_left: dict[bytes, tuple[str, tuple[int, ...]]] = coverage["left_out"] if coverage else {}  # type: ignore[assignment]
        self._policy = policy
        self._was_never = never_capture_of(coverage)
        self._taken = 0
        self._process = os.getpid()
        self._ways = Walk(self._prefix, cache, self._found.files, self._found.folders, rules, policy)
        self._old_book: RuleBook | None = None

    def run(self) -> Found:
        found = self._found
        must_be_readable(self._prefix.rstrip(b"/") or b"/")
        moved = self._look_at_folders()
        self._look_at_files()
        self._look_at_own()
        if self._blind or self._rules.changed() or self._ignore_file_moved(moved):
            self._old_book = None if self._blind else self._ways.book
            self._ways.book = self._rules.reread()
            self._walk([b""], whole=True)
            for folder in self._cache.folders:  # now ignored or gone: no longer listed
                found.folders.setdefault(folder, None)
        else:
            self._walk(moved, whole=False)
        self._look_at_left_out()
        self._look_at_tracked()
        for path, (why, mark) in found.left_out.items():
            if self._was_left.get(path) != (why, mark):
                found.newly_left_out[path] = why
        found.coverage = {
            "left_out": found.left_out,
            "scan": scans_in(self._cache.coverage) + 1,
            "index": self._index_mark,
            "first_seen": self._unknown_since(),
            "never": self._policy.text,
            "private": private_folders(self._prefix, private_in(self._cache.coverage), found.folders),
            **self._rules.coverage(self._ways.book),
        }
        return found

    def _unknown_since(self) -> tuple[bytes, ...]:
        """Return the files found by any scan that may have existed before unseen.

        A file that disappears and comes back is known. The first scan returns nothing, since no state precedes it.
        """
        if self._blind and not self._cache.files:
            return ()
        files, found = self._cache.files, self._found.files
        before = first_seen_in(self._cache.coverage)
        still = {path for path in before if (found[path] if path in found else files.get(path)) is not None}
        return tuple(sorted(still | self._found.first_seen))

    def _look_at_files(self) -> None:
        """Stat every known file, and read those that do not match their row."""
        hidden = {*self._found.files, *self._frozen()}  # below a folder that is gone, or never captured
        paths = [path for path in self._cache.files if path not in hidden] if hidden else list(self._cache.files)

        def part(some: Sequence[bytes]) -> tuple[list[bytes], list[bytes], list[tuple[bytes, str]]]:
            return compare_files(self._prefix, self._cache.files, some)

        for gone, moved, unreadable in run_in_two(part, paths) if len(paths) >= WORTH_IT else [part(paths)]:
            for path in gone:
                self._gone(path)
            for path, why in unreadable:
                self._leave_out(path, why, ())
            for path in moved:
                self._take(path, self._cache.files[path])

    def _frozen(self) -> Collection[bytes]:
        """Leave out known files that are never captured now; trees keep their last state."""
        if not self._policy.excludes:
            return ()
        files = self._cache.files
        if self._policy.text == self._was_never.text:
            frozen = {path: why for path, (why, _) in self._was_left.items() if why in EXCLUDED and path in files}
        else:
            reasons_found = ((path, self._policy.excluded(path)) for path in files)
            frozen = {path: why for path, why in reasons_found if why is not None}
        for path, why in frozen.items():
            self._exclude(path, why)
        return frozen.keys()

    def _exclude(self, path: bytes, why: str) -> None:
        try:
            mark = state_mark(os.lstat(self._prefix + path))
        except OSError:
            mark = ()
        self._leave_out(path, why, mark)

    def _gone(self, path: bytes) -> None:
        self._found.changes[path] = None
        self._found.files[path] = None
        self._lose(path)

    def _lose(self, path: bytes) -> None:
        """Report a removed file whose content had been left out, and is lost."""
        why = self._was_left.get(path, (reasons.SPECIAL,))[0]
        if why != reasons.SPECIAL:  # sockets come and go
            self._found.lost[path] = reasons.REMOVED + why

    def _look_at_folders(self) -> list[bytes]:
        """Return the known folders whose names may have changed.

        Files below a path that is no longer a folder are gone, even if a link there leads to equal files.
        """
        gone, replaced, moved = compare_folders(self._prefix, self._cache.folders)
        self._found.folders.update(dict.fromkeys(gone))
        if replaced:
            tops = tuple(replaced)
            for path in self._cache.folders:
                if (path + b"/").startswith(tops):
                    self._found.folders[path] = None
            for path in self._cache.files:
                if path.startswith(tops):
                    self._gone(path)
            moved = [path for path in moved if not (path + b"/").startswith(tops)]
        return moved

    def _ignore_file_moved(self, folders: list[bytes]) -> bool:
        """Return whether a rule file that was captured or is in `folders` changed."""
        if any(path.rpartition(b"/")[2] in IGNORE_FILES for path in self._found.changes):
            return True
        for folder in folders:
            for name in IGNORE_FILES:
                path = folder + b"/" + name if folder else name
                if path not in self._cache.files and self._rules.differs(path):
                    return True
        return False

    def _walk(self, folders: list[bytes], *, whole: bool) -> None:
        """List folders and new ones below (with `whole`, all); capture new files."""
        if self._hint is not None and self._hint.expected >= WORTH_IT:
            top = Listing()
            while folders and len(folders) < SPREAD:
                folders = self._ways.list(folders, top, whole=whole, deep=False)

            def part(some: Sequence[bytes]) -> Sorted:
                listing = Listing(top.attributes)
                self._ways.list(list(some), listing, whole=whole, deep=True)
                return self._sort_out(listing)

            # Alternate: neighbouring folders have similar sizes.
            parts = [self._sort_out(top), *run_in_two(part, folders[::2] + folders[1::2])]
        else:
            listing = Listing()
            self._ways.list(folders, listing, whole=whole, deep=True)
            if listing.folding:
                self._look_at_spellings(listing)
            parts = [self._sort_out(listing)]
        for rows, folder_rows, left_out, texts, others in parts:
            self._found.folders.update(folder_rows)
            self._found.left_out.update(left_out)
            for folder, git_text, own_text in texts:
                self._ways.book.add(folder, git_text, own_text)
            self._found.files.update(rows)
            self._found.hinted.update(rows)
            for path in others:
                self._take_new(path)

    def _look_at_spellings(self, listing: Listing) -> None:
        """Treat known names that no folder lists as gone: they are old spellings."""
        known = [*self._cache.files, *(folder for folder in self._cache.folders if folder)]
        unlisted = not_listed((path.rstrip(b"/") for path in known), listing.folding)
        for path in known if unlisted else ():
            if unlisted.intersection(with_parents(path.rstrip(b"/"))):
                if path in self._cache.files and self._found.left_out.get(path, ("",))[0] not in EXCLUDED:
                    self._gone(path)
                if path in self._cache.folders:
                    self._found.folders[path] = None
        listing.remove(unlisted)

    def _sort_out(self, listing: Listing) -> Sorted:
        """Convert a listing to plain data: rows of files with known blobs, then the rest."""
        rows: dict[bytes, FileStat] = {}
        if self._hint is not None:
            rows = self._hint.rows(listing.fresh, listing.attributes, self._limit)
        others = [path for path, _ in listing.fresh if path not in rows]
        texts = listing.texts if os.getpid() != self._process else []  # in this process the book already has them
        return rows, listing.folders, listing.left_out, texts, others

    def _take_new(self, path: bytes) -> None:
        self._taken += 1
        if self._progress is not None and self._taken % 256 == 0:
            self._progress(self._taken)
        self._take(path, None)
        if self._found.changes.get(path) is not None and not self._was_covered(path):
            self._found.first_seen.add(path)

    def _was_covered(self, path: bytes) -> bool:
        """Return whether the last scan would have seen a file at this path."""
        if self._blind or (self._old_book or self._ways.book).ignored(path, False) or self._was_never.matches(path):
            return False
        return not self._was_left or not any(part in self._was_left for part in with_parents(path))

    def _look_at_left_out(self) -> None:
        """Check the files left out before, because one of them may be readable now."""
        for path in self._was_left:
            if path in self._found.left_out or path in self._found.files or path in self._cache.files:
                continue
            try:
                st = os.lstat(self._prefix + path)
            except OSError as error:
                if error.errno not in GONE_ERRORS:
                    self._found.left_out[path] = self._was_left[path]
                else:
                    self._lose(path)
                continue
            if self._ways.book.ignored(path, stat.S_ISDIR(st.st_mode)):
                continue
            why = self._policy.excluded(path, stat.S_ISDIR(st.st_mode))
            if why is not None:
                self._leave_out(path, why, () if stat.S_ISDIR(st.st_mode) else state_mark(st))
            elif stat.S_ISDIR(st.st_mode):
                self._walk([path], whole=False)
            elif is_git(path.rpartition(b"/")[2]):
                self._leave_out(path, reasons.BAD_NAME, ())
            else:
                self._take_new(path)

    def _look_at_tracked(self) -> None:
        """Capture the files that the user's git tracks, whatever the rules say."""
        for path in self._tracked:
            if path in self._found.files or path in self._found.left_out or path in self._cache.files:
                continue
            if has_unsafe_part(path):
                continue
            try:
                st = os.lstat(self._prefix + path)
            except OSError:
                continue
            if (
                stat.S_ISDIR(st.st_mode)
                or through_link(self._prefix, path)
                or spelling_on_disk(self._prefix, path) != path
            ):
                continue
            why = self._policy.excluded(path)
            if why is not None:
                self._exclude(path, why)
            else:
                self._take_new(path)
                self._found.folders.update(watch_parents(path))

    def _look_at_own(self) -> None:
        """Compare the files that are in snapstore's tree but not in the cache."""
        found = self._found
        for path, entry in sorted(self._own.items()):
            if path in found.files or path in self._cache.files or has_unsafe_part(path):
                continue
            try:
                if through_link(self._prefix, path) or spelling_on_disk(self._prefix, path) != path:
                    continue
            except OSError:
                continue
            row = (YOUNG, 0, 0, 0, 0, *entry)
            why = self._policy.excluded(path)
            if why is not None:
                self._exclude(path, why)
            else:
                self._take(path, row)
            if path in found.changes and found.changes[path] is None:
                del found.changes[path], found.files[path]  # neither on disk nor in the cache's tree: no change
            else:
                found.changes.setdefault(path, entry)
                found.files.setdefault(path, row)
                found.folders.update(watch_parents(path))

    def _take(self, path: bytes, row: FileStat | None) -> None:
        """Read a new or changed file into the store."""
        now = time.time_ns()
        old: Entry | None = row[5:7] if row else None
        try:
            taken = self._blobs.take(path, old and old[1], self._limit)
        except LeftOut as left:
            why = str(left.args[0])
            self._leave_out(path, why, left.args[1] if len(left.args) > 1 else ())
            if row is not None and why == reasons.SPECIAL:
                self._gone(path)  # the path is no longer a file
            return
        if taken is None:
            if row is not None:
                self._gone(path)
            return
        entry = taken[0]
        self._found.files[path] = row_of(taken, now)
        if entry != old:
            self._found.changes[path] = entry
            if row is not None and path in self._was_left:
                self._found.first_seen.add(path)

    def _leave_out(self, path: bytes, why: str, mark: tuple[int, ...]) -> None:
        self._found.left_out[path] = (why, mark)
