"""Functions that differ between Linux and macOS: open flags, clocks, syncs, attributes, processes."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Never follow a link, and never wait for the other end of a fifo.
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Two writes closer together than this may leave the same time stamp. The kernel stamps files with the time of its last
# tick (10 ms at the slowest). Some file systems keep only whole seconds, and FAT only even seconds.
TICK_NS = 20_000_000
COARSE_NS = 2_000_000_000

# Above this many files, sync the whole file system once instead of each file. Measured on ext4: 1 ms instead of 13 ms
# for 64 files (plus 2 ms to load ctypes), 25 ms instead of 400 ms for 2,000 files. For fewer files it does not pay to
# wait for the pending writes of other programs.
SYNC_AT_ONCE = 64

_NO_SYNCFS = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_ACL = "system.posix_acl_access"
_CANNOT_SET = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENODATA, errno.EINVAL)

BOOT_ID = "/proc/sys/kernel/random/boot_id"  # Linux only


def boot_id() -> str:
    """Return the id of the current boot, or an empty string if the system has none."""
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


_callers_parent = 0


def serve_caller(parent: int) -> None:
    """Note that this process serves a caller whose parent process is `parent`."""
    global _callers_parent
    _callers_parent = parent


def is_served() -> bool:
    """Return whether the warm process runs this command."""
    return _callers_parent != 0


def parent_pid() -> int:
    """Return the id of the process that started this command: an agent, or a shell.

    If the warm process runs the command, return the caller's parent.
    """
    return _callers_parent or os.getppid()


def is_young(st: os.stat_result, now_ns: int) -> bool:
    """Return whether the file could be written again without a change of its stat."""
    newest = max(st.st_mtime_ns, st.st_ctime_ns)
    grain = COARSE_NS if st.st_mtime_ns % 1_000_000_000 == 0 and st.st_ctime_ns % 1_000_000_000 == 0 else TICK_NS
    return newest > now_ns - grain


def is_mtime_young(st: os.stat_result, now_ns: int) -> bool:
    """Return whether the file could be written again without a change of its mtime.

    Use this instead of `is_young` for a file that was just renamed, because a rename changes the ctime.
    """
    return st.st_mtime_ns > now_ns - (TICK_NS if st.st_mtime_ns % 1_000_000_000 else COARSE_NS)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector during work that makes many objects and no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Move the objects to the oldest generation now: otherwise the first collection visits every one of them.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def file_system_sync(number: int) -> Callable[[int], None] | None:
    """Return `syncfs` if it is available and pays off for `number` files, else None.

    `syncfs` writes the whole file system of a descriptor to disk.
    """
    if number <= SYNC_AT_ONCE:
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return None

    def sync(fd: int) -> None:
        if call(fd) != 0:
            number = ctypes.get_errno()
            if number not in _NO_SYNCFS:
                raise OSError(number, os.strerror(number))
            os.sync()  # the kernel lacks the call or forbids it: sync more than necessary

    return sync


def copy_attributes(source: int, target: int) -> None:
    """Copy ACLs, security labels and other extended attributes between open files.

    Attributes that this user may not set are skipped.
    """
    if not hasattr(os, "listxattr"):  # only Linux has it
        return
    names, inherited = _attributes(source), _attributes(target)
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            if error.errno not in _CANNOT_SET:
                raise
    if _ACL in inherited and _ACL not in names:
        os.removexattr(target, _ACL)


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []
