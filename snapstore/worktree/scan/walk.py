"""The walk: lists folders, applies the ignore rules, and collects unknown files."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Mapping, Sequence

from snapstore.base.paths import GIT_BEGINNINGS, is_git
from snapstore.base.platform import is_young
from snapstore.worktree.ignore.policy import CapturePolicy
from snapstore.worktree.ignore.rules import RuleBook
from snapstore.worktree.scan import blob_reader as reasons
from snapstore.worktree.scan.case_folding import has_twin, swapped
from snapstore.worktree.scan.rule_reader import RuleReader
from snapstore.worktree.scan.stat_cache import YOUNG, FileStat, FolderStat, StatCache

# Errors that concern one file or folder. Any other error (no descriptors, no memory) ends the scan.
GONE_ERRORS = (errno.ENOENT, errno.ENOTDIR)
FOLDER_ERRORS = (errno.EACCES, errno.EPERM, errno.EIO, errno.ELOOP, errno.ENAMETOOLONG)
IGNORE_FILES = (b".gitignore", b".snapstoreignore")


class Listing:
    """The result of a walk.

    A listing holds files that are not known yet, listed folders, and folders that have rules or attributes.
    """

    def __init__(self, attributes: Sequence[bytes] = ()) -> None:
        self.fresh: list[tuple[bytes, os.stat_result]] = []
        self.folders: dict[bytes, FolderStat] = {}
        self.left_out: dict[bytes, tuple[str, tuple[int, ...]]] = {}
        self.texts: list[tuple[bytes, bytes | None, bytes | None]] = []
        self.attributes = list(attributes)
        # The names in folders where a new name may be a known name in another case.
        self.folding: dict[bytes, list[bytes]] = {}

    def remove(self, tops: set[bytes]) -> None:
        """Remove these files and folders, with everything below the folders."""
        if not tops:
            return
        below = tuple(top + b"/" for top in tops)
        self.fresh = [file for file in self.fresh if not (file[0] + b"/").startswith(below)]
        for rows in (self.folders, self.left_out):
            for path in [path for path in rows if (path + b"/").startswith(below)]:
                del rows[path]


class Walk:
    """The walk through one root.

    A walk skips known files and folders, unless this scan found that they are gone.
    """

    def __init__(
        self,
        prefix: bytes,
        cache: StatCache,
        files: Mapping[bytes, FileStat | None],
        folders: Mapping[bytes, FolderStat | None],
        rules: RuleReader,
        policy: CapturePolicy,
    ) -> None:
        self._prefix = prefix
        self._known_files = cache.files
        self._known_folders = cache.folders
        self._files = files  # rows of this scan; None: gone
        self._folders = folders
        self._rules = rules
        self._policy = policy
        self.book: RuleBook = rules.book

    def list(self, folders: list[bytes], listing: Listing, *, whole: bool, deep: bool) -> list[bytes]:
        """List folders, and with `deep` those below; return folders found but not listed."""
        known_files, known_folders, prefix = self._known_files, self._known_folders, self._prefix
        gone_files, gone_folders = self._files, self._folders
        excluded = self._policy.excluded if self._policy.excludes else None
        store = self._policy.store
        waiting = folders
        below_waiting: list[bytes] = waiting if deep else []
        while waiting:
            folder = waiting.pop()
            if excluded is not None and folder and excluded(folder, True):
                continue
            below = folder + b"/" if folder else b""
            now = time.time_ns()
            try:
                st = os.lstat(prefix + folder)
                if not stat.S_ISDIR(st.st_mode):
                    continue
                with os.scandir(prefix + folder) as names:
                    entries = list(names)
            except OSError as error:
                if not folder or error.errno not in (*GONE_ERRORS, *FOLDER_ERRORS):
                    raise
                if error.errno in GONE_ERRORS:
                    continue
                listing.left_out[folder] = (f"{reasons.UNREADABLE}: {error.strerror}", ())
                continue
            # Mark a young folder with a negative inode, which no folder has (negative times are valid, before 1970).
            # Where times are whole seconds (exFAT, SFTP), a file moved into a folder may not change the folder's times.
            # Such a folder is listed at every scan (test_coarse_folders.py).
            inode = YOUNG if st.st_ctime_ns % 1_000_000_000 == 0 or is_young(st, now) else st.st_ino
            listing.folders[folder] = (st.st_mtime_ns, st.st_ctime_ns, inode)
            if whole or folder not in known_folders:
                listed = [entry.name for entry in entries]
                if IGNORE_FILES[0] in listed or IGNORE_FILES[1] in listed:
                    listing.texts.append((folder, *self._rules.enter(self.book, folder)))
                if b".gitattributes" in listed:
                    listing.attributes.append(folder)
            ignored = self.book.folder(folder).ignored
            if known_files and self._is_folding(below, entries):
                listing.folding[folder] = [entry.name for entry in entries]
            for entry in entries:
                name = entry.name
                path = below + name
                if path in known_files and gone_files.get(path, ()) is not None:
                    continue
                try:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder and not whole and path in known_folders and gone_folders.get(path, ()) is not None:
                        continue
                    if ignored(name, is_folder) or path == store:
                        continue
                    if name[0] in GIT_BEGINNINGS and is_git(name):
                        if name != b".git":
                            listing.left_out[path] = (reasons.BAD_NAME, ())
                    elif excluded is not None and (why := excluded(path, is_folder)) is not None:
                        mark = () if is_folder else state_mark(entry.stat(follow_symlinks=False))
                        listing.left_out[path] = (why, mark)
                    elif is_folder:
                        below_waiting.append(path)
                    else:
                        listing.fresh.append((path, entry.stat(follow_symlinks=False)))
                except OSError as error:
                    if error.errno in FOLDER_ERRORS:
                        listing.left_out[path] = (f"{reasons.UNREADABLE}: {error.strerror}", ())
                    elif error.errno not in GONE_ERRORS:
                        raise
        return below_waiting

    def _is_folding(self, below: bytes, entries: Sequence[os.DirEntry[bytes]]) -> bool:
        """Return whether a new name in a folder may be a known name in another case."""
        listed = {entry.name for entry in entries}
        for entry in entries:
            name = entry.name
            known = below + name in self._known_files or below + name in self._known_folders
            other = b"" if known else swapped(name)
            if other and other not in listed:
                try:
                    return has_twin(name, entry.stat(follow_symlinks=False), self._prefix + below)
                except OSError:
                    continue
        return False


def state_mark(st: os.stat_result) -> tuple[int, ...]:
    """Return a mark that changes when a file that is left out changes."""
    return st.st_size, st.st_mtime_ns, st.st_ino
