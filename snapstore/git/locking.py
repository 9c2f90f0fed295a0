"""The kernel's locks on files and folders: given back when their holder dies, however it dies."""

from __future__ import annotations

import errno
import fcntl

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
