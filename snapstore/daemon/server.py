"""The warm process's main loop: wait for requests and fork a child for each.

The server is single-threaded and reads nothing that its clients send. A child reads the request (child.py), so a slow,
truncated or hostile client harms nobody else. The server holds its socket, its lock, and a pipe that wakes it when a
child has ended. The server exits after 15 minutes without work, when the program's files are replaced or removed, or
when it is told to.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

from snapstore.daemon import client
from snapstore.daemon.address import AddressUnavailable, ServerAddress
from snapstore.daemon.child import Run, ServerInfo, is_replaced, serve, stamp

IDLE = 15 * 60.0  # seconds without a request
_MOST = 32  # children at once; further clients time out and run their commands themselves
_REMEMBERED = 64  # killed children whose signal the server still remembers
_BACKLOG = 64
_CHECK = 30.0  # seconds between an idle server's checks that its address and its program still exist
_RETRY = 0.05  # seconds until the next try when no descriptor or process is free


class Server:
    """One warm process.

    `run` runs a command line in a child and returns its exit status. `clock` must go on while the computer sleeps.
    """

    def __init__(
        self, address: ServerAddress, run: Run, *, idle: float = IDLE, clock: Callable[[], float] = time.time
    ) -> None:
        self._address = address
        self._run = run
        self._idle = idle
        self._clock = clock
        self._children: set[int] = set()
        self._leaving = False
        files = {**dict(_program_files()), **dict(_library_files())}
        self._facts = ServerInfo(os.getpid(), client.identity(), client.installation(), files, time.time())
        self._listening: socket.socket | None = address.socket
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        address.socket.listen(_BACKLOG)

    def work(self) -> None:
        """Serve requests until the server has to exit."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._leave)
        gc.collect()
        gc.freeze()  # keeps the memory pages of loaded modules shared with the children
        last = self._clock()
        while not self._leaving:
            now = self._clock()
            last = min(last, now)  # a clock that was set back must not keep the server alive longer
            waiting = last + self._idle - now
            if waiting <= 0 and not self._children:
                break
            if self._poll(min(max(waiting, 1.0), _CHECK)):
                last = self._clock()
            elif not self._address.is_kept():
                break  # no client can connect any more, and the held lock would keep another server from starting
            elif is_replaced(self._facts.files):
                break  # if the program was removed, no client will come and notice
        self._close()
        while self._children:
            self._poll(60.0)

    def _leave(self, *_: object) -> None:
        self._leaving = True

    def _close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening = None
            self._address.leave()

    def _poll(self, seconds: float) -> bool:
        """Wait for an event, handle it, and return whether it was a request."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if self._listening is not None and len(self._children) < _MOST:
            poll.register(self._listening, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(min(seconds, 3600.0) * 1000)}
        if self._woken in ready:
            _drain(self._woken)
        self._reap()
        if self._leaving or self._listening is None or self._listening.fileno() not in ready:
            return False
        self._accept(self._listening)
        return True

    def _accept(self, listening: socket.socket) -> None:
        try:
            connection, _ = listening.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is free
            time.sleep(_RETRY)
            return
        try:
            if client.peer(connection)[1] != os.geteuid():
                return
            self._facts.served += 1
            pid = os.fork()
        except OSError:  # no process is free: the client's connection is closed
            time.sleep(_RETRY)
            return
        else:
            if pid == 0:
                self._become_child(connection)
            self._children.add(pid)
        finally:
            connection.close()

    def _become_child(self, connection: socket.socket) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            if self._listening is not None:
                self._listening.close()
            for descriptor in (self._address.lock, self._woken, self._wake):
                os.close(descriptor)
            serve(connection, self._facts, self._run)
        finally:
            os._exit(1)

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._children.clear()
                return
            if not pid:
                return
            self._children.discard(pid)
            if os.WIFSIGNALED(status):
                self._facts.ended[pid] = os.WTERMSIG(status)
                while len(self._facts.ended) > _REMEMBERED:
                    del self._facts.ended[next(iter(self._facts.ended))]


def _program_files() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield the program's files whose change reveals an upgrade, with their stamps.

    In an installed program these are the `__init__.py` files; in a source checkout, all modules.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = f"{os.sep}site-packages{os.sep}" in package
    for folder, _, names in os.walk(package):
        for name in names:
            if name.endswith(".py") and (not installed or name == "__init__.py"):
                path = os.path.join(folder, name)
                yield path, stamp(path)


def _library_files() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield the top-level file of each loaded library, with its stamp."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if "." not in name and path and f"{os.sep}site-packages{os.sep}" in path:
            yield path, stamp(path)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def is_clean_interpreter() -> bool:
    """Return whether this interpreter has default flags and a clean import path.

    `-m` also searches the current folder, and PYTHONPATH any folder. The warm process would then run a project's
    `shlex.py` for all of this user's projects.
    """
    flags = sys.flags
    if sys.warnoptions or flags.dev_mode or flags.optimize:
        return False
    if not flags.ignore_environment and any(os.environ.get(name) for name in ("PYTHONPATH", "PYTHONHOME")):
        return False
    is_script = getattr(sys.modules["__main__"], "__spec__", None) is None and sys.argv[0] != "-c"
    return is_script or flags.safe_path


def fork_server(run: Run, load: Callable[[], None], start: Callable[[], list[str]]) -> None:
    """Fork a warm process for later commands, and return at once.

    `load` imports the program. `start` returns the command that starts a warm process in a new interpreter; the fork
    runs that command if this interpreter must not serve other commands (see `is_clean_interpreter`).
    """
    if threading.active_count() > 1:  # a fork copies only the calling thread
        return
    try:
        address = ServerAddress()
    except AddressUnavailable:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if os.fork():
            address.close()
            return
    except OSError:
        address.close()
        return
    try:
        _detach(address.lock, address.socket.fileno())
        if not is_clean_interpreter():
            address.close()
            words = start()
            os.execv(words[0], words)
        load()
        Server(address, run).work()
    finally:
        os._exit(0)


def _detach(*keep: int) -> None:
    """Release everything that belongs to the caller, except the descriptors to keep.

    The streams go first, because another process may be waiting for them to close.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    gc.collect()  # an object collected later would close a descriptor that reuses its number
    first = 3
    for kept in (*sorted(keep), 65536):
        os.closerange(first, kept)
        first = kept + 1
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
