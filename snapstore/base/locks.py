"""Kernel locks, and checks whether a process is still running.

The kernel releases a lock when its holder dies. A process is identified by its number and its start time, because
numbers are reused.
"""

from __future__ import annotations

import errno
import fcntl
import os

from snapstore.errors import Failed

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def try_lock(fd: int) -> bool:
    """Take an exclusive lock and return whether that worked.

    Raise `Failed` if the file system does not support locks: without locks nothing keeps two programs apart.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise Failed(
            f"the file system that the store is on cannot lock files: {error.strerror}",
            "Nothing was recorded and no file was changed. Put the stores on another file system: set SNAPSTORE_HOME.",
        ) from error
    return True


def lock_work_folder(fd: int) -> None:
    """Take an exclusive lock on the open folder of work under way, which keeps a sweep away.

    Wait for a process that is just looking. A program that is started inherits the lock.
    """
    fcntl.flock(fd, fcntl.LOCK_EX)


def is_abandoned(fd: int) -> bool:
    """Return whether nobody works in an open folder; if so, take its lock.

    If the file system cannot tell, somebody may be at work.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_at_work(fd: int) -> bool:
    """Return whether somebody may work in an open folder, without taking its lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def process_started(pid: int) -> str | None:
    """Return the start time of a process, or None if there is no such process.

    The start time distinguishes the process from a later process with the same number.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] == b"Z" else fields[19].decode()
    except OSError:
        pass
    try:  # no /proc: check at least whether the process is alive
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "?" if not os.path.exists("/proc/self/stat") else None


def is_alive(process: str) -> bool:
    """Return whether a process written as "number" or "number start-time" is alive.

    Without a start time only the number is checked.
    """
    number, _, began = process.partition(" ")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        return False
    started = process_started(int(number))
    return started is not None and began in ("", started)
