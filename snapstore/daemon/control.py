"""Show and stop the warm process from outside.

`snapstore daemon status|stop` and one row of `snapstore status` use this module.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from dataclasses import dataclass

from snapstore.base import locks, platform
from snapstore.daemon import client
from snapstore.daemon.address import lock_path
from snapstore.errors import Failed

_LEAVING = 5.0  # seconds to wait for a server that was told to stop
_PAUSE = 0.005  # seconds between two checks whether the server is gone
_ANSWERING = 2.0  # seconds for an answer: a person who asks for the status can wait that long


@dataclass(frozen=True)
class Running:
    """A running server, as the server describes itself.

    `started_at` and `served` are None for a server that does not answer, because it is suspended or hangs.
    """

    pid: int
    socket: str
    started_at: float | None
    served: int | None
    memory_bytes: int | None


def running() -> Running | None:
    """Describe the server of this user and installation, if one is running."""
    path = client.socket_path()
    if path is None:
        return None
    answer = _asked(path, client.STATUS)
    if answer is None:
        silent = _silent(path)
        return None if silent is None else Running(silent, path, None, None, _memory(silent))
    pid, started_at, served = answer.split()
    return Running(int(pid), path, float(started_at), int(served), _memory(int(pid)))


def running_pid() -> int | None:
    """Return the process id of the server that runs this command or could run it."""
    if platform.is_served():
        return os.getppid()
    found = None if client.is_off() else running()
    return None if found is None else found.pid


def stop() -> bool:
    """Stop the server, wait until its address is free, and return whether one ran.

    A server that does not answer is killed: no data is lost, and its children go on working.
    """
    path = client.socket_path()
    if path is None:
        return False
    deadline = time.monotonic() + _LEAVING
    while _asked(path, client.STOP) is None:
        silent = _silent(path)
        if silent is not None:
            os.kill(silent, signal.SIGKILL)
            return True
        if not _is_starting(path) or time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE)
    deadline = time.monotonic() + _LEAVING
    while os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    return True


def _asked(path: str, question: bytes) -> bytes | None:
    """Return the server's answer, or None if the server does not answer."""
    try:
        return client.question(path, question, at_least=_ANSWERING) or None
    except OSError:
        return None


def _silent(path: str) -> int | None:
    """Return the id of the process that listens at an address but does not answer."""
    try:
        with closing(client.connect(path)) as connection:
            return client.peer(connection)[0] or None
    except OSError:
        return None


def _is_starting(path: str) -> bool:
    """Return whether a server holds the address but is still loading the program."""
    try:
        lock = os.open(lock_path(path), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not locks.try_lock(lock)
    except (OSError, Failed):
        return False
    finally:
        os.close(lock)


def _memory(pid: int) -> int | None:
    """Return a process's resident memory in bytes, or None if unknown."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
