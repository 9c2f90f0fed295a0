"""The warm process where other users, the disk, the clock or limits stand in the way: a command works as without it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import write
from test_daemon import NOBODY, ROOT, run, served, until
from warm import PROGRAM, Warm, runtime_folder, serving

from snapstore import Store
from snapstore.daemon import control

needs_root = pytest.mark.skipif(not ROOT or sys.platform != "linux", reason="needs root on Linux")


@pytest.fixture
def project(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one turn; commands in it may use a warm process."""
    monkeypatch.delenv("SNAPSTORE_DAEMON", raising=False)
    monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "30")
    write(root / "a", "0\n")
    days_ago = time.time() - 5 * 86400 - 3600  # "just now" would be "2s ago" a moment later
    with Store.open(root, create=True, clock=lambda: days_ago) as store, store.session("shell").turn("turn 1"):
        write(root / "a", "1\n")
    return root


# Other users.

PLANTED = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
listening.bind(sys.argv[1])
listening.listen()
print("ready", flush=True)
connection, _ = listening.accept()
try:
    connection.sendall(b"Hxxxx")
    told = len(connection.recv(65536))
except ConnectionError:
    told = 0
print(told, flush=True)
"""


@needs_root
def test_a_socket_that_another_user_planted_is_told_nothing(project: Path) -> None:
    """The folder is ours now, but the process that listens is not."""
    with serving() as real:
        name = real.socket.name
    with runtime_folder() as runtime:
        folder = runtime / "snapstore"
        folder.mkdir()
        for path in (runtime, folder):
            path.chmod(0o777)
        command = [sys.executable, "-c", PLANTED, str(folder / name), str(NOBODY)]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            folder.chmod(0o700)
            place = Warm(runtime, other, {})  # type: ignore[arg-type]
            assert run(place, project, "log") == run(None, project, "log")
            assert other.stdout.readline() == "0\n", "bytes of a request that it got"
        finally:
            other.kill()
            other.communicate()


ASKING = """
import os, socket, sys
os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(20)
connection.connect(sys.argv[1])
print(connection.recv(5))
"""


@needs_root
def test_another_user_who_reaches_the_socket_is_not_served(project: Path) -> None:
    with serving() as warm:
        before = warm.served()
        opened = (warm.runtime, warm.runtime / "snapstore", warm.socket)
        for path in opened:
            path.chmod(0o777)
        command = [sys.executable, "-c", ASKING, str(warm.socket), str(NOBODY)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "b''\n", "it closes the connection and says nothing"
        (warm.runtime / "snapstore").chmod(0o700)
        assert warm.served() == before + 1
        assert served(warm, lambda: run(warm, project, "log"))


# Descriptors.


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
@pytest.mark.parametrize("most", [5, 6, 7, 8, 10, 12])
def test_a_client_with_few_descriptors_works_as_without(project: Path, most: int) -> None:
    """The child has the client's limit, or the client has no descriptor left for the connection."""
    program = ["prlimit", f"--nofile={most}", *PROGRAM]
    with serving() as warm:
        for words in (["log"], ["show", "1"], ["log", "--json"]):
            alone, with_it = (run(place, project, *words, program=program) for place in (None, warm))
            assert with_it == alone
        assert served(warm, lambda: run(warm, project, "log"))


# A runtime folder that is full or read-only, also for root.


@contextmanager
def small_runtime(options: str) -> Iterator[Path]:
    with runtime_folder() as runtime:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "tmpfs", runtime], check=True)
        try:
            yield runtime
        finally:
            subprocess.run(["umount", "-l", runtime], check=True)


@needs_root
@pytest.mark.parametrize(
    ("options", "starts"),
    [
        *(("ro", False), ("nr_inodes=1", False), ("nr_inodes=2", False), ("nr_inodes=3", False)),
        *(("nr_inodes=4", True), ("size=4k", True)),
    ],
)
def test_a_full_or_read_only_runtime_folder(project: Path, options: str, starts: bool) -> None:
    """With no room for the folder, the lock or the socket nothing is left behind; the rehearsal may fail."""
    with small_runtime(options) as runtime:
        place = Warm(runtime, None, {})  # type: ignore[arg-type]
        assert run(place, project, "turn", "begin", "-q", "-m", "on a full disk") == (0, b"", b"")
        write(project / "a", "2\n")
        assert run(place, project, "turn", "end", "-q") == (0, b"", b"")
        assert b"on a full disk" in run(None, project, "log")[1]
        assert (project / "a").read_text() == "2\n"
        stopped = run(place, project, "daemon", "stop")
        assert stopped == (0, b"Stopped the warm process.\n" if starts else b"No warm process runs.\n", b"")


# The installation and the clock.


def test_a_removal_ends_it(project: Path, tmp_path: Path) -> None:
    """No client comes any more, so it looks itself."""
    import snapstore

    copy = tmp_path / "lib"
    shutil.copytree(Path(snapstore.__file__).parent, copy / "snapstore")
    with serving(program=[sys.executable, "-P", "-m", "snapstore"], PYTHONPATH=str(copy)) as warm:
        shutil.rmtree(copy)
        # A signal wakes it up; else it would look in half a minute.
        until(lambda: warm.process.send_signal(signal.SIGCHLD) or warm.process.poll() is not None)
        assert warm.process.returncode == 0
        assert list((warm.runtime / "snapstore").glob("*.sock")) == []


# A server whose clock stands in a file: `program -c CLOCKED file daemon run`.
CLOCKED = """
import sys
from pathlib import Path
from snapstore.daemon.address import ServerAddress
from snapstore.daemon.server import Server
place = ServerAddress()
server = Server(place, lambda arguments: 0, clock=lambda: float(Path(sys.argv[1]).read_text()))
print("Listening", flush=True)
server.work()
"""
DAY = 86400.0


@pytest.mark.parametrize(("jump", "leaves"), [(0.0, False), (DAY, True), (-DAY, False)])
def test_after_a_day_of_sleep_it_leaves(tmp_path: Path, jump: float, leaves: bool) -> None:
    """A sleeping computer wakes up with another time of day; the waiting of the process has not gone on meanwhile."""
    clock = tmp_path / "clock"
    set_clock(clock, 10 * DAY)
    with serving(program=[sys.executable, "-c", CLOCKED, str(clock)]) as warm:
        assert warm.served() == 1, "it works"
        set_clock(clock, 10 * DAY + jump)
        if not leaves:
            warm.process.send_signal(signal.SIGCHLD)
            assert warm.served() == 2
            # A clock that was set back keeps it no longer than any other.
            set_clock(clock, 10 * DAY + jump + 16 * 60)
        # A signal wakes it up, as the kernel does after a sleep.
        until(lambda: warm.process.send_signal(signal.SIGCHLD) or warm.process.poll() is not None)
        assert warm.process.returncode == 0


def set_clock(clock: Path, now: float) -> None:
    new = clock.with_suffix(".new")
    new.write_text(str(now))
    new.replace(clock)


# A server that has its address and does not listen yet, until it is told to.
LOADING = """
import sys
from snapstore.daemon.address import ServerAddress
from snapstore.daemon.server import Server
place = ServerAddress()
print("bound", flush=True)
sys.stdin.readline()
Server(place, lambda arguments: 0).work()
"""


def test_one_that_still_loads_the_program_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`daemon stop` right after a hook said that none runs, and a moment later one did."""
    refused = threading.Event()
    is_starting = control._is_starting

    def look(path: str) -> bool:
        refused.set()
        return is_starting(path)

    monkeypatch.setattr(control, "_is_starting", look)
    with runtime_folder() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        command = [sys.executable, "-c", LOADING]
        loading = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert loading.stdin is not None and loading.stdout is not None
            assert loading.stdout.readline() == b"bound\n"
            with ThreadPoolExecutor(1) as pool:
                stopped = pool.submit(control.stop)
                assert refused.wait(20)
                loading.stdin.write(b"\n")
                loading.stdin.flush()
                assert stopped.result(20)
            assert loading.wait(20) == 0
        finally:
            loading.kill()
            loading.communicate()
        assert not control.stop()
