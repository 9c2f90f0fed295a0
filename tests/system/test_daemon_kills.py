"""The warm process, its child or the client are killed at a call: the work is done or not done, and the next command
says which."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import needs_strace, write
from test_daemon import environment, run, until
from warm import PROGRAM, Warm, serving

from snapstore import Store

# Calls of the server and its child, and the calls of a client, with how often each is struck in the long run.
SERVED = {
    **dict.fromkeys(["poll", "accept4", "clone", "wait4", "setpgid", "fchdir", "umask", "recvmsg"], 2),
    **dict.fromkeys(["sendto", "recvfrom", "prlimit64", "dup2", "rename", "renameat2", "fsync", "fdatasync"], 4),
    **dict.fromkeys(["close", "openat", "read", "write", "pwrite64"], 12),
}
CLIENT = {"connect": 1, "recvfrom": 4, "sendmsg": 1, "sendto": 1, "pidfd_open": 1, "rt_sigaction": 4, "umask": 2}
QUICK_SERVED = [("accept4", 1), ("clone", 1), ("recvmsg", 1), ("sendto", 2), ("fsync", 2), ("sendto", 3)]
QUICK_CLIENT = [("connect", 1), ("sendmsg", 1), ("recvfrom", 3)]


@pytest.fixture
def project(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SNAPSTORE_DAEMON", raising=False)
    monkeypatch.setenv("SNAPSTORE_DAEMON_PATIENCE", "30")
    write(root / "a", "0\n")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        for number in (1, 2):
            with session.turn(f"turn {number}"):
                write(root / "a", f"{number}\n")
    return root


@contextmanager
def killing(pid: int, call: str, number: int) -> Iterator[None]:
    """Kill the process or a child of it at its Nth call from now on."""
    rules = ["-e", f"inject={call}:signal=SIGKILL:when={number}", "-e", f"trace={call}"]
    strace = subprocess.Popen(
        ["strace", "-f", "-o", os.devnull, "-p", str(pid), *rules], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert strace.stderr is not None
        heard = b""
        while b" attached" not in heard:
            assert select.select([strace.stderr], [], [], 20)[0]
            piece = os.read(strace.stderr.fileno(), 4096)
            assert piece, heard
            heard += piece
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate(timeout=20)


def found(project: Path, status: int) -> str:
    """The state after a struck undo; it must be whole, and new if success was reported."""
    cursor = json.loads(run(None, project, "status", "--json")[1])["cursor"]["turn"]
    text = (project / "a").read_text()
    assert (text, cursor) in (("1\n", 1), ("2\n", 2))
    assert status in (0, -signal.SIGKILL)
    if status == 0:
        assert cursor == 1
    assert run(None, project, "check")[0] == 0
    return text


def strike_server(project: Path, call: str, number: int) -> None:
    with serving() as warm:
        with killing(warm.pid, call, number):
            status = run(warm, project, "undo", "-y")[0]
            _settle(warm)
        found(project, status)


def _settle(warm: Warm) -> None:
    """Wait for children that go on without a client, or without a server."""
    if warm.process.poll() is None:
        until(lambda: not warm.children() or warm.process.poll() is not None)


def strike_client(warm: Warm, project: Path, call: str, number: int) -> None:
    rules = ["-e", f"inject={call}:signal=SIGKILL:when={number}", "-e", f"trace={call}"]
    command = ["strace", "-o", os.devnull, *rules, *PROGRAM, "undo", "-y"]
    ended = subprocess.run(command, cwd=project, env=environment(warm), capture_output=True, timeout=60)
    _settle(warm)
    found(project, ended.returncode)


@needs_strace
@pytest.mark.parametrize(("call", "number"), QUICK_SERVED)
def test_the_server_or_its_child_is_killed(project: Path, call: str, number: int) -> None:
    strike_server(project, call, number)


@needs_strace
@pytest.mark.parametrize(("call", "number"), QUICK_CLIENT)
def test_the_client_is_killed(project: Path, call: str, number: int) -> None:
    with serving() as warm:
        strike_client(warm, project, call, number)


@needs_strace
@pytest.mark.deep
@pytest.mark.parametrize(("call", "number"), [(call, at) for call, most in SERVED.items() for at in range(1, most + 1)])
def test_the_server_or_its_child_is_killed_anywhere(project: Path, call: str, number: int) -> None:
    strike_server(project, call, number)


@needs_strace
@pytest.mark.deep
@pytest.mark.parametrize(("call", "number"), [(call, at) for call, most in CLIENT.items() for at in range(1, most + 1)])
def test_the_client_is_killed_anywhere(project: Path, call: str, number: int) -> None:
    with serving() as warm:
        strike_client(warm, project, call, number)


@needs_strace
def test_a_warm_hook_opens_no_library(project: Path, tmp_path: Path) -> None:
    payload = {"session_id": "x", "cwd": str(project), "hook_event_name": "UserPromptSubmit", "prompt": "p"}
    entry = [sys.executable, "-I", "-c", "from snapstore.__main__ import main; raise SystemExit(main())"]
    with serving() as warm:
        command = ["strace", "-o", str(tmp_path / "log"), "-e", "trace=open,openat,connect", *entry, "hook", "claude"]
        feed = json.dumps(payload).encode()
        subprocess.run(command, cwd=project, env=environment(warm), input=feed, check=True)
    log = (tmp_path / "log").read_text()
    assert str(warm.runtime) in log
    opened = [line for line in log.splitlines() if "open" in line and "ENOENT" not in line]
    assert not [line for line in opened if any(name in line for name in ("click", "pydantic", "dulwich", "/cli/"))]


@pytest.mark.deep
def test_two_hundred_clients_at_once(project: Path) -> None:
    wanted = run(None, project, "log", "--json")[1]
    with serving() as warm:
        crowd = [
            subprocess.Popen([*PROGRAM, "log", "--json"], cwd=project, env=environment(warm), stdout=subprocess.PIPE)
            for _ in range(200)
        ]
        for process in crowd:
            assert process.communicate(timeout=300)[0] == wanted
            assert process.returncode == 0
        assert run(warm, project, "log")[0] == 0
