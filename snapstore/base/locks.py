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
