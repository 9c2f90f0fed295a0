"""The store's lock: a kernel lock that names its holder and admits one writer at a time."""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock, get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from snapstore.base import locks
from snapstore.base.files import close_quietly
from snapstore.base.text import one_line
from snapstore.errors import Busy

_HOLDER = 250  # bytes for the process id and command line of the holder
_LONGEST = 1e6  # seconds: the longest timeout that a thread lock accepts
PATIENCE = 30.0  # seconds that a command waits for the lock


class StoreLock:
    """The store's lock, held around every change.

    The thread that holds the lock may enter it again; other threads that share the store wait.
    """

    def __init__(self, path: str, waiting: Callable[[str], None] | None = None) -> None:
        self._path = path
        self._waiting = waiting
        self._fd = -1
        self._depth = 0
        self._threads = RLock()
        self._thread = 0  # the thread that holds the lock

    def __enter__(self) -> StoreLock:
        self._enter(patience())
        return self

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Hold the lock if it is free, without waiting; yield whether it is held."""
        try:
            self._enter(0.0)
        except Busy:
            yield False
            return
        try:
            yield True
        finally:
            self.__exit__(None, None, None)

    def _enter(self, seconds: float) -> None:
        if not self._threads.acquire(timeout=min(max(0.0, seconds), _LONGEST)):
            raise Busy("the store is in use by another thread of this program")
        try:
            if self._depth == 0:
                self._fd = self._acquire(seconds)
        except BaseException:
            self._threads.release()
            raise
        self._thread = get_ident()
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self.held:
            return
        self._depth -= 1
        if self._depth == 0:
            close_quietly(self._fd)
            self._fd, self._thread = -1, 0
        self._threads.release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the lock for a while, so that other processes can work.

        A lock that was entered more than once is kept, because an outer caller relies on it. If the lock cannot be
        taken again, the error is raised and the lock is not held.
        """
        if not self.held or self._depth != 1:
            yield
            return
        self.__exit__(None, None, None)
        try:
            yield
        finally:
            self.__enter__()

    @property
    def held(self) -> bool:
        return self._thread == get_ident()

    def _acquire(self, seconds: float) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            told = False
            pause, start = 0.002, time.monotonic()
            while not locks.try_lock(fd):
                if not told and self._waiting and time.monotonic() - start > 0.5:
                    self._waiting(self._holder(fd))
                    told = True
                if time.monotonic() - start >= seconds:
                    raise Busy(f"the store is in use by {self._holder(fd)}")
                time.sleep(pause)
                pause = min(pause * 1.5, 0.05)
            words = [word for word in sys.argv[:3] if "://" not in word]  # a URL may contain a password
            holder = f"{os.getpid()} {' '.join(words)}".encode("utf-8", "replace")
            os.pwrite(fd, holder[:_HOLDER].ljust(_HOLDER), 0)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _holder(self, fd: int) -> str:
        text = os.pread(fd, _HOLDER, 0).decode("utf-8", "replace").rstrip()
        pid, _, command = text.partition(" ")
        name = os.path.basename(command.partition(" ")[0]) + command[len(command.partition(" ")[0]) :]
        return f"process {pid} ({one_line(name) or 'unknown'})" if pid.isdecimal() else "another process"


def patience() -> float:
    try:
        return float(os.environ.get("SNAPSTORE_LOCK_TIMEOUT", PATIENCE))
    except ValueError:
        return PATIENCE
