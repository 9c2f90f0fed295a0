"""Kernel locks, and checks whether a process is still running.

The kernel releases a lock when its holder dies. A process is identified by its id and start time, because ids are
reused.
"""

from __future__ import annotations

import errno
import fcntl
import os

from snapstore.errors import Failed

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def try_lock(fd: int) -> bool:
    """Take an exclusive lock without waiting, and return whether the lock was free.

    Raise `Failed` if the file system does not support locks: two programs could then write at the same time.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise Failed(
            f"the store's file system cannot lock files: {error.strerror}",
            "Nothing was recorded and no file was changed. Set SNAPSTORE_HOME to a folder on another file system.",
        ) from error
    return True


def lock_work_folder(fd: int) -> None:
    """Lock an open work folder, so that no clean-up removes it while it is in use.

    Wait for a process that is only checking the lock. Child processes inherit the lock.
    """
    fcntl.flock(fd, fcntl.LOCK_EX)


def lock_if_abandoned(fd: int) -> bool:
    """Lock an open work folder if no process uses it, and return whether it is locked.

    If the file system does not support locks, the folder may be in use.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_in_use(fd: int) -> bool:
    """Return whether a process may be using an open work folder."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def process_started(pid: int) -> str | None:
    """Return the start time of a process, or None if there is no such process.

    The start time distinguishes the process from a later process with the same id.
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
    """Return whether a process, given as "id" or "id start-time", is alive.

    Without a start time only the id is checked.
    """
    pid, _, began = process.partition(" ")
    if not (pid.isascii() and pid.isdecimal() and len(pid) < 10):
        return False
    started = process_started(int(pid))
    return started is not None and began in ("", started)
