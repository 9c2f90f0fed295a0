"""What could not be said aloud: hooks must not disturb the agent that runs them. `status` shows the last of it."""

from __future__ import annotations

import os

from snapstore.timeline.documents import timestamp

_LARGEST = 1 << 20  # bytes; then the older half goes
_LONGEST = 2000
_SHOWN = 10


def note(folder: str, text: str, seconds: float) -> None:
    """Adds a line. Never fails: the disk that is full is most likely this one."""
    one_line = " ".join(text.replace("\0", " ").split())[:_LONGEST]
    line = f"{timestamp(seconds)} {one_line}\n".encode("utf-8", "replace")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(f"{folder}/errors", flags, 0o600)
        try:
            size = os.fstat(fd).st_size
            if size > _LARGEST:
                kept = os.pread(fd, size, size - _LARGEST // 2).partition(b"\n")[2]
                os.ftruncate(fd, 0)
                os.write(fd, kept)
            os.write(fd, line)
        finally:
            os.close(fd)
    except OSError:
        pass


def last(folder: str) -> list[str]:
    """The newest lines, oldest first."""
    try:
        with open(f"{folder}/errors", "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _SHOWN * _LONGEST * 4, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return lines[-_SHOWN:]
