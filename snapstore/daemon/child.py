"""Run one request in a process forked from the warm process.

The child reads the request, checks the caller, and takes over the caller's streams, directory, environment, umask,
limits and signal settings. Then the child sends READY, waits for GO, and runs the ordinary command. Any failure before
GO ends the child, and the caller runs the command itself.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from typing import Any, NoReturn

from snapstore.base import platform
from snapstore.daemon import client

try:
    import resource
except ImportError:  # not on every platform
    resource = None  # type: ignore[assignment]

Run = Callable[[list[str]], int]

_LIMITS = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}

_PATIENCE = 2.0  # seconds to wait for a request; by then the caller has given up and runs the command itself
_LARGEST = 64 << 20  # bytes of a request; the arguments and environment of a process are far smaller
_DESCRIPTORS = 4  # three streams and the directory
_UNFLUSHED = 120  # the interpreter's exit status when standard output cannot be flushed


@dataclass
class ServerInfo:
    """What the server knows about itself; a forked child inherits a copy."""

    pid: int
    identity: bytes
    installation: bytes
    files: dict[str, tuple[int, int, int]]  # stamps of the program's files when they were loaded
    started_at: float
    served: int = 0
    ended: dict[int, int] = field(default_factory=dict)  # process id -> signal, for children killed by a signal


class Refused(Exception):
    """The caller must run the command itself: it would behave differently here."""


def serve(connection: socket.socket, facts: ServerInfo, run: Run) -> NoReturn:
    """Serve one connection's request in this process, then exit."""
    status = 1
    try:
        connection.settimeout(_PATIENCE)
        pid, _ = client.peer(connection)
        connection.sendall(client.HELLO + os.getpid().to_bytes(4, "little"))
        replaced = is_replaced(facts.files)  # while the client prepares its request
        parts, descriptors = _receive(connection)
        if parts[0] == client.RUN:
            if replaced:
                os.kill(facts.pid, signal.SIGTERM)
                raise Refused("the program is not the one that was loaded")
            _check(pid, parts, facts)
            arguments = _take_over(parts, descriptors, pid, connection)
            connection.sendall(client.READY)
            connection.settimeout(None)
            if connection.recv(1) == client.GO:
                _watch_caller(connection)
                status = _run_command(run, arguments)
                connection.sendall(client.DONE + bytes([status & 0xFF]))
        else:
            connection.sendall(_answer(parts, facts))
    except (OSError, Refused, ValueError, EOFError):
        pass  # the caller is gone or was refused
    finally:
        os._exit(status)


def stamp(path: str) -> tuple[int, int, int]:
    """Return stat values that change when a file is replaced."""
    st = os.stat(path)
    return st.st_ino, st.st_mtime_ns, st.st_size


def is_replaced(files: dict[str, tuple[int, int, int]]) -> bool:
    """Return whether the program was upgraded or removed since this process loaded it.

    Commands run by this process would then mix old and new code.
    """
    try:
        return any(stamp(path) != known for path, known in files.items())
    except OSError:
        return True


def _receive(connection: socket.socket) -> tuple[list[bytes], list[int]]:
    """Read a whole request."""
    data, descriptors, _, _ = socket.recv_fds(connection, 65536, _DESCRIPTORS)
    while len(data) < client.HEADER:
        data += _more(connection)
    length = int.from_bytes(data[: client.HEADER], "little")
    if length > _LARGEST:
        raise Refused("too long")
    pieces = [data[client.HEADER :]]
    missing = length - len(pieces[0])
    while missing > 0:
        pieces.append(_more(connection))
        missing -= len(pieces[-1])
    return b"".join(pieces).split(b"\0"), descriptors


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 20)
    if not data:
        raise EOFError
    return data


def _check(pid: int, parts: list[bytes], facts: ServerInfo) -> None:
    """Refuse a caller from another installation or with other rights, as in a sandbox."""
    if len(parts) < 2 or parts[1] != facts.installation:
        raise Refused("another installation")
    if sys.platform == "linux" and client.identity(pid) != facts.identity:
        raise Refused("another user, namespace or sandbox")


def _take_over(parts: list[bytes], descriptors: list[int], pid: int, connection: socket.socket) -> list[str]:
    """Take over the caller's state that a command can see, and return its arguments."""
    _, _, parent, umask, ignored, streams, program, count, *rest = parts
    if len(descriptors) != _DESCRIPTORS:
        raise Refused("no streams")
    arguments = [os.fsdecode(word) for word in rest[: int(count)]]
    _take_limits(pid)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.fchdir(descriptors[3])
    for descriptor in descriptors:
        os.close(descriptor)
    os.umask(int(umask))
    os.environb.clear()
    for entry in rest[int(count) :]:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value
    time.tzset()
    terminal = _Terminal(connection) if os.isatty(0) else None
    _open_streams(streams.decode().split(" "), terminal)
    _reset_signals(ignored.decode().split())
    if terminal is not None:
        signal.signal(signal.SIGCONT, terminal.ask_again)
    os.setpgid(0, 0)
    platform.serve_caller(int(parent))
    sys.argv[:] = [os.fsdecode(program), *arguments]
    return arguments


def _take_limits(pid: int) -> None:
    """Take over the caller's resource limits and priority, or raise Refused."""
    try:
        if resource is not None and hasattr(resource, "prlimit"):
            for number in _LIMITS:
                theirs = resource.prlimit(pid, number)
                if theirs != resource.getrlimit(number):
                    resource.setrlimit(number, theirs)
        theirs_nice = os.getpriority(os.PRIO_PROCESS, pid)
        if theirs_nice != os.getpriority(os.PRIO_PROCESS, 0):
            os.setpriority(os.PRIO_PROCESS, 0, theirs_nice)
    except (OSError, ValueError) as error:
        raise Refused("other limits") from error


class _Terminal(FileIO):
    """The caller's terminal as standard input.

    The kernel stops a background job that reads from its terminal. This process is not in the terminal's session, so
    the kernel does not stop it, and a read would steal the input meant for the shell. Therefore each read first asks
    the caller for permission.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(0, "r", closefd=False)
        self._connection = connection
        self._reading = False

    def readinto(self, buffer: Any, /) -> int | None:
        self._reading = True
        try:
            self._ask()
            self._wait()
            return super().readinto(buffer)
        finally:
            self._reading = False

    def ask_again(self, *_: object) -> None:
        """Ask again after the job was stopped: it may continue in the background."""
        if self._reading:
            self._ask()

    def _wait(self) -> None:
        """Wait for input, and hang up if the caller is killed meanwhile.

        A signal handler is not enough: a signal right before a plain read would leave the read blocked forever.
        """
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self._connection, select.POLLIN)
        while 0 not in (ready := dict(poll.poll())):
            if self._connection.fileno() in ready:
                if _is_gone(self._connection):
                    _hang_up()
                poll.unregister(self._connection)

    def _ask(self) -> None:
        self._connection.sendall(client.TERMINAL)
        if self._connection.recv(1) != client.TERMINAL:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def _open_streams(described: list[str], terminal: _Terminal | None) -> None:
    """Open the standard streams with the caller's encodings and buffering."""
    for number, (name, text) in enumerate(zip(("stdin", "stdout", "stderr"), described, strict=True)):
        encoding, errors, unbuffered = text.split(":")
        raw = terminal if number == 0 and terminal else FileIO(number, "r" if number == 0 else "w", closefd=False)
        setattr(sys, name, _text_stream(number, raw, encoding, errors, unbuffered == "1"))
        setattr(sys, f"__{name}__", getattr(sys, name))


def _text_stream(number: int, raw: FileIO, encoding: str, errors: str, unbuffered: bool) -> TextIOWrapper:
    if number == 0:
        return TextIOWrapper(BufferedReader(raw), encoding, errors, newline="\n")
    if unbuffered:  # `-u` or PYTHONUNBUFFERED
        return TextIOWrapper(raw, encoding, errors, newline="\n", write_through=True)
    lines = number == 2 or os.isatty(number)
    return TextIOWrapper(BufferedWriter(raw), encoding, errors, newline="\n", line_buffering=lines)


def _reset_signals(ignored: list[str]) -> None:
    for name in client.MAY_BE_IGNORED:
        number = getattr(signal, name)
        normal = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if name in ignored else normal)


def _watch_caller(connection: socket.socket) -> None:
    """Have the kernel send SIGIO when the caller is killed.

    If standard input is a terminal, this process then hangs up, because it must not go on reading from that terminal.
    Otherwise the command still finishes, because an agent whose hook timed out wants its turn recorded. The output
    streams are released, because the agent may be waiting for them to close.
    """
    has_terminal = os.isatty(0)

    def check(*_: object) -> None:
        if _is_gone(connection):
            _hang_up() if has_terminal else _release_output()

    signal.signal(signal.SIGIO, check)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    check()


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the caller has closed the connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _hang_up() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` may have set it to ignored
    os.kill(os.getpid(), signal.SIGHUP)


def _release_output() -> None:
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for number in (1, 2):
        os.dup2(null, number)
    os.close(null)


def _run_command(run: Run, arguments: list[str]) -> int:
    """Run the command as the console script does, including the final flush."""
    try:
        status = run(arguments)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = _UNFLUSHED
    return status


def _answer(parts: list[bytes], facts: ServerInfo) -> bytes:
    """Answer a question about the server."""
    if parts[0] == client.ENDED:
        return str(facts.ended.get(int(parts[2]), 0)).encode()
    if parts[0] == client.STOP:
        os.kill(facts.pid, signal.SIGTERM)
    return f"{facts.pid} {facts.started_at} {facts.served}".encode()
