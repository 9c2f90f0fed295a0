"""Who is at work: the kernel's locks, given back when their holder dies, and whether a process is still the same."""

from __future__ import annotations

import errno
import fcntl
import os

from snapstore.errors import Failed

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def try_lock(fd: int) -> bool:
    """An exclusive lock, if nobody else has it. Without locks no two programs are kept apart: where the file system has
    none, that is raised."""
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
    """A mark that tells this process from a later one with the same number; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] == b"Z" else fields[19].decode()
    except OSError:
        pass
    try:  # no /proc: know at least whether it lives
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "?" if not os.path.exists("/proc/self/stat") else None


def lives(process: str) -> bool:
    """Whether a process is there: by its number as a file says it, and where it says that too, by when it began."""
    number, _, began = process.partition(" ")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        return False
    started = process_started(int(number))
    return started is not None and began in ("", started)
