"""The temporary files of a move: new contents beside their targets.

Before the first target is replaced, the temporary files and the files that they replace are synced. Then the journal
marks the move as staged. Only after this mark can a temporary file hold bytes of another program: a file and its
temporary file swap places, so whatever another program saved at that moment is swapped out. A temporary file of an
unstaged move is always snapstore's, complete or torn by a power cut, and is deleted. In a staged move all of
snapstore's bytes were on disk, so a temporary file with other bytes belongs to another program (test_powercut.py,
test_exchange.py).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from snapstore.base.files import sync_open_folder, write_all
from snapstore.base.platform import READ_FLAGS, SYNC_AT_ONCE, copy_attributes, file_system_sync
from snapstore.errors import SnapstoreError
from snapstore.git.objects.ids import CHUNK, EXECUTABLE, LINK, Entry
from snapstore.git.objects.store import LARGE
from snapstore.worktree.write import atomic_swap
from snapstore.worktree.write.file_moves import Contents, FileMove, above
from snapstore.worktree.write.safe_dirs import InTheWay, SafeDirs

# One file to change: path, present state, wanted state.
Step = tuple[bytes, Entry | None, Entry | None]
# The new content of one file: path, present state, and the temporary file's folder, name and stat.
Ready = tuple[bytes, Entry | None, bytes, bytes, os.stat_result]

# The file is missing and will be restored; or a link or a socket is in its place.
_NO_FILE_NOW = (errno.ENOENT, errno.ELOOP, errno.ENXIO)
# Skip zeros in a large file that was sparse, or where this is unknown: a disk image of 100 GB may hold 1 GB.
_ZEROS = bytes(CHUNK)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TempFiles:
    """The temporary files of one move; their names carry the move's tag.

    A temporary file lies beside its target, or in the deepest existing folder above it.
    """

    def __init__(self, root: bytes, contents: Contents, tag: str) -> None:
        self.prefix = b".snapstore-%s-" % tag.encode()
        self._contents = contents
        self._folders = SafeDirs(root)
        self._order: list[bytes] = []  # the move's paths; the number of a temporary file identifies its path
        self._numbers: dict[bytes, int] = {}
        self._entries: dict[bytes, tuple[Entry | None, Entry | None]] = {}
        self._rounds = 0

    def close(self) -> None:
        self._folders.close()

    def enter(self, folder: bytes) -> int:
        """Return a descriptor of a folder that holds temporary files."""
        return self._folders.enter(folder)

    def set_moves(self, moves: Iterable[FileMove]) -> None:
        """Set the moves that the temporary files belong to."""
        self._entries = {move.path: (move.old, move.new) for move in moves}
        self._order = sorted(self._entries)
        self._numbers = {path: number for number, path in enumerate(self._order)}

    def name(self, path: bytes) -> bytes:
        """Return the name of a path's temporary file in this round."""
        return b"%s%d" % (self.prefix, self._rounds * len(self._order) + self._numbers[path])

    def sweep(self, folders: Iterable[bytes], *, staged: bool | None, known_only: bool = False) -> bool:
        """Remove temporary files left by a kill or failure; return whether any were found.

        If the move was staged, a temporary file with content that another program saved during the swap is put back. If
        it is unknown whether the move was staged (`staged` is None), a temporary file with the beginning of the
        expected content is a torn write of snapstore's. With `known_only`, a temporary file is removed only if the
        store has its content.
        """
        found = False
        for folder in sorted(folders):
            try:
                fd = self._folders.enter(folder)
            except (FileNotFoundError, InTheWay):
                continue
            with os.scandir(fd) as entries:
                numbers = [number for entry in entries if (number := self._number(os.fsencode(entry.name))) is not None]
            for number in numbers:
                if known_only:
                    self._remove_known(number, fd)
                else:
                    self._sweep(number, folder, fd, staged)
                found = True
        return found

    def _sweep(self, number: int, folder: bytes, fd: int, staged: bool | None) -> None:
        name = b"%s%d" % (self.prefix, number)
        rounds, at = divmod(number, max(len(self._order), 1))
        self._rounds = max(self._rounds, rounds)  # new names must not collide with files that cannot be removed
        path = self._order[at] if self._order else b""
        theirs = staged is not False and path and above(path) == folder and not self._is_known(name, fd, path)
        if theirs and not (staged is None and self._is_known(name, fd, path, torn=True)):
            self._put_back(name, fd, path)
        try:
            if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            pass  # the file was put back

    def _remove_known(self, number: int, fd: int) -> None:
        name = b"%s%d" % (self.prefix, number)
        path = self._order[number % len(self._order)] if self._order else b""
        try:
            if path and self._is_known(name, fd, path, damaged=False):
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            pass

    def _put_back(self, name: bytes, fd: int, path: bytes) -> None:
        target = path.rpartition(b"/")[2]
        try:
            there = os.stat(target, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            atomic_swap.place(fd, name, fd, target)
            return
        if self._is_known(target, fd, path):  # otherwise another program has saved it again
            atomic_swap.put_back(fd, name, fd, target, there)

    def _is_known(self, name: bytes, fd: int, path: bytes, *, torn: bool = False, damaged: bool = True) -> bool:
        """Return whether a file holds the content of its path before or after the move.

        With `torn`, the beginning of that content followed by zeros counts too. `damaged` is the result if the store
        cannot be read; the default, True, means that nothing is put back then.
        """
        try:
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            return any(
                self._holds(name, fd, st, entry[1], torn=torn)
                for entry in self._entries[path]
                if entry is not None and (entry[0] == LINK) == stat.S_ISLNK(st.st_mode)
            )
        except SnapstoreError:
            return damaged

    def _holds(self, name: bytes, fd: int, st: os.stat_result, oid: bytes, *, torn: bool) -> bool:
        if stat.S_ISLNK(st.st_mode):
            return os.readlink(name, dir_fd=fd) == b"".join(self._contents.pieces(oid))
        size = self._contents.size(oid)
        if not stat.S_ISREG(st.st_mode) or st.st_size > size or (st.st_size < size and not torn):
            return False
        with open(os.open(name, READ_FLAGS, dir_fd=fd), "rb") as file:
            for piece in self._contents.pieces(oid):
                data = file.read(len(piece))
                if data != piece and not (torn and piece.startswith(data.rstrip(b"\0"))):
                    return False
        return True

    def _number(self, name: bytes) -> int | None:
        number = name[len(self.prefix) :]
        return int(number) if name.startswith(self.prefix) and number.isdigit() and len(number) < 19 else None

    def write(
        self, todo: Sequence[Step], was: Mapping[bytes, os.stat_result], modes: Mapping[bytes, int]
    ) -> list[Ready]:
        """Write every new content to a temporary file, and sync both sides of each swap.

        The files that will be replaced or removed are synced too. After a power cut each side of a swap is then
        complete, and a torn file cannot look like an edit. `was` holds the stats of the replaced files, `modes` the
        known permission bits of other files.
        """
        self._rounds += 1
        new = [(path, present, wanted) for path, present, wanted in todo if wanted is not None]
        old = [path for path, present, _ in todo if present is not None and present[0] != LINK]
        sync = file_system_sync(len(new) + len(old))
        ready: list[Ready] = []
        waiting: list[int] | None = [] if sync is None else None  # descriptors that stay open until they are synced
        try:
            for path, present, wanted in new:
                beside = self._folders.nearest(above(path))
                temporary = self.name(path)
                folder = self._folders.enter(beside)
                # If the target's folder is to be restored, an unrelated file of the same name may lie beside the
                # temporary file.
                replaced = path.rpartition(b"/")[2] if beside == above(path) else None
                try:
                    st = self._write(temporary, folder, wanted, replaced, was.get(path), modes.get(path), waiting)
                except OSError as error:
                    error.filename = path  # the temporary file's name would mean nothing to the user
                    raise
                ready.append((path, present, beside, temporary, st))
                _sync_some(waiting)
            if waiting is not None:
                for fd in self._open_old(old):
                    waiting.append(fd)
                    _sync_some(waiting)
                _sync_and_close(waiting)
        finally:
            for fd in waiting or ():
                os.close(fd)
        if sync is not None:
            folders = {file[2] for file in ready} | set(map(above, old))
            _sync_devices(sync, self._enter_each(folders))
        return ready

    def _open_old(self, paths: Iterable[bytes]) -> Iterator[int]:
        """Yield descriptors of the files that will be replaced.

        Files that are gone or cannot be opened are skipped: the check right before the swap handles them.
        """
        for path in paths:
            try:
                fd = os.open(path.rpartition(b"/")[2], READ_FLAGS, dir_fd=self._folders.enter(above(path)))
            except (OSError, InTheWay):
                continue
            if stat.S_ISREG(os.fstat(fd).st_mode):
                yield fd
            else:  # something else, such as a fifo, has taken its place and cannot be synced
                os.close(fd)

    def _enter_each(self, folders: Iterable[bytes]) -> Iterator[int]:
        for folder in sorted(folders):
            try:
                yield self._folders.enter(folder)
            except (FileNotFoundError, InTheWay):
                continue

    def _write(
        self,
        name: bytes,
        folder: int,
        entry: Entry,
        replaced: bytes | None,
        was: os.stat_result | None,
        known: int | None,
        waiting: list[int] | None,
    ) -> os.stat_result:
        """Write the content to a new file; its descriptor is added to `waiting`."""
        mode, oid = entry
        if mode == LINK:
            os.symlink(b"".join(self._contents.pieces(oid)), name, dir_fd=folder)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        executable = mode == EXECUTABLE
        wanted = 0o777 if executable else 0o666
        if was is not None or known is not None:
            wanted = _permissions(was.st_mode if was is not None else known or 0, executable)
        fd = os.open(name, _NEW, wanted, dir_fd=folder)
        try:
            if was is not None:  # before any content: only those who could read the old file may read the new one
                _copy_metadata(fd, was, wanted, replaced, folder)
            size = self._contents.size(oid)
            holes = size > LARGE and (was is None or was.st_blocks * 512 < was.st_size)
            for piece in self._contents.pieces(oid):
                if holes and _ZEROS.startswith(piece):
                    os.lseek(fd, len(piece), os.SEEK_CUR)
                else:
                    write_all(fd, piece)
            if holes:
                os.ftruncate(fd, size)
            if waiting is None:
                return os.fstat(fd)
            if hasattr(os, "posix_fadvise"):
                # Start the write now, without waiting, so that the syncs find most of it done. Measured on ext4: 0.5
                # instead of 1.0 ms for 3 files, 3 to 7 instead of 10 ms for 30 files.
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            waiting.append(os.dup(fd))
            return os.fstat(fd)
        finally:
            os.close(fd)


def _sync_some(waiting: list[int] | None) -> None:
    """Sync early to limit open descriptors, unless one call syncs all files."""
    if waiting is not None and len(waiting) > SYNC_AT_ONCE:
        _sync_and_close(waiting)


def _sync_and_close(waiting: list[int]) -> None:
    """Sync and close each descriptor.

    If a sync fails, its descriptor and those after it stay in the list for the caller.
    """
    while waiting:
        os.fsync(waiting[0])
        os.close(waiting.pop(0))


def sync_all(folders: Iterable[int], number: int) -> None:
    """Make the names in folders durable, one by one or many at once."""
    sync = file_system_sync(number)
    if sync is not None:
        _sync_devices(sync, folders)
        return
    for fd in folders:
        sync_open_folder(fd)


def _sync_devices(sync: Callable[[int], None], folders: Iterable[int]) -> None:
    """Sync each file system of the folders once."""
    devices: set[int] = set()
    for fd in folders:
        device = os.fstat(fd).st_dev
        if device not in devices:
            sync(fd)
            devices.add(device)


def _copy_metadata(fd: int, was: os.stat_result, mode: int, name: bytes | None, folder: int) -> None:
    """Copy the metadata that a tree does not hold: permissions, owner, attributes."""
    if name is not None:
        _copy_attributes(fd, name, folder)
    st = os.fstat(fd)
    if st.st_uid != was.st_uid or st.st_gid != was.st_gid:
        try:
            os.fchown(fd, was.st_uid, was.st_gid)
        except PermissionError:
            pass
    if stat.S_IMODE(st.st_mode) != mode:  # the umask removed some bits
        os.fchmod(fd, mode)


def _copy_attributes(fd: int, name: bytes, folder: int) -> None:
    try:
        source = os.open(name, READ_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno not in _NO_FILE_NOW:
            raise
        return
    try:
        copy_attributes(source, fd)
    finally:
        os.close(source)


def _permissions(was: int, executable: bool) -> int:
    """Return the permissions of the old file, with its executable bits adjusted."""
    mode = was & 0o777
    if bool(mode & stat.S_IXUSR) == executable:
        return mode
    return mode | stat.S_IXUSR | (mode & 0o444) >> 2 if executable else mode & ~0o111
