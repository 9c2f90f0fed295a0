"""A log of messages that hooks must not print, because they would disturb the agent.

`status` shows the last messages. The files are not synced: a power cut may cost the last lines, and no decision depends
on them.
"""

from __future__ import annotations

import os

from snapstore.base.files import remove_quietly
from snapstore.base.text import timestamp

_LARGEST = 1 << 20  # bytes of the log; a larger log loses its older half
_LONGEST = 2000
_SHOWN = 10
_NOTICE = "now-"  # prefix of the files with notices


def note(folder: str, text: str, seconds: float) -> None:
    """Add a line to the log, ignoring errors such as a full disk.

    The log is not synced: it only tells people what happened, and nothing is decided by it.
    """
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


def set_notice(folder: str, about: str, text: str, seconds: float) -> None:
    """Set the notice about a subject, which is shown until `clear_notice`.

    A notice that is set again replaces the old one and keeps its time. So a network that is down for a day does not
    push other messages out of sight. A notice is not synced: what failed is tried again, and fails or succeeds anew.
    """
    path = f"{folder}/{_NOTICE}{about}"
    one_line = " ".join(text.replace("\0", " ").split())[:_LONGEST]
    try:
        since = _notice(path).partition(" ")[0] or timestamp(seconds)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{path}.new", "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600)) as file:
            file.write(f"{since} {one_line}\n".encode("utf-8", "replace"))
        os.rename(f"{path}.new", path)
    except OSError:
        pass


def clear_notice(folder: str, about: str) -> None:
    """Remove the notice about a subject."""
    remove_quietly(f"{folder}/{_NOTICE}{about}")


def _notice(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_LONGEST * 4).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def last(folder: str) -> list[str]:
    """Return the last lines of the log, oldest first, and then the notices."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(_NOTICE) and not name.endswith(".new")]
    except OSError:
        return []
    return [*_lines(folder), *(found for name in sorted(names) if (found := _notice(f"{folder}/{name}")))]


def _lines(folder: str) -> list[str]:
    try:
        with open(f"{folder}/errors", "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _SHOWN * _LONGEST * 4, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return lines[-_SHOWN:]
