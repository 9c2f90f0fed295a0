"""What is particular to a platform: locks, open flags, modes, clocks, processes. Linux and macOS for now."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from snapstore.base.locks import process_started as process_started
from snapstore.base.locks import try_lock as try_lock

# Never through a link, never waiting for a fifo's other end.
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Two writes closer together than this may leave the same time stamp: the kernel stamps files with the time of its last
# tick (10 ms at the slowest), some file systems keep whole seconds only, and FAT every second one.
TICK_NS = 20_000_000
COARSE_NS = 2_000_000_000

# From so many files on, one sync of the whole file system instead of one for each file. Measured on ext4: 13 ms against
# 1 ms for 64 files (and 2 ms to load ctypes), 400 ms against 25 ms for 2,000. For fewer it is not worth waiting for
# what other programs have yet to write.
SYNC_AT_ONCE = 64

_NO_SYNCFS = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_ACL = "system.posix_acl_access"
_NOT_OURS_TO_SET = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENODATA, errno.EINVAL)


# Linux gives each start of the machine an id of its own.
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str:
    """Tells one start of the machine from another; empty where the system does not say."""
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


_callers_parent = 0


def serve_caller(parent: int) -> None:
    """Note that this process works for another one, which was started by `parent`."""
    global _callers_parent
    _callers_parent = parent


def is_served() -> bool:
    return _callers_parent != 0


def parent_pid() -> int:
    """Return the process that started this command: an agent, or the shell in front of it. Where the warm process runs
    the command, that is the parent of the caller."""
    return _callers_parent or os.getppid()


def is_young(st: os.stat_result, now_ns: int) -> bool:
    """Whether a later write could still leave this very stat behind."""
    newest = max(st.st_mtime_ns, st.st_ctime_ns)
    grain = COARSE_NS if st.st_mtime_ns % 1_000_000_000 == 0 and st.st_ctime_ns % 1_000_000_000 == 0 else TICK_NS
    return newest > now_ns - grain


def was_written_lately(st: os.stat_result, now_ns: int) -> bool:
    """The same, of a file whose ctime tells nothing, since it was renamed just now."""
    return st.st_mtime_ns > now_ns - (TICK_NS if st.st_mtime_ns % 1_000_000_000 else COARSE_NS)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector, for work that makes very many objects and no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # To the oldest generation at once: else the first collection looks at every one of them.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def file_system_sync(number: int) -> Callable[[int], None] | None:
    """`syncfs`, where so many files make it worth it and the system has it: everything written to the file system of a
    descriptor is on disk after it."""
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
            os.sync()  # a kernel without the call, or one that is not let through: more is synced than we need

    return sync


def copy_attributes(source: int, target: int) -> None:
    """Access control lists, labels and notes of one open file for another, as far as the system lets us."""
    if not hasattr(os, "listxattr"):  # Linux has it
        return
    names, inherited = _attributes(source), _attributes(target)
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            if error.errno not in _NOT_OURS_TO_SET:
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


def owner() -> int:
    return os.geteuid()
