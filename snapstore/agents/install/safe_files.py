"""Read agents' files carefully, and write each completely or not at all.

A symbolic link is followed: the file it points to is replaced, and the link stays. The new content is written to a
temporary file next to the target, gets the target's mode, and is synced. Then the target is compared once more with
what was read, and replaced by a rename.
"""

from __future__ import annotations

import json
import os
import stat

from xxhash import xxh3_64_hexdigest

from snapstore.base import files, platform
from snapstore.errors import Conflict, Failed, SnapstoreError, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST = 10_000_000  # bytes; no settings file is larger
BACKUP, NEW = ".snapstore-backup", ".snapstore-new"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
UNCHANGED = "Nothing was changed; fix the problem and run this again."


class Found:
    """A file as found: its real path, its bytes (None if absent), and its status."""

    __slots__ = ("data", "path", "status", "target")

    def __init__(self, path: str, target: str, data: bytes | None, status: os.stat_result | None) -> None:
        self.path = path
        self.target = target
        self.data = data
        self.status = status


class Change:
    """The new content of a file, or None to delete the file.

    `mode` applies to a new file. `keep` asks for a backup of the old content. `drop` deletes a backup that is no longer
    needed.
    """

    __slots__ = ("after", "drop", "found", "keep", "mode")

    def __init__(
        self, found: Found, after: bytes | None, *, mode: int = 0o600, keep: bool = False, drop: bool = False
    ) -> None:
        self.found = found
        self.after = after
        self.mode = mode
        self.keep = keep
        self.drop = drop

    @property
    def backup(self) -> str | None:
        """Return the path of the backup, or None if no backup is made."""
        return self.found.target + BACKUP if self.keep else None


def look(path: str, within: str | None = None) -> Found:
    """Read a file; raise Unsafe if it is not regular or lies outside `within`."""
    target = os.path.realpath(path)
    if within is not None and not target.startswith(os.path.realpath(within).rstrip("/") + "/"):
        raise Unsafe(
            f"{path} leads out of the project, to {target}",
            "Replace that link with a file of the project, or use --user.",
        )
    try:
        return Found(path, target, *_content(target))
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}", UNCHANGED) from error


def carry_out(changes: Sequence[Change], notes: str) -> None:
    """Apply all changes, or none.

    `notes` is a folder of ours that records which folders were created for a file.
    """
    done: list[Change] = []
    try:
        for change in changes:
            done.append(change)
            _place(change, notes)
    except BaseException as error:
        for change in reversed(done):
            _revert(change, notes)
        if isinstance(error, OSError):
            raise Failed(f"{change.found.path} cannot be written: {error.strerror}", UNCHANGED) from error
        raise
    for change in reversed(changes):  # in reverse order of creation: the innermost folders of the last file first
        if change.drop:
            files.remove(change.found.target + BACKUP)
        if change.after is None:
            _remove_folders(change.found.target, notes)


def _place(change: Change, notes: str) -> None:
    found = change.found
    if change.after == found.data:
        return
    if change.after is None:
        _check(found.target, found.data)
        os.unlink(found.target)
        files.sync_folder(os.path.dirname(found.target))
        return
    if found.data is None:
        _make_folders(found.target, notes, private=not change.mode & 0o077)
    elif change.keep:
        _write(found.target + BACKUP, found.data, found.status)
    _write(found.target, change.after, found.status, mode=change.mode, before=found)


def _write(
    target: str, data: bytes, status: os.stat_result | None, *, mode: int = 0o600, before: Found | None = None
) -> None:
    temporary = target + NEW
    files.remove(temporary)  # left by a killed run, or planted
    fd = os.open(temporary, _FLAGS, mode if status is None else 0o600)
    try:
        try:
            files.write_all(fd, data)
            if status is not None:
                if (status.st_uid, status.st_gid) != (os.geteuid(), os.fstat(fd).st_gid):
                    os.fchown(fd, status.st_uid, status.st_gid)
                os.fchmod(fd, stat.S_IMODE(status.st_mode))
            os.fsync(fd)
        finally:
            os.close(fd)
        if before is not None:
            _check(target, before.data)
        os.rename(temporary, target)
    except BaseException:
        files.remove(temporary)
        raise
    files.sync_folder(os.path.dirname(target))


def _check(target: str, expected: bytes | None) -> None:
    if _content(target)[0] != expected:
        raise Conflict(f"{target} was changed by another program just now", "Nothing was written; run this again.")


def _content(target: str) -> tuple[bytes | None, os.stat_result | None]:
    try:
        fd = os.open(target, platform.READ_FLAGS)
    except FileNotFoundError:
        return None, None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise Unsafe(f"{target} is not an ordinary file", "Move it away, then run this again.")
    with open(fd, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unsafe(f"{target} is larger than {LARGEST // 1_000_000} MB, too large for settings", "Check its content.")
    return data, status


def _revert(change: Change, notes: str) -> None:
    """Undo a change as far as possible, on a disk that has just failed."""
    found = change.found
    try:
        if _content(found.target)[0] == change.after:
            if found.data is not None:
                _write(found.target, found.data, found.status, mode=change.mode)
            elif change.after is not None:
                os.unlink(found.target)
        if change.keep:
            files.remove(found.target + BACKUP)
        if found.data is None:
            _remove_folders(found.target, notes)
    except (OSError, SnapstoreError):
        pass


def _make_folders(target: str, notes: str, *, private: bool) -> None:
    missing: list[str] = []
    folder = os.path.dirname(target)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    if not missing:
        return
    made = [folder for folder in _made(target, notes) if folder not in missing]  # folders made by a killed run
    files.write(_note(target, notes), json.dumps(missing + made).encode())
    for folder in reversed(missing):
        os.mkdir(folder, 0o700 if private else 0o777)
        files.sync_folder(os.path.dirname(folder))


def _remove_folders(target: str, notes: str) -> None:
    """Remove the folders that were created for this file, as far as they are empty."""
    for folder in _made(target, notes):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            break
    files.remove(_note(target, notes))


def _made(target: str, notes: str) -> list[str]:
    """Return the folders that were created for a file, innermost first."""
    try:
        with open(_note(target, notes), "rb") as file:
            return [folder for folder in json.load(file) if target.startswith(f"{folder}/")]
    except (OSError, ValueError, TypeError):
        return []


def _note(target: str, notes: str) -> str:
    return f"{notes}/{xxh3_64_hexdigest(os.fsencode(target))}"
