"""What could not be said aloud: hooks must not disturb the agent that runs them. `status` shows the last of it.

Nothing here is synced: nothing is decided by it, and a power cut may cost the last lines.
"""

from __future__ import annotations

import os

from snapstore.store.state import timestamp

_LARGEST = 1 << 20  # bytes; then the older half goes
_LONGEST = 2000
_SHOWN = 10
_STANDING = "now-"


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


def stand(folder: str, about: str, text: str, seconds: float) -> None:
    """A word that stands until `settle`: one line about one thing however often it is said, with the time of the first.
    A network that is away for a day must not push out of sight that a turn was not recorded."""
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
    """It is no longer so."""
    try:
        os.unlink(f"{folder}/{_STANDING}{about}")
    except OSError:
        pass


def _standing(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_LONGEST * 4).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def last(folder: str) -> list[str]:
    """The newest lines, oldest first, and what stands."""
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
