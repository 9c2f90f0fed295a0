"""Access to folders by descriptor and to files below them, never following a link.

Each folder is opened from its parent, from the root down, and every operation is relative to such a descriptor. A link
that is swapped into a path can therefore not lead a read, a write or a delete outside the root. Paths are requested in
sorted order, so the folders from the root to the last one stay open, and a thousand files of one folder cost one open.

A descriptor refers to the folder that was opened, even if the folder is moved meanwhile. A caller that must be sure
that the path still leads to the folder calls `close` and enters the folder again.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Mapping
from hashlib import sha1

from snapstore.base.paths import LONGEST_PATH, has_unsafe_part
from snapstore.base.platform import READ_FLAGS, is_mtime_young, is_young
from snapstore.errors import Unsafe
from snapstore.git.objects.ids import BLOB, CHUNK, LINK, Entry, file_mode, object_id
from snapstore.git.objects.store import LARGE
from snapstore.worktree.scan.case_folding import may_be_one, swapcase_stat

# The states of a path with something other than a readable file or link. They are texts, so that none equals an entry.
FOLDER_THERE = "a folder"
SPECIAL_THERE = "not a file, link or folder"
UNREADABLE_THERE = "a file that cannot be read"
CHANGING_THERE = "a file that kept changing while it was read"
LINK_IN_THE_WAY = "a link in place of a folder above it"
FILE_IN_THE_WAY = "a file in place of a folder above it"
OTHER_CASE_THERE = "a file or folder whose name differs only in case"

State = Entry | str | None
# Files that were read: the stat they were read under, and their entry.
Known = dict[bytes, tuple[tuple[int, ...], Entry]]

_TRIES = 3
_MOST_OPEN = 16  # a legal path may have two thousand folders
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CANNOT_READ = (errno.EACCES, errno.EPERM, errno.EIO)
_OTHER_KIND_NOW = (errno.ELOOP, errno.EINVAL, errno.ENXIO)  # a link, no link, a socket: replaced since its stat
_NOT_THERE = (errno.ENOENT, errno.ENAMETOOLONG)


class InTheWay(Exception):
    """A part of a path is not a folder; `state` says what it is."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class _Changed(Exception):
    """The file changed while it was read."""


class SafeDirs:
    """Opens the folders of one root, top down.

    Names are not trusted: no part may lead up or into `.git`.
    """

    def __init__(self, root: bytes, known: Known | None = None) -> None:
        self._root = root
        self._identity: tuple[int, int] | None = None  # device and inode of the root when it was first entered
        self._open: list[tuple[bytes, int]] = []  # from the root to the last folder entered; some may be left out
        self._safe: set[bytes] = set()
        self._misspelled: set[bytes] = set()  # folders entered by another spelling of their name
        self._names: dict[bytes, set[bytes]] = {}  # the names in folders where the spelling had to be checked
        self._known: Known = {} if known is None else known

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        self._misspelled.clear()
        self._names.clear()
        while self._open:
            os.close(self._open.pop()[1])

    # Folders.

    def enter(self, folder: bytes) -> int:
        """Return a descriptor of the folder that is valid until the next call.

        Raise FileNotFoundError if the folder is missing.
        """
        if not self._open:
            self._open.append((b"", self._open_root()))
        at, fd = self._open[-1]
        if at == folder:
            return fd
        if folder:
            self.check(folder)
        while at and at != folder and not folder.startswith(at + b"/"):
            os.close(self._open.pop()[1])
            at, fd = self._open[-1]
        while at != folder:
            start = len(at) + 1 if at else 0
            end = folder.find(b"/", start)
            end = len(folder) if end < 0 else end
            name, above, up = folder[start:end], at, fd
            fd = _open_folder(name, up)
            at = folder[:end]
            self._open.append((at, fd))
            if self._is_other_spelling(name, os.fstat(fd), swapcase_stat(name, up), above, up):
                self._misspelled.add(at)
            if len(self._open) > _MOST_OPEN:
                os.close(self._open.pop(1)[1])
        return fd

    def nearest(self, folder: bytes) -> bytes:
        """Return the folder itself or its deepest existing parent."""
        try:
            self.enter(folder)
        except (FileNotFoundError, InTheWay):
            pass
        at = self._open[-1][0]
        while self._is_misspelled(at):
            at = at.rpartition(b"/")[0]
        return at

    def make(self, folder: bytes, made: set[bytes], modes: Mapping[bytes, int]) -> int:
        """Enter the folder, making missing folders.

        The folders that are made are added to `made`, and get their mode from `modes` if known.
        """
        while True:
            try:
                return self.enter(folder)
            except FileNotFoundError:
                at, fd = self._open[-1]
            start = len(at) + 1 if at else 0
            end = folder.find(b"/", start)
            child = folder if end < 0 else folder[:end]
            mode = modes.get(child)
            made.add(child)  # before mkdir, so that an interruption cannot leave a folder that is not in `made`
            try:
                os.mkdir(child[start:], 0o777 if mode is None else 0o700, dir_fd=fd)
            except FileExistsError:
                made.discard(child)
                continue
            if mode is not None:
                os.fchmod(self.enter(child), mode)

    def _is_misspelled(self, path: bytes) -> bool:
        """Return whether the path or a parent was entered by another spelling."""
        return any((path + b"/").startswith(folder + b"/") for folder in self._misspelled)

    def _is_other_spelling(
        self, name: bytes, st: os.stat_result, twin: os.stat_result | None, folder: bytes, fd: int
    ) -> bool:
        """Return whether the file found by `name` has another spelling in its folder."""
        if twin is None or not may_be_one(twin, st):
            return False
        if name not in self._names.get(folder, ()):  # it may have been made since the folder was listed
            self._names[folder] = set(map(os.fsencode, os.listdir(fd)))
        return name not in self._names[folder]

    def _open_root(self) -> int:
        try:
            fd = os.open(self._root, _FOLDER_FLAGS)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise self._other_root() from None
            raise
        st = os.fstat(fd)
        identity = (st.st_dev, st.st_ino)
        if self._identity not in (None, identity):
            os.close(fd)
            raise self._other_root()
        self._identity = identity
        return fd

    def _other_root(self) -> Unsafe:
        name = os.fsdecode(self._root)
        return Unsafe(
            f"{name} was moved or replaced by something else",
            "Put the original folder back, then run this again.",
            path=name,
        )

    def check(self, path: bytes) -> None:
        """Refuse a path that must not be followed or written."""
        if path not in self._safe:
            if has_unsafe_part(path) or len(path) > LONGEST_PATH:
                raise unsafe_path(path)
            self._safe.add(path)

    # Files.

    def observe(self, path: bytes) -> tuple[State, os.stat_result | None]:
        """Return the state at a path and its stat; an unreadable file is a state too."""
        try:
            return self.look(path)
        except OSError as error:
            if error.errno in _CANNOT_READ:
                return UNREADABLE_THERE, None
            raise

    def look(self, path: bytes) -> tuple[State, os.stat_result | None]:
        """Return the state at a path and its stat; raise OSError if it cannot be read.

        Callers that write use this method, because they must not go on if a file cannot be read.

        A file that was read before is not read again while its stat stays the same, unless the file was young when it
        was read: a young file can be rewritten without a change of its stat.
        """
        st: os.stat_result | None = None
        try:
            folder, name = self._split(path)
            for _ in range(_TRIES):
                above, twin = path[: -len(name) - 1], swapcase_stat(name, folder)
                # Keep this stat the last system call: later edits are not noticed.
                st = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if self._is_misspelled(above) or self._is_other_spelling(name, st, twin, above, folder):
                    return OTHER_CASE_THERE, None
                odd = _odd(st)
                if odd is not None:
                    return odd, st
                known = self._known.get(path)
                if known is not None and known[0] == _marks(st):
                    return known[1], st
                try:
                    return self._read(folder, name, path, st), st
                except _Changed:
                    continue
                except OSError as error:
                    if error.errno not in _OTHER_KIND_NOW:
                        raise
        except InTheWay as way:
            return way.state, None
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None, None
            raise
        return CHANGING_THERE, st

    def is_still(self, folder: int, name: bytes, st: os.stat_result, entry: Entry) -> bool:
        """Return whether a renamed file is still the one that was checked.

        If the stat is not conclusive, the content is read again.
        """
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if _odd(now) is not None:
            return False
        if _marks_but_ctime(now) == _marks_but_ctime(st) and not is_mtime_young(now, time.time_ns()):
            return True
        try:
            return self._content(folder, name, now) == entry
        except _Changed:
            return False

    def read(self, path: bytes, limit: int, *, link: bool) -> bytes | None:
        """Return the first bytes of a file, or the target of a link.

        Return None if the path is gone or of another kind now.
        """
        try:
            folder, name = self._split(path)
            if link:
                return os.readlink(name, dir_fd=folder)
            fd = os.open(name, READ_FLAGS, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return None
                with open(fd, "rb", closefd=False) as file:
                    return file.read(limit)
            finally:
                os.close(fd)
        except InTheWay:
            return None
        except OSError as error:
            if error.errno in (*_NOT_THERE, *_OTHER_KIND_NOW):
                return None
            raise

    def glance(self, path: bytes) -> str | None:
        """Return a text state, or None for a file, a link or nothing; read no content."""
        try:
            folder, name = self._split(path)
            return _odd(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except InTheWay as way:
            return way.state
        except FileNotFoundError:
            return None

    def _split(self, path: bytes) -> tuple[int, bytes]:
        self.check(path)
        folder, _, name = path.rpartition(b"/")
        return self.enter(folder), name

    def _read(self, folder: int, name: bytes, path: bytes, st: os.stat_result) -> Entry:
        now = time.time_ns()
        entry = self._content(folder, name, st)
        if not is_young(st, now):
            self._known[path] = _marks(st), entry
        return entry

    def _content(self, folder: int, name: bytes, st: os.stat_result) -> Entry:
        if stat.S_ISLNK(st.st_mode):
            entry = LINK, object_id(BLOB, os.readlink(name, dir_fd=folder))
            after = os.stat(name, dir_fd=folder, follow_symlinks=False)
        else:
            fd = os.open(name, READ_FLAGS, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise _Changed  # replaced since its stat: a folder or a fifo cannot be read
                entry = file_mode(st.st_mode), _hash(fd, st.st_size)
                after = os.fstat(fd)
            finally:
                os.close(fd)
        if _marks(after) != _marks(st):
            raise _Changed
        return entry


def unsafe_path(path: bytes) -> Unsafe:
    shown = os.fsdecode(path)
    return Unsafe(
        f"{shown!r} is not a path that may be written", "The commit that contains it cannot be restored.", path=shown
    )


def _open_folder(name: bytes, above: int) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    link = stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    raise InTheWay(LINK_IN_THE_WAY if link else FILE_IN_THE_WAY)


def _odd(st: os.stat_result) -> str | None:
    if stat.S_ISDIR(st.st_mode):
        return FOLDER_THERE
    return None if stat.S_ISREG(st.st_mode) or stat.S_ISLNK(st.st_mode) else SPECIAL_THERE


def _marks(st: os.stat_result) -> tuple[int, ...]:
    return st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino, st.st_mode


def _marks_but_ctime(st: os.stat_result) -> tuple[int, ...]:
    return st.st_size, st.st_mtime_ns, st.st_ino, st.st_mode


def _hash(fd: int, size: int) -> bytes:
    if size <= LARGE:
        data = os.read(fd, size + 1)
        if len(data) == size:
            return object_id(BLOB, data)
        os.lseek(fd, 0, os.SEEK_SET)  # a short read, or the file is changing
    digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
    seen = 0
    while piece := os.read(fd, CHUNK):
        seen += len(piece)
        if seen > size:  # the file grows as fast as it is read
            break
        digest.update(piece)
    if seen != size:
        raise _Changed
    return digest.digest()
