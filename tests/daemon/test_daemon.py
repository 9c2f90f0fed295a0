"""The warm process gives the same results as a process of its own, and is never needed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import write
from warm import PROGRAM, Warm, runtime_folder, serving

from snapstore import Store
from snapstore.daemon import address, client

ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture
def warm() -> Iterator[Warm]:
    with serving() as place:
        yield place


@pytest.fixture
def project(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two turns; commands in it may use a warm process."""
    monkeypatch.delenv("SNAPSTORE_DAEMON", raising=False)
    monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "30")  # on a busy machine a client would rather work alone
    write(root / "a", "0\n")
    # Days ago: "just now" would be "2s ago" a moment later.
    with Store.open(root, create=True, clock=lambda: time.time() - 5 * 86400 - 3600) as store:
        session = store.session("s")
        for number in (1, 2):
            with session.turn(f"turn {number}"):
                write(root / "a", f"{number}\n")
    return root


def environment(warm: Warm | None, **more: str) -> dict[str, str]:
    env = {**os.environ, **more}
    if warm is None:
        env["SNAPSTORE_DAEMON"] = "0"
    else:
        env["XDG_RUNTIME_DIR"] = str(warm.runtime)
    return env


def run(
    warm: Warm | None, folder: Path, *words: str, feed: bytes = b"", program: list[str] = PROGRAM, **more: str
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [*program, *words], cwd=folder, env=environment(warm, **more), input=feed, capture_output=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def served(warm: Warm, action: Callable[[], object]) -> bool:
    """Whether the warm process did it."""
    before = warm.served()
    action()
    return warm.served() - before > 1


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the project's store: a command that writes waits."""
    with Store.open(folder) as store:
        path = f"{store.state}/lock"
    with open(path, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def waiting(warm: Warm, project: Path, *words: str, **options: object) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A client whose child waits for the store's lock. Gives both."""
    with locked(project):
        process = subprocess.Popen(
            [*PROGRAM, *(words or ("turn", "begin", "-q", "-m", "later"))],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(warm, SNAPSTORE_LOCK_TIMEOUT="60"),
            **options,  # type: ignore[call-overload]
        )
        try:
            until(lambda: any(map(_waits, warm.children())))
            yield process, next(filter(_waits, warm.children()))
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:  # not read to the end: the child, which holds it too, waits for our lock
                    stream.close()


def _waits(pid: int) -> bool:
    """Whether a process has opened the store's lock, and so waits for it."""
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}").endswith("/state/lock") for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


# The client.


def test_the_client_imports_built_in_modules_only() -> None:
    code = "import sys; before = set(sys.modules); import snapstore.__main__; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    allowed = {"__future__", "_socket", "binascii", "gc", "time"}
    modules = {name for name in done.stdout.split() if not name.startswith("snapstore")}
    assert modules <= allowed
    ours = {name for name in done.stdout.split() if name.startswith("snapstore")}
    assert ours == {"snapstore", "snapstore.__main__", "snapstore.daemon", "snapstore.daemon.client"}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["log"], "log"),
        (["-C", "x", "--session", "y", "--json", "undo", "2"], "undo"),
        (["--help"], ""),
        ([], ""),
        (["-C"], ""),
    ],
)
def test_the_command_is_found_among_options(words: list[str], command: str) -> None:
    assert client.command_word(words) == command


@pytest.mark.parametrize(
    "words",
    [
        *(["run", "--", "true"], ["tui"], ["ui"], ["mcp"], ["git", "log"], ["fork", "--exec"]),
        *(["import", "/dev/fd/63"], ["daemon"], []),
        *(["export", "--since=/dev/fd/63", "x"], ["-C/proc/self/cwd", "log"]),
    ],
)
def test_what_needs_the_callers_own_process_is_not_handed_over(words: list[str]) -> None:
    assert not client.can_be_served(words)


# The same results.

READING = [
    ["log"],
    ["log", "--json"],
    ["checkpoints", "--json"],
    ["show", "2"],
    ["show", "99"],
    ["diff"],
    ["tree"],
    ["frobnicate"],
    ["undo", "--frobnicate"],
    ["undo", "--help"],
    ["undo", "--preview"],
    ["turn", "end"],
    ["-C", "missing", "log"],
    ["--session", "nobody", "log"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_output_and_status_are_the_same(warm: Warm, project: Path, words: list[str]) -> None:
    alone = run(None, project, *words)
    assert served(warm, lambda: None) is False
    results: list[tuple[int, bytes, bytes]] = []
    assert served(warm, lambda: results.append(run(warm, project, *words)))
    assert results == [alone]


def test_a_turn_and_a_move_are_the_same(warm: Warm, project: Path) -> None:
    for number, place in enumerate((warm, None, warm, None)):
        assert run(place, project, "turn", "begin", "-m", f"prompt {number}")[0] == 0
        write(project / "b", f"{number}\n")
        assert run(place, project, "turn", "end")[0] == 0
        assert run(place, project, "undo", "-y")[0] == 0
        assert (project / "b").exists() == (number > 0)
        assert run(place, project, "redo", "-y")[0] == 0
        assert (project / "b").read_text() == f"{number}\n"
    document = json.loads(run(warm, project, "--session", "shell", "log", "--json")[1])
    assert [node["prompt"] for node in document["nodes"] if node["turn"]] == [f"prompt {number}" for number in range(4)]
    assert run(None, project, "check")[0] == 0


def test_both_streams_keep_their_order(warm: Warm, project: Path, tmp_path: Path) -> None:
    texts = []
    for place in (None, warm):
        with (tmp_path / "both").open("wb") as both:
            command = [*PROGRAM, "undo", "-y", "--preview"]
            subprocess.run(command, cwd=project, env=environment(place), stdout=both, stderr=both, check=True)
        texts.append((tmp_path / "both").read_bytes())
    assert texts[0] == texts[1]


def test_a_closed_pipe_is_the_same(warm: Warm, project: Path) -> None:
    found = []
    for place in (None, warm):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*PROGRAM, "log"], cwd=project, env=environment(place), stdout=writing, stderr=subprocess.PIPE
        )
        os.close(writing)
        found.append((done.returncode, done.stderr))
    assert found[0] == found[1]
    assert found[0][0] == 141


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_obstacle(warm: Warm, project: Path, closed: str) -> None:
    command = " ".join([*PROGRAM, "log", closed])
    done = [
        subprocess.run(["sh", "-c", command], cwd=project, env=environment(place), capture_output=True)
        for place in (None, warm)
    ]
    assert (done[0].returncode, done[0].stdout) == (done[1].returncode, done[1].stdout)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("full", ["stdout", "stderr"])
def test_a_full_disk_for_the_output_is_the_same(warm: Warm, project: Path, full: str, unbuffered: str) -> None:
    done = []
    for place in (None, warm):
        env = environment(place, PYTHONUNBUFFERED=unbuffered)
        with open("/dev/full", "wb") as disk:
            streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, full: disk}
            command = [*PROGRAM, *(["log"] if full == "stdout" else ["show", "99"])]
            ended = subprocess.run(command, cwd=project, env=env, **streams)
            done.append((ended.returncode, ended.stdout, ended.stderr))
    assert done[0] == done[1]


# What the child takes over.


def test_the_child_becomes_the_caller(warm: Warm, project: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def prepare() -> None:
        os.umask(0o027)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 123), hard))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with waiting(warm, project, preexec_fn=prepare) as (_, child):
        status = Path(f"/proc/{child}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert int(fields["Umask"], 8) == 0o027
        assert int(fields["SigIgn"], 16) & 1 << signal.SIGHUP - 1
        assert not int(fields["SigIgn"], 16) & 1 << signal.SIGTERM - 1
        assert os.getpriority(os.PRIO_PROCESS, child) == os.getpriority(os.PRIO_PROCESS, 0) + 3
        assert resource.prlimit(child, resource.RLIMIT_NOFILE)[0] == min(soft, 123)
        assert os.readlink(f"/proc/{child}/cwd") == str(project.resolve())
        assert os.getpgid(child) == child


def test_whoever_holds_the_lock_has_the_callers_name(warm: Warm, project: Path, tmp_path: Path) -> None:
    """ "The store is in use by 4711 snapstore turn begin", whatever the server was started as."""
    with Store.open(project) as store:
        lock = Path(store.state, "lock")
    write(tmp_path / "mysnap", "from snapstore.__main__ import main\nraise SystemExit(main())\n")
    program = [sys.executable, str(tmp_path / "mysnap")]
    assert served(warm, lambda: run(warm, project, "turn", "begin", "-q", program=program))
    assert lock.read_text().split()[1:3] == [program[1], "turn"]


def test_no_descriptor_of_a_client_stays_in_the_server(warm: Warm, project: Path) -> None:
    def descriptors() -> dict[str, str]:
        folder = f"/proc/{warm.pid}/fd"
        return {name: os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}

    before = descriptors()
    for _ in range(3):
        run(warm, project, "log")
    with waiting(warm, project):
        assert descriptors() == before
    assert descriptors() == before
    assert len(before) <= 8


def test_the_environment_is_the_callers(warm: Warm, project: Path) -> None:
    assert run(warm, project, "log", SNAPSTORE_SESSION="nobody")[0] == 16
    assert run(warm, project, "log")[0] == 0
    assert run(warm, project, "log", SNAPSTORE_HOME=str(project / "elsewhere"))[0] == 13
    late = run(warm, project, "show", "1", TZ="Pacific/Kiritimati")[1]
    assert late == run(None, project, "show", "1", TZ="Pacific/Kiritimati")[1]


def test_a_long_environment_and_long_arguments(warm: Warm, project: Path) -> None:
    long = {f"LONG_{number}": "x" * 100_000 for number in range(10)}
    results: list[tuple[int, bytes, bytes]] = []
    words = ["turn", "begin", "-q", "-m", "y" * 100_000]
    assert served(warm, lambda: results.append(run(warm, project, *words, **long)))
    assert results == [(0, b"", b"")]
    write(project / "b", "")
    assert run(warm, project, "turn", "end", "-q")[0] == 0
    document = json.loads(run(warm, project, "--session", "shell", "log", "--json")[1])
    assert document["nodes"][-1]["prompt"] == "y" * 100_000


def test_a_folder_that_is_gone(warm: Warm, tmp_path: Path) -> None:
    done = []
    for place in (None, warm):
        (tmp_path / "gone").mkdir()
        command = f'rmdir "$PWD"; exec {" ".join(PROGRAM)} log'
        env = environment(place)
        ended = subprocess.run(["sh", "-c", command], cwd=tmp_path / "gone", env=env, capture_output=True)
        done.append((ended.returncode, ended.stdout, ended.stderr))
    assert done[0] == done[1]


def test_names_that_are_not_utf_8(warm: Warm, project: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    write(os.fsencode(project) + b"/caf\xe9", "1")
    assert run(warm, project, "diff", "--", name) == run(None, project, "diff", "--", name)


# Signals.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_ends_both(warm: Warm, project: Path, number: signal.Signals) -> None:
    with waiting(warm, project) as (process, child):
        process.send_signal(number)
        assert process.wait(20) == -number
        until(lambda: child not in warm.children())


def test_an_interrupt_is_told_as_always(warm: Warm, project: Path) -> None:
    with waiting(warm, project) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert b"interrupted" in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_death_of_the_child_comes_through(warm: Warm, project: Path, number: signal.Signals) -> None:
    with waiting(warm, project) as (process, child):
        os.kill(child, number)
        assert process.wait(20) == -number
    assert run(warm, project, "log")[0] == 0


def test_a_client_that_is_killed_leaves_finished_work(warm: Warm, project: Path) -> None:
    with waiting(warm, project) as (process, child):
        process.kill()
        process.wait()
        assert child in warm.children()
    until(lambda: child not in warm.children())
    with Store.open(project) as store:
        turn = store.open_turn("shell")
        assert turn is not None
        assert turn.prompt == "later"


def test_a_client_that_is_killed_leaves_no_pipe_open(warm: Warm, project: Path) -> None:
    """An agent that kills a slow hook may wait for the end of its output."""
    with waiting(warm, project) as (process, child):
        process.kill()
        assert process.communicate(timeout=20) == (b"", b"")
        assert child in warm.children()
    until(lambda: child not in warm.children())
    with Store.open(project) as store:
        assert store.open_turn("shell") is not None


def test_stop_and_continue(warm: Warm, project: Path) -> None:
    with waiting(warm, project) as (process, child):
        process.send_signal(signal.SIGTSTP)
        until(lambda: _state(child) == "T" and _state(process.pid) == "T")
        process.send_signal(signal.SIGCONT)
        until(lambda: _state(child) != "T")
        process.terminate()
        assert process.wait(20) == -signal.SIGTERM


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# Without it, and with a bad one.


def test_it_is_off_where_somebody_says_so(warm: Warm, project: Path) -> None:
    for value in ("0", "false", "off"):
        assert not served(warm, lambda value=value: run(warm, project, "log", SNAPSTORE_DAEMON=value))  # type: ignore[misc]


def test_a_killed_server_is_not_missed_and_a_turn_leaves_another(project: Path) -> None:
    with serving() as warm:
        warm.process.kill()
        warm.process.wait()
        assert run(warm, project, "log")[0] == 0
        assert run(warm, project, "turn", "begin", "-q")[0] == 0  # leaves a server behind
        pid = _left_behind(warm)
        try:
            assert run(warm, project, "turn", "cancel", "-q")[0] == 0
            assert served(warm, lambda: run(warm, project, "log"))
        finally:
            _stop(warm, pid)


def _left_behind(warm: Warm) -> int:
    """The server that a command has left: it loads what it needs, then listens."""
    found: list[bytes] = []

    def asks() -> bool:
        try:
            found[:] = client.question(str(warm.socket), client.STATUS).split()
        except (OSError, StopIteration):
            return False
        return bool(found)

    until(asks)
    return int(found[0])


def _stop(warm: Warm, pid: int) -> None:
    client.question(str(warm.socket), client.STOP)
    until(lambda: not Path(f"/proc/{pid}").exists() or _state(pid) == "Z")


def test_a_hook_leaves_one_behind_that_holds_nothing_of_the_agents(project: Path) -> None:
    payload = {"session_id": "x", "cwd": str(project), "hook_event_name": "UserPromptSubmit", "prompt": "p"}
    with runtime_folder() as runtime:
        place = Warm(runtime, None, {})  # type: ignore[arg-type]
        done = run(place, project, "hook", "claude", feed=json.dumps(payload).encode())
        assert done == (0, b"", b"")  # and the pipes were closed, or this would not have returned
        pid = _left_behind(place)
        try:
            assert os.readlink(f"/proc/{pid}/cwd") == "/"
            names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            assert not [name for name in names if "stores" in name or "project" in name]
            assert names.count("/dev/null") >= 3
            assert os.getsid(pid) == pid
            memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            assert memory < 60e6
        finally:
            _stop(place, pid)
        assert list((runtime / "snapstore").glob("*.sock")) == []


@pytest.mark.parametrize("by", ["the current folder", "PYTHONPATH"])
def test_one_left_behind_has_no_module_of_the_caller(project: Path, tmp_path: Path, by: str) -> None:
    """What one project has in its folders must not serve another."""
    write(tmp_path / "other" / "shlex.py", "def quote(text): return 'not ours'\nsplit = join = quote\n")
    more = {} if by == "the current folder" else {"PYTHONPATH": str(tmp_path / "other")}
    folder = tmp_path / "other" if by == "the current folder" else project
    with runtime_folder() as runtime:
        place = Warm(runtime, None, {})  # type: ignore[arg-type]
        assert run(place, folder, "-C", str(project), "turn", "begin", "-q", **more)[0] == 0
        pid = _left_behind(place)
        try:
            shown: list[tuple[int, bytes, bytes]] = []
            assert served(place, lambda: shown.append(run(place, project, "connect", "claude", "--dry-run")))
            assert shown == [run(None, project, "connect", "claude", "--dry-run")]
        finally:
            _stop(place, pid)


def test_nothing_is_left_behind_when_it_is_off(project: Path) -> None:
    with runtime_folder() as runtime:
        place = Warm(runtime, None, {})  # type: ignore[arg-type]
        assert run(place, project, "turn", "begin", "-q", SNAPSTORE_DAEMON="0")[0] == 0
        assert run(place, project, "log")[0] == 0  # a command that only reads leaves none
        assert list(runtime.iterdir()) == []


def test_a_project_can_do_without(project: Path) -> None:
    assert run(None, project, "config", "set", "daemon", "false")[0] == 0
    with runtime_folder() as runtime:
        place = Warm(runtime, None, {})  # type: ignore[arg-type]
        assert run(place, project, "turn", "begin", "-q")[0] == 0
        assert list(runtime.iterdir()) == []


def test_a_stopped_server_delays_and_does_nothing_twice(
    warm: Warm, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(warm.pid, signal.SIGSTOP)
    monkeypatch.delenv("SNAPSTORE_DAEMON_PATIENCE")
    assert run(warm, project, "turn", "begin", "-q", "-m", "once")[0] == 0
    write(project / "b", "1")
    assert run(warm, project, "turn", "end", "-q")[0] == 0
    os.kill(warm.pid, signal.SIGCONT)
    monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "30")
    until(lambda: not warm.children() and warm.served() > 2)  # it has seen the requests that were given up
    document = json.loads(run(warm, project, "--session", "shell", "log", "--json")[1])
    assert [node["prompt"] for node in document["nodes"] if node["turn"]] == ["once"]
    assert json.loads(run(warm, project, "status", "--json")[1])["open_turns"] == []


@pytest.mark.parametrize(
    "answer", [b"", b"garbage that goes on and on", client.HELLO, client.HELLO + b"\xff\xff\xff\x7f", None]
)
def test_a_server_that_answers_nonsense_is_not_used(
    project: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    """None: it never answers."""
    monkeypatch.delenv("SNAPSTORE_DAEMON_PATIENCE")
    with serving() as real:
        name = real.socket.name
    with runtime_folder() as runtime, socket.socket(socket.AF_UNIX) as listening:
        (runtime / "snapstore").mkdir(mode=0o700)
        listening.bind(str(runtime / "snapstore" / name))
        listening.listen()
        connections = []

        def respond() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                connections.append(connection)
                if answer is not None:
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=respond)
        thread.start()
        try:
            place = Warm(runtime, None, {})  # type: ignore[arg-type]
            assert run(place, project, "log") == run(None, project, "log")
            assert connections, "it was asked"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@pytest.mark.parametrize(
    "request_",
    [
        *(b"", b"x", b"\xff" * 8, b"\0" * 8, client.pack([b"run"]), client.pack([b"run", client.installation()])),
        *(client.pack([b"run", b"another installation", b""]), (1 << 20).to_bytes(8, "little") + b"cut short"),
    ],
)
def test_a_bad_request_hurts_nobody(warm: Warm, project: Path, request_: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(warm.socket))
        assert connection.recv(5)[:1] == client.HELLO
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1000):
            pass
    assert served(warm, lambda: run(warm, project, "log"))


def test_a_request_that_never_comes_hurts_nobody(warm: Warm, project: Path) -> None:
    idlers = []
    for _ in range(5):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(warm.socket))
        idlers.append(connection)
    assert served(warm, lambda: run(warm, project, "log"))
    for connection in idlers:
        connection.close()


def test_many_clients_at_once(warm: Warm, project: Path) -> None:
    wanted = run(None, project, "log", "--json")
    env = environment(warm)
    pipe = subprocess.PIPE
    crowd = [
        subprocess.Popen(
            [*PROGRAM, "log", "--json"], cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        for _ in range(60)
    ]
    for process in crowd:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == wanted
    assert served(warm, lambda: run(warm, project, "log"))


def test_a_server_without_descriptors_is_not_missed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as warm:
        monkeypatch.delenv("SNAPSTORE_DAEMON_PATIENCE")
        resource.prlimit(warm.pid, resource.RLIMIT_NOFILE, (6, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        assert run(warm, project, "log")[0] == 0
        resource.prlimit(warm.pid, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
        monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "30")
        until(lambda: served(warm, lambda: run(warm, project, "log")))


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_folder_that_others_can_enter_is_not_trusted(project: Path, mode: int) -> None:
    with serving() as warm:
        (warm.runtime / "snapstore").chmod(mode)
        assert run(warm, project, "log")[0] == 0
        (warm.runtime / "snapstore").chmod(0o700)
        assert warm.served() == 1


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_a_folder_of_somebody_else_is_not_trusted(project: Path) -> None:
    with serving() as warm:
        os.chown(warm.runtime / "snapstore", NOBODY, NOBODY)
        assert run(warm, project, "log")[0] == 0
        os.chown(warm.runtime / "snapstore", 0, 0)
        assert warm.served() == 1


def test_without_a_runtime_folder_there_is_one_below_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (str(tmp_path / "missing"), "relative", ""):
        monkeypatch.setenv("XDG_RUNTIME_DIR", given)
        assert client.runtime_folder() == f"/tmp/snapstore-{os.geteuid()}"


@pytest.mark.parametrize("kind", ["a file", "read-only"])
def test_a_runtime_folder_that_cannot_be_used(project: Path, tmp_path: Path, kind: str) -> None:
    runtime = tmp_path / "runtime"
    if kind == "a file":
        runtime.write_text("")
    elif ROOT:
        pytest.skip("root may write anywhere")
    else:
        runtime.mkdir(mode=0o500)
    place = Warm(runtime, None, {})  # type: ignore[arg-type]
    assert run(place, project, "turn", "begin", "-q") == (0, b"", b"")
    assert run(place, project, "turn", "cancel", "-q") == (0, b"", b"")
    assert not (runtime / "snapstore").exists()


@pytest.mark.skipif(not ROOT or not shutil.which("unshare"), reason="needs root and unshare")
@pytest.mark.parametrize("apart", [["unshare", "--mount"], ["unshare", "--net"], ["setpriv", "--no-new-privs"]])
def test_another_namespace_or_sandbox_is_not_served(warm: Warm, project: Path, apart: list[str]) -> None:
    if not shutil.which(apart[0]):
        pytest.skip(f"{apart[0]} is not installed")
    done: list[tuple[int, bytes, bytes]] = []
    assert not served(warm, lambda: done.append(run(warm, project, "log", program=[*apart, *PROGRAM])))
    assert done == [run(None, project, "log")]


def test_a_caller_that_lies_about_its_rights_is_refused(warm: Warm, project: Path) -> None:
    """The server looks itself: what a sandboxed process says about itself counts for nothing."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    code = (
        "import os, sys; from snapstore.daemon import client; "
        f"os.environ['XDG_RUNTIME_DIR'] = {str(warm.runtime)!r}; "
        f"client.socket_path = lambda: {str(warm.socket)!r}; "
        "print(client.ask(['log']))"
    )
    done = subprocess.run(
        ["setpriv", "--no-new-privs", sys.executable, "-c", code],
        cwd=project,
        env=environment(warm),
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "None", done


@pytest.mark.skipif(not ROOT or not shutil.which("unshare"), reason="needs root and unshare")
def test_a_caller_that_cannot_be_seen_is_refused(project: Path) -> None:
    """For a caller outside its pid namespace the server sees process 0."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with serving(program=[*apart, *PROGRAM]) as warm:
        code = (
            "from snapstore.daemon import client; "
            f"client.socket_path = lambda: {str(warm.socket)!r}; "
            "print(client.ask(['log']))"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=project, env=environment(warm), capture_output=True)
        assert (done.stdout, done.stderr) == (b"None\n", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is of Linux")
def test_a_second_sandbox_inside_the_first_is_another_identity() -> None:
    """In a container every process has a filter already; what a sandbox in it adds must still be seen."""
    code = """if True:
        import ctypes, struct
        from snapstore.daemon import client, server

        libc = ctypes.CDLL(None, use_errno=True)
        allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), 8)
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)), 16)
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
        seen = []
        for _ in range(2):
            if libc.prctl(22, 2, program, 0, 0):  # a filter that allows everything
                raise SystemExit(77)
            seen.append(client.identity())
        assert seen[0] != seen[1]
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("filters cannot be set here")
    assert done.returncode == 0, done.stderr


# Its life.


def test_an_upgrade_ends_it(project: Path, tmp_path: Path) -> None:
    import snapstore

    copy = tmp_path / "lib"
    shutil.copytree(Path(snapstore.__file__).parent, copy / "snapstore")
    with serving(program=[sys.executable, "-P", "-m", "snapstore"], PYTHONPATH=str(copy)) as warm:
        program = [sys.executable, "-P", "-m", "snapstore"]
        assert served(warm, lambda: run(warm, project, "log", program=program, PYTHONPATH=str(copy)))
        # Another installation works alone, and does not disturb it.
        assert not served(warm, lambda: run(warm, project, "log"))
        write(copy / "snapstore/errors.py", (copy / "snapstore/errors.py").read_text() + "\n# newer\n")
        assert run(warm, project, "log", program=program, PYTHONPATH=str(copy))[0] == 0
        assert warm.process.wait(20) == 0
        assert list((warm.runtime / "snapstore").glob("*.sock")) == []


def test_it_leaves_when_nobody_needs_it(project: Path) -> None:
    with serving("--idle", "0.2") as warm:
        assert warm.process.wait(20) == 0
        assert list((warm.runtime / "snapstore").glob("*.sock")) == []
        assert run(warm, project, "log")[0] == 0


def test_it_leaves_when_its_address_is_gone(project: Path) -> None:
    with serving() as warm:
        warm.socket.unlink()
        # A signal wakes it up; else it would look in half a minute.
        until(lambda: warm.process.send_signal(signal.SIGCHLD) or warm.process.poll() is not None)
        assert warm.process.returncode == 0


def test_a_second_one_does_not_start(warm: Warm) -> None:
    done = run(warm, Path("/"), "daemon", "run")
    assert done[0] == 11
    assert warm.served() == 1


def test_what_a_dead_one_left_is_taken_over(project: Path) -> None:
    with serving() as warm:
        warm.process.kill()
        warm.process.wait()
        assert warm.socket.exists()
        with subprocess.Popen([*PROGRAM, "daemon", "run"], env=warm.environment, stdout=subprocess.PIPE) as second:
            assert second.stdout is not None
            assert second.stdout.readline().startswith(b"Listening")
            assert served(warm, lambda: run(warm, project, "log"))
            second.terminate()


def test_status_tells_of_it(warm: Warm, project: Path) -> None:
    served = json.loads(run(warm, project, "status", "--json")[1])
    alone = json.loads(run(None, project, "status", "--json")[1])
    assert (served.pop("warm_process"), alone.pop("warm_process")) == (warm.pid, None)
    assert served == alone
    assert f"warm     process {warm.pid}".encode() in run(warm, project, "status")[1]
    assert b"warm " not in run(None, project, "status")[1]


def test_it_can_be_seen_and_stopped(warm: Warm, project: Path) -> None:
    run(warm, project, "log")
    status = json.loads(run(warm, project, "daemon", "status", "--json")[1])
    assert (status["running"], status["pid"], status["socket"]) == (True, warm.pid, str(warm.socket))
    assert status["served"] == 2
    assert f"{warm.pid}".encode() in run(warm, project, "daemon")[1]
    assert json.loads(run(warm, project, "daemon", "stop", "--json")[1]) == {"stopped": True}
    assert warm.process.wait(20) == 0
    assert json.loads(run(warm, project, "daemon", "status", "--json")[1])["running"] is False
    assert json.loads(run(warm, project, "daemon", "stop", "--json")[1]) == {"stopped": False}


def test_one_that_hangs_can_be_seen_and_stopped(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "1")  # it never answers: to wait longer shows nothing more
    with serving() as warm:
        os.kill(warm.pid, signal.SIGSTOP)
        assert f"{warm.pid} does not answer".encode() in run(warm, project, "daemon", "status")[1]
        shown = json.loads(run(warm, project, "daemon", "status", "--json")[1])
        assert (shown["running"], shown["pid"]) == (True, warm.pid)
        assert run(warm, project, "daemon", "stop")[1] == b"Stopped the warm process.\n"
        assert warm.process.wait(20) == -signal.SIGKILL
        assert run(warm, project, "daemon", "stop")[1] == b"No warm process runs.\n"


@pytest.mark.parametrize("kind", ["a long name", "a folder in the way"])
def test_where_no_address_can_be_had_nothing_is_started(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Each hook would leave one behind that loads everything, and fails."""
    with runtime_folder() as runtime:
        folder = runtime / ("r" * 120) if kind == "a long name" else runtime
        (folder / "snapstore").mkdir(parents=True)
        if kind == "a folder in the way":
            (folder / "snapstore" / client.socket_name()).mkdir()
        (folder / "snapstore").chmod(0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(address.AddressUnavailable):
            address.ServerAddress()
        assert len(os.listdir("/proc/self/fd")) == before


def test_one_that_leaves_takes_no_address_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime folder that was removed and made again belongs to the next server."""
    with runtime_folder() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        first = address.ServerAddress()
        (runtime / "snapstore").rename(runtime / "removed")
        second = address.ServerAddress()
        first.leave()
        assert Path(second.path).exists()
        second.leave()
        assert not Path(second.path).exists()


def test_a_command_that_runs_is_finished_when_it_is_stopped(warm: Warm, project: Path) -> None:
    with waiting(warm, project) as (process, child):
        assert run(warm, project, "daemon", "stop")[0] == 0
        assert Path(f"/proc/{child}").exists()
        assert process.poll() is None
    until(lambda: not Path(f"/proc/{child}").exists())


# On a terminal.


class Terminal:
    """A shell-like parent of one client: a session with a controlling terminal."""

    def __init__(self, warm: Warm, project: Path, *words: str, program: list[str] = PROGRAM) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(project)
            os.execvpe(program[0], [*program, *words], environment(warm, TERM="dumb"))
        self.seen = b""

    def read_until(self, text: bytes) -> None:
        until(lambda: self._more() or text in self.seen)

    def _more(self) -> None:
        if select.select([self.master], [], [], 0.02)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:  # everybody has closed it
                pass

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def status(self) -> int:
        found: list[int] = []

        def ended() -> bool:
            self._more()  # somebody has to read, or its last words would not fit
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            found.append(status)
            return pid != 0

        until(ended)
        return os.waitstatus_to_exitcode(found[-1])

    def close(self) -> None:
        os.close(self.master)


@pytest.fixture
def terminal(warm: Warm, project: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*words: str, program: list[str] = PROGRAM) -> Terminal:
        opened.append(Terminal(warm, project, *words, program=program))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize(("answer", "left", "status"), [(b"y\n", "0\n", 0), (b"n\n", "2\n", 1)])
def test_a_question_is_asked_on_the_terminal(
    warm: Warm, project: Path, terminal: Callable[..., Terminal], answer: bytes, left: str, status: int
) -> None:
    before = warm.served()
    asked = terminal("undo", "2")
    asked.read_until(b"[y/N]")
    asked.type(answer)
    assert asked.status() == status
    assert (project / "a").read_text() == left
    assert warm.served() == before + 2


def test_ctrl_c_at_a_question(project: Path, terminal: Callable[..., Terminal]) -> None:
    asked = terminal("undo", "2")
    asked.read_until(b"[y/N]")
    asked.type(b"\x03")
    assert asked.status() == 130
    assert (project / "a").read_text() == "2\n"


def test_a_client_killed_at_a_question_reads_nothing_more(
    warm: Warm, project: Path, terminal: Callable[..., Terminal]
) -> None:
    asked = terminal("undo", "2")
    asked.read_until(b"[y/N]")
    [child] = warm.children()
    os.kill(asked.pid, signal.SIGKILL)
    assert asked.status() == -signal.SIGKILL
    until(lambda: child not in warm.children())
    assert (project / "a").read_text() == "2\n"


_WAIT_UNTIL_STOPPED = "until jobs -s | grep -q .; do sleep 0.05; done; echo it stands; read -r typed; echo got $typed"


def _in_a_shell(terminal: Callable[..., Terminal], begin: str) -> Terminal:
    """Run `undo 2` as a job of a shell, and type a line to the shell while the job is in the background."""
    job = " ".join([*PROGRAM, "undo", "2"])
    return terminal(f"{begin.format(job=job)}; {_WAIT_UNTIL_STOPPED}; fg", program=["bash", "--norc", "-mc"])


def _answer_in_the_foreground(shell: Terminal, project: Path) -> None:
    shell.read_until(b"it stands")
    shell.type(b"words\n")
    shell.read_until(b"got words")
    assert (project / "a").read_text() == "2\n"
    shell.type(b"y\n")
    assert shell.status() == 0
    assert (project / "a").read_text() == "0\n"


def test_a_question_in_the_background_waits_for_the_foreground(
    warm: Warm, project: Path, terminal: Callable[..., Terminal]
) -> None:
    before = warm.served()
    _answer_in_the_foreground(_in_a_shell(terminal, "{job} & :"), project)
    assert warm.served() == before + 2


def test_a_question_that_goes_to_the_background_waits_for_the_foreground(
    warm: Warm, project: Path, terminal: Callable[..., Terminal]
) -> None:
    shell = _in_a_shell(terminal, "{job}; echo off; bg")
    shell.read_until(b"[y/N]")
    shell.type(b"\x1a")
    shell.read_until(b"off")
    _answer_in_the_foreground(shell, project)


def test_the_width_of_the_terminal_is_the_callers(warm: Warm, project: Path, terminal: Callable[..., Terminal]) -> None:
    shown = terminal("log")
    assert shown.status() == 0
    assert b"turn 2" in shown.seen
