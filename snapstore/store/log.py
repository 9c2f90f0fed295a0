"""Messages that could not be printed: hooks must not disturb their agent.

`status` shows the last messages. Nothing here is synced: no decision depends on these files, and a power cut may cost
the last lines.
"""

from __future__ import annotations

import os

from snapstore.base.files import remove_quietly
from snapstore.base.text import timestamp

_LARGEST = 1 << 20  # bytes; then the older half is dropped
_LONGEST = 2000
_SHOWN = 10
_STANDING = "now-"


def note(folder: str, text: str, seconds: float) -> None:
    """Add a line. Never fails: the disk that is full is most likely this one."""
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


def stand(folder: str, about: str, text: str, seconds: float) -> None:
    """Set a message that stands until `settle`, one per subject.

    However often the message is set, it is one line with the time of the first. A network that is away for a day must
    not push the message about a turn that was not recorded out of sight.
    """
    path = f"{folder}/{_STANDING}{about}"
    one_line = " ".join(text.replace("\0", " ").split())[:_LONGEST]
    try:
        since = _standing(path).partition(" ")[0] or timestamp(seconds)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{path}.new", "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600)) as file:
            file.write(f"{since} {one_line}\n".encode("utf-8", "replace"))
        os.rename(f"{path}.new", path)
    except OSError:
        pass


def settle(folder: str, about: str) -> None:
    """Remove a standing message."""
    remove_quietly(f"{folder}/{_STANDING}{about}")


def _standing(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_LONGEST * 4).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def last(folder: str) -> list[str]:
    """Return the newest lines, oldest first, and the standing messages."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(_STANDING) and not name.endswith(".new")]
    except OSError:
        return []
    return [*_lines(folder), *(found for name in sorted(names) if (found := _standing(f"{folder}/{name}")))]


def _lines(folder: str) -> list[str]:
    try:
        with open(f"{folder}/errors", "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _SHOWN * _LONGEST * 4, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return lines[-_SHOWN:]
