"""Pass a command to the warm process and wait for its exit status.

This module runs at the start of every command and hook, so it imports built-in modules only. Importing `socket` and
`signal` takes a fifth of the interpreter's startup time because of their enumerations; `_socket` and `_signal` have
the same functions without the enumerations (test_daemon.py, test_the_client_imports_built_in_modules_only).

The protocol: connect; wait for a child's HELLO with its process id; send the request with the descriptors of the
standard streams and of the working directory; wait for READY; send GO; wait for the status. Until GO the child does
nothing, and the caller can still run the command itself. A child that never receives GO exits, so a request cannot run
twice. No descriptor is sent before a child has answered: otherwise the queue of a stopped server would hold an agent's
pipe open.
"""

from __future__ import annotations

import _socket
import os
import sys
import time
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any
else:
    import _signal

_PATIENCE = 0.2  # seconds to wait for a server that does not answer; SNAPSTORE_DAEMON_PATIENCE overrides this
HELLO, READY, GO, DONE = b"H", b"R", b"G", b"D"
TERMINAL = b"T"  # a child asks whether it may read from the terminal; the same byte in reply means yes
RUN, STATUS, STOP, ENDED = b"run", b"status", b"stop", b"ended"
HEADER = 8  # bytes: the length of the request that follows

# Commands and options that the warm process does not serve. They run as long as a person works with them, or start the
# user's own command, which needs the caller's terminal. (The git and ssh processes of a push ask through snapstore: see
# git/remote/questions.py.)
_NOT_SERVED = frozenset(("run", "tui", "ui", "mcp", "git", "daemon"))
_NOT_SERVED_WITH = frozenset(("--exec",))
_STARTERS = frozenset(("hook", "turn"))  # the commands that leave a warm process behind
TERMINAL_ENCODING = "snapstore_terminal_encoding"  # the name of an -X option of the interpreter (cli/main.py)
_WITH_VALUE = frozenset(("-C", "--session"))  # the options before the command word that take a value

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LINUX = sys.platform == "linux"
_NAMESPACES = ("mnt", "pid", "net", "user")
# The lines of /proc/<pid>/status with a process's user and rights. A sandboxed caller must not escape its sandbox
# through the server, or be served with fewer rights than it has.
_RIGHTS = ("Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:")
_FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
MAY_BE_IGNORED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")


def is_off() -> bool:
    return os.environ.get("SNAPSTORE_DAEMON", "").lower() in ("0", "false", "no", "off")


def patience() -> float:
    try:
        return float(os.environ.get("SNAPSTORE_DAEMON_PATIENCE", _PATIENCE))
    except ValueError:
        return _PATIENCE


def command_word(arguments: Sequence[str]) -> str:
    """Return the command word of a command line, or "" if there is none."""
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def can_be_served(arguments: Sequence[str]) -> bool:
    """Return whether the warm process can run this command as the caller would."""
    word = command_word(arguments)
    # A process in another encoding restarts itself in UTF-8, with an option that names the terminal's encoding.
    if not word or word in _NOT_SERVED or sys.getfilesystemencoding() != "utf-8" or TERMINAL_ENCODING in sys._xoptions:
        return False
    return not any(
        argument.partition("=")[0] in _NOT_SERVED_WITH or "/dev/fd/" in argument or "/proc/self/" in argument
        for argument in arguments
    )


def leaves_warm_process(arguments: Sequence[str]) -> bool:
    """Return whether this command leaves a warm process behind for the next one."""
    return not is_off() and command_word(arguments) in _STARTERS


def identity(pid: int | None = None) -> bytes:
    """Describe the user, rights, namespaces and root directory of a process.

    Without `pid`, describe this process. A server serves only clients with its own identity.
    """
    if not _LINUX:
        return b"" if pid is not None else repr((os.getuid(), os.geteuid(), os.getgid(), os.getgroups())).encode()
    if pid == 0:  # the kernel reports 0 for a process in another pid namespace
        raise ProcessLookupError("a process in another pid namespace")
    process = f"/proc/{pid or 'self'}"
    found = [line for line in _read(f"{process}/status").decode("ascii", "replace").splitlines() if _is_right(line)]
    for name in _NAMESPACES:
        try:
            found.append(f"{name} {os.stat(f'{process}/ns/{name}').st_ino}")
        except FileNotFoundError:  # a kernel without this kind of namespace
            found.append(f"{name} none")
    root = os.stat(f"{process}/root/" if pid else "/")
    found.append(f"root {root.st_dev} {root.st_ino}")
    try:
        found.append(_read(f"{process}/attr/current").decode("utf-8", "replace"))
    except OSError:  # a kernel without security modules
        pass
    return "\n".join(found).encode()


def _is_right(line: str) -> bool:
    return line.startswith(_RIGHTS)


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)


def installation() -> bytes:
    """Identify the program by its install location and its interpreter."""
    return os.fsencode(f"{_PACKAGE}\n{sys.executable}\n{sys.hexversion}")


def runtime_folder() -> str:
    """Return the folder that holds this user's sockets."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/"):
        try:
            if os.stat(given).st_uid == os.geteuid():
                return f"{given}/snapstore"
        except OSError:
            pass
    return f"/tmp/snapstore-{os.geteuid()}"


def is_private(folder: str) -> bool:
    """Return whether a folder belongs to this user and is closed to everyone else."""
    try:
        st = os.lstat(folder)
    except OSError:
        return False
    return st.st_uid == os.geteuid() and st.st_mode & 0o170077 == 0o040000


def socket_path() -> str | None:
    """Return the server's address for this user and installation.

    Return None if the address's folder cannot be trusted.
    """
    folder = runtime_folder()
    if not is_private(folder):
        return None
    return f"{folder}/{socket_name()}"


def socket_name() -> str:
    return f"{crc32(identity() + installation()):08x}.sock"


def peer(connection: _socket.socket) -> tuple[int, int]:
    """Return the process id and the user id of a connection's peer."""
    if _LINUX:
        found = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return int.from_bytes(found[:4], sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)
    level, credentials, process = 0, 1, 2  # SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID of macOS
    found = connection.getsockopt(level, credentials, 76)
    pid = connection.getsockopt(level, process, 4)
    return int.from_bytes(pid, sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)


def connect(path: str) -> _socket.socket:
    """Connect to a server of this user."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(patience())
        connection.connect(path)
        if peer(connection)[1] != os.geteuid():
            raise ConnectionRefusedError("the server belongs to another user")
    except BaseException:
        connection.close()
        raise
    return connection


def pack(parts: Iterable[bytes]) -> bytes:
    """Encode a request from its parts, none of which may hold a NUL."""
    body = b"\0".join(parts)
    return len(body).to_bytes(HEADER, "little") + body


def ask(arguments: Sequence[str]) -> int | None:
    """Run a command in the warm process and return its exit status.

    Return None if the caller has to run the command itself.
    """
    if is_off() or not can_be_served(arguments):
        return None
    try:
        for number in (0, 1, 2):
            os.fstat(number)  # a closed stream cannot be passed on
        path = socket_path()
        connection = None if path is None else connect(path)
    except (OSError, ValueError):
        return None
    if path is None or connection is None:
        return None
    try:
        pid = _hand_over(connection, arguments)
        if pid is None:
            return None
        send = _signaller(pid)
        before = _forward_signals(send)
        try:
            connection.settimeout(None)
            connection.send(GO)
        except OSError:  # the child is gone and has done nothing
            _restore_signals(before)
            return None
        answer = _wait(connection)
    except OSError:
        return None
    finally:
        connection.close()
    return answer if answer is not None else _die_like(pid, path)


def _hand_over(connection: _socket.socket, arguments: Sequence[str]) -> int | None:
    """Send the request to a child, wait for READY, and return the child's process id.

    Return None if the child did not take the request.
    """
    deadline = time.monotonic() + patience()
    hello = connection.recv(5)
    if len(hello) != 5 or hello[:1] != HELLO:
        return None
    folder = os.open(".", os.O_DIRECTORY | (os.O_PATH if _LINUX else os.O_RDONLY))
    try:
        descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, folder))
        request = memoryview(pack(_parts(arguments)))
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)
        sent = connection.sendmsg([request[:65536]], [rights])
        while sent < len(request):
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            sent += connection.send(request[sent:])
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        if connection.recv(1) != READY:
            return None
    finally:
        os.close(folder)
    return int.from_bytes(hello[1:], "little")


def _parts(arguments: Sequence[str]) -> list[bytes]:
    umask = os.umask(0o077)
    os.umask(umask)
    ignored = [name for name in MAY_BE_IGNORED if _signal.getsignal(getattr(_signal, name)) is _signal.SIG_IGN]
    streams: list[Any] = [sys.stdin, sys.stdout, sys.stderr]
    environment = [name + b"=" + value for name, value in os.environb.items()]
    return [
        RUN,
        installation(),
        str(os.getppid()).encode(),
        str(umask).encode(),
        " ".join(ignored).encode(),
        " ".join(f"{stream.encoding}:{stream.errors}:{stream.write_through:d}" for stream in streams).encode(),
        os.fsencode(sys.argv[0]),
        str(len(arguments)).encode(),
        *map(os.fsencode, arguments),
        *environment,
    ]


def _wait(connection: _socket.socket) -> int | None:
    """Return the exit status, or None if the child died without sending one.

    Raise nothing: the command has begun and must not run again.
    """
    try:
        while (answer := connection.recv(1)) == TERMINAL:
            connection.send(TERMINAL if _may_read_terminal() else b"N")
        status = connection.recv(1) if answer == DONE else b""
    except OSError:
        return None
    return status[0] if status else None


def _may_read_terminal() -> bool:
    """Wait until this process may read from its terminal.

    A read of zero bytes triggers the kernel's usual job control: the kernel stops a background job until `fg`, or
    refuses the read if nobody could continue the process.
    """
    try:
        os.read(0, 0)
    except OSError:
        return False
    return True


def _signaller(pid: int) -> Callable[[int], None]:
    """Return a function that sends a signal to the child.

    A pidfd always refers to the same process; a process id may be reused.
    """
    descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def send(number: int) -> None:
        try:
            if descriptor is not None:
                _signal.pidfd_send_signal(descriptor, number)
            else:
                os.kill(pid, number)
        except ProcessLookupError:
            pass  # the child has already ended

    return send


def _forward_signals(send: Callable[[int], None]) -> dict[int, Any]:
    """Forward this process's signals to the child, and return the old handlers."""

    def forward(number: int, frame: object) -> None:
        send(number)

    def stop(number: int, frame: object) -> None:
        # The child's process group has no parent in its session, so the kernel would ignore SIGTSTP for it.
        send(_signal.SIGSTOP)
        os.kill(os.getpid(), _signal.SIGSTOP)

    before: dict[int, Any] = {}
    for name in _FORWARDED:
        number = getattr(_signal, name)
        if _signal.getsignal(number) is not _signal.SIG_IGN:
            before[number] = _signal.signal(number, forward)
    if _signal.getsignal(_signal.SIGTSTP) is not _signal.SIG_IGN:
        before[_signal.SIGTSTP] = _signal.signal(_signal.SIGTSTP, stop)
    return before


def _restore_signals(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        _signal.signal(number, handler)


def _die_like(pid: int, path: str) -> int:
    """End this process with the signal that killed the child; the server knows it."""
    deadline = time.monotonic() + patience()
    number = 0
    while not number and time.monotonic() < deadline:
        try:
            number = int(question(path, ENDED, str(pid).encode()) or 0)
        except (OSError, ValueError):
            break
    number = number or _signal.SIGKILL
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number  # reached only if the signal does not end a process


def question(path: str, *parts: bytes, at_least: float = 0.0) -> bytes:
    """Ask the server about itself and return its answer.

    The timeout is at least `at_least` seconds.
    """
    connection = connect(path)
    connection.settimeout(max(patience(), at_least))
    try:
        if connection.recv(5)[:1] != HELLO:
            return b""
        connection.send(pack([parts[0], installation(), *parts[1:]]))
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer
    finally:
        connection.close()
