"""Rows of the stat cache: made from files and folders, and compared with the disk.

This module reads no content and decides nothing: a row that no longer matches only tells the scan where to look.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence

from snapstore.base.platform import is_young
from snapstore.git.objects.ids import LINK, Entry
from snapstore.worktree.scan import blob_reader as reasons
from snapstore.worktree.scan.stat_cache import UNLISTED, YOUNG, FileStat, FolderStat
from snapstore.worktree.scan.walk import FOLDER_ERRORS

ORDINARY = (0o644, 0o755, 0o664, 0o775, 0o666, 0o777)  # the permission bits that a umask leaves


def is_file(entry: Entry | None) -> bool:
    """Return whether the entry has permissions of its own: a file, not a link."""
    return entry is not None and entry[0] != LINK


def must_be_readable(root: bytes) -> None:
    """Raise OSError if the root is missing or cannot be listed.

    Recording such a root as empty would look as if all files had been removed.
    """
    if not stat.S_ISDIR(os.lstat(root).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), root)
    with os.scandir(root) as names:
        next(names, None)
    if not os.access(root, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), root)


def compare_files(
    prefix: bytes, rows: Mapping[bytes, FileStat], paths: Sequence[bytes]
) -> tuple[list[bytes], list[bytes], list[tuple[bytes, str]]]:
    """Return the known files that are gone, differ from their row, or are unreadable."""
    lstat = os.lstat
    gone: list[bytes] = []
    moved: list[bytes] = []
    unreadable: list[tuple[bytes, str]] = []
    for path in paths:
        row = rows[path]
        try:
            st = lstat(prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            gone.append(path)
            continue
        except OSError as error:
            if error.errno not in FOLDER_ERRORS:
                raise
            unreadable.append((path, f"{reasons.UNREADABLE}: {error.strerror}"))
            continue
        if (
            st.st_size != row[0]
            or st.st_mtime_ns != row[1]
            or st.st_ctime_ns != row[2]
            or st.st_ino != row[3]
            or st.st_mode != row[4]
        ):
            (gone if stat.S_ISDIR(st.st_mode) else moved).append(path)
    return gone, moved, unreadable


def compare_folders(prefix: bytes, rows: Mapping[bytes, FolderStat]) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Return the known folders that are gone, replaced, or may have new names.

    A replaced folder is no longer a folder; its path is returned with a trailing slash.
    """
    gone: list[bytes] = []
    replaced: list[bytes] = []
    moved: list[bytes] = []
    for path, row in rows.items():
        try:
            st = os.lstat(prefix + path.rstrip(b"/"))
        except (FileNotFoundError, NotADirectoryError):
            gone.append(path)
            continue
        except OSError as error:
            if not path or error.errno not in FOLDER_ERRORS:
                raise
            continue
        if not stat.S_ISDIR(st.st_mode):
            replaced.append(path.rstrip(b"/") + b"/")
        elif row != UNLISTED and (st.st_mtime_ns, st.st_ctime_ns, st.st_ino) != row:
            moved.append(path)
    return gone, replaced, moved


def private_folders(
    prefix: bytes, before: Mapping[bytes, int], rows: Mapping[bytes, FolderStat | None]
) -> dict[bytes, int]:
    """Return the folders that not everyone may enter, with their permission bits.

    The result combines the folders known before with the folders of `rows`.
    """
    found = {folder: mode for folder, mode in before.items() if rows.get(folder, UNLISTED) is not None}
    for folder, row in rows.items():
        if row is None or row == UNLISTED:
            continue
        try:
            mode = stat.S_IMODE(os.lstat(prefix + folder).st_mode) & 0o777
        except OSError:
            continue
        found.pop(folder, None)
        if folder and mode not in ORDINARY:
            found[folder] = mode
    return found


def row_of(taken: tuple[Entry, os.stat_result], now: int) -> FileStat:
    """Return the cache row for a file that was just read."""
    entry, st = taken
    size = YOUNG if is_young(st, now) else st.st_size
    return (size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino, st.st_mode, entry[0], entry[1])


def watch_parents(path: bytes) -> dict[bytes, FolderStat]:
    """Return rows for the folders above a file that no listing shows.

    For these folders a scan only checks whether they are still folders.
    """
    return {parent + b"/": UNLISTED for parent in with_parents(path)[1:]}


def through_link(prefix: bytes, path: bytes) -> bool:
    """Return whether a folder above the path is a link, or not a folder.

    A file that is reached through a link is not in the root.
    """
    # Check from the top: below a link that leads to itself, lstat raises an error.
    return any(not stat.S_ISDIR(os.lstat(prefix + parent).st_mode) for parent in reversed(with_parents(path)[1:]))


def with_parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(len(parts), 0, -1)]
