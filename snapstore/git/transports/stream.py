"""A two-way stream to another process or machine, with a time limit on every wait.

Written on pipes, poll and posix_spawn: `import subprocess` costs 20 ms, as much as all the rest of a small push. While
we write we also read what comes back, so that neither side ever waits for the other to read.
"""

from __future__ import annotations

import os
import select
import time

from snapstore.errors import Remote
from snapstore.git.commits import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PIECE = 1 << 16
READ_AHEAD = 1 << 20
SAID = 2000  # how much of another side's words is passed on


class Broken(Remote):
    """The connection broke or never came about: nothing is wrong with what was asked. With `again`, trying again at
    once may help."""

    def __init__(self, message: str, hint: str | None = None, *, again: bool = False, **details: object) -> None:
        super().__init__(message, hint, **details)
        self.again = again


class Stream:
    """Two descriptors, both non-blocking; for a socket they are the same."""

    def __init__(self, read: int, write: int, who: str, timeout: float) -> None:
        self._read, self._write = read, write
        self._who = who
        self._timeout = timeout
        self._buffer = bytearray()
        self._ended = False
        os.set_blocking(read, False)
        os.set_blocking(write, False)

    def write(self, data: bytes | bytearray) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._write, view) :]
                continue
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionError) as error:
                raise self.broken("closed the connection while we were sending") from error
            self._wait(writing=True)

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        while len(self._buffer) < size:
            if not self._fill():
                raise self.broken("broke off in the middle")
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def read_some(self) -> bytes:
        """Whatever is there, at least a byte; nothing at the end."""
        if not self._buffer:
            self._fill()
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def broken(self, what: str, *, again: bool = True) -> Broken:
        said = self.said()
        return Broken(f"{self._who} {what}{': ' + said if said else ''}", again=again)

    def said(self) -> str:
        """What the other side's program wrote for people."""
        return ""

    def end_writing(self) -> None:
        """Says that no more will come."""
        if self._write >= 0 and self._write != self._read:
            os.close(self._write)
            self._write = -1

    def close(self) -> None:
        self.end_writing()
        if self._read >= 0:
            os.close(self._read)
            self._read = self._write = -1

    def _fill(self) -> bool:
        while not self._ended:
            try:
                piece = os.read(self._read, PIECE)
            except BlockingIOError:
                self._wait(writing=False)
                continue
            except ConnectionError:
                piece = b""
            self._ended = not piece
            self._buffer += piece
            break
        return not self._ended

    def _wait(self, *, writing: bool) -> None:
        poll = select.poll()
        reading = not writing or (not self._ended and len(self._buffer) < READ_AHEAD)
        if self._read == self._write:
            poll.register(self._read, (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0))
        else:
            if reading:
                poll.register(self._read, select.POLLIN)
            if writing:
                poll.register(self._write, select.POLLOUT)
        end = time.monotonic() + self._timeout
        while True:
            ready = dict(poll.poll(max(0.0, end - time.monotonic()) * 1000))
            if not ready:
                raise self.broken(f"did not answer for {self._timeout:g} seconds", again=False)
            if not writing or ready.get(self._write, 0) & ~select.POLLIN:
                return
            if not self._fill():  # it has no more to say, and may read on
                return


class Process(Stream):
    """A program at the other end of two pipes: `git upload-pack` on this machine, or ssh."""

    def __init__(self, command: list[str], environment: Mapping[str, str], who: str, timeout: float) -> None:
        self._pid = 0
        self._errors = _nameless_file()
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_read, 0),
            (os.POSIX_SPAWN_DUP2, theirs_write, 1),
            (os.POSIX_SPAWN_DUP2, self._errors, 2),
        ]
        try:
            self._pid = os.posix_spawn(_found(command[0], environment), command, environment, file_actions=actions)
        except OSError:
            for fd in (ours_read, ours_write, self._errors):
                os.close(fd)
            raise Remote(
                f"there is no {command[0]} program here", f"Install {command[0]}; {who} is reached through it."
            ) from None
        finally:
            os.close(theirs_read)
            os.close(theirs_write)
        super().__init__(ours_read, ours_write, who, timeout)

    def said(self) -> str:
        """Read once the program is done speaking, or it would be cut in the middle."""
        self.end_writing()
        self._reap(2.0)
        length = os.lseek(self._errors, 0, os.SEEK_END)
        text = os.pread(self._errors, SAID, max(0, length - SAID)).decode("utf-8", "replace")
        return " / ".join(kept for line in text.splitlines() if (kept := one_line(line)))

    def close(self) -> None:
        if self._read >= 0:
            super().close()
            self._reap(2.0)
            if self._pid:
                import signal

                os.kill(self._pid, signal.SIGTERM)
                self._reap(2.0)
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                self._pid = 0
            os.close(self._errors)

    def _reap(self, patience: float) -> None:
        end = time.monotonic() + patience
        pause = 0.0005
        while self._pid:
            pid, _ = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._pid = 0
            elif time.monotonic() > end:
                return
            else:
                time.sleep(pause)
                pause = min(0.05, pause * 1.5)


def connect(host: str, port: int, who: str, timeout: float) -> Stream:
    """A socket to a `git daemon`."""
    import socket

    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            fd = connection.detach()
    except OSError as error:
        again = not isinstance(error, TimeoutError)
        raise Broken(f"{who} cannot be reached: {error.strerror or error}", again=again) from None
    return Stream(fd, fd, who, timeout)


def _found(program: str, environment: Mapping[str, str]) -> str:
    """Where a program is, by the path of the environment it will run in."""
    if "/" in program:
        return program
    places = [f"{folder}/{program}" for folder in os.get_exec_path(environment) if folder.startswith("/")]
    return next((place for place in places if os.access(place, os.X_OK)), f"/no {program} here")


def _nameless_file() -> int:
    """A file that nobody else sees: a pipe would block a program that has more to complain of than a pipe holds."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("said")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
