"""Strikes a piece of work at its Nth call of the system: killed, failed, interrupted, stopped or delayed there.

The work runs in a fork of the test's own process, in which all modules are loaded already, and strace is attached to
it before it begins: only the work itself is counted and struck, and a strike costs milliseconds. Kills and errors do
without strace where the kernel's filters serve (call_filter.py), at a third of that.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import call_filter

from snapstore import SnapstoreError

NOW = 1_700_000_000.0  # the clock of every strike

# How the work ended, where it was not killed.
DONE, REFUSED, BROKEN, INTERRUPTED = 0, 3, 4, 5

_ANYONE_MAY_TRACE = 0x59616D61  # PR_SET_PTRACER, for systems where only a parent may


class Work:
    """Work begun in a fork and not yet waited for."""

    def __init__(self, work: Callable[[], object], ready: Callable[[], None]) -> None:
        """`ready` is called in the fork, right before the work."""
        said, say = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(said)
            _live(work, ready, say)
        os.close(say)
        self._said = said
        self.said = ""
        self.status: int | None = None

    def state(self) -> str:
        """Return the kernel's letter for the state of the process."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def _end(self) -> None:
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    @property
    def error(self) -> dict[str, str]:
        """Return the text of a refusal."""
        assert self.status == REFUSED, (self.status, self.said)
        document: dict[str, str] = json.loads(self.said)
        return document

    def __repr__(self) -> str:
        return f"status {self.status}: {self.said}"


class Struck(Work):
    """Work under strace."""

    def __init__(self, work: Callable[[], object], *rules: str, log: str = os.devnull) -> None:
        gate, opener = os.pipe()

        def ready() -> None:
            os.close(opener)
            ctypes.CDLL(None).prctl(_ANYONE_MAY_TRACE, ctypes.c_ulong(-1), 0, 0, 0)
            opened = select.poll()  # not by reading: that may be what is struck
            opened.register(gate, select.POLLIN)
            opened.poll()

        super().__init__(work, ready)
        os.close(gate)
        self._strace = subprocess.Popen(
            ["strace", "-f", "-o", log, "-p", str(self.pid), *rules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            self._attached()
        finally:
            os.write(opener, b"!")
            os.close(opener)

    def _attached(self) -> None:
        """Wait until strace says so.

        It has the process's tracer set a moment earlier, and calls made between the two would be neither counted nor
        struck.
        """
        assert self._strace.stderr is not None
        heard, pipe, end = b"", self._strace.stderr.fileno(), time.monotonic() + 20
        while b" attached" not in heard:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(pipe, 4096) if ready else b""
            assert piece, f"strace could not attach: {heard.decode(errors='replace')}"
            heard += piece

    def wait(self) -> Struck:
        with open(self._said, "rb") as file:  # first: a long text would not fit into the pipe
            self.said = file.read().decode()
        self._end()
        self._strace.communicate(timeout=20)
        return self


class Filtered(Work):
    """Work whose calls of some kinds are reported before they are made. Waited for at once."""

    def __init__(self, work: Callable[[], object], calls: Iterable[str], decide: call_filter.Decide) -> None:
        ours, theirs = socket.socketpair()
        kinds = list(calls)

        def ready() -> None:
            ours.close()
            call_filter.hand_over(theirs, call_filter.install(kinds))
            counted = select.poll()
            counted.register(theirs, select.POLLIN)
            counted.poll()

        super().__init__(work, ready)
        theirs.close()
        with ours, open(self._said, "rb", buffering=0) as said:
            self._listener = call_filter.Listener(call_filter.take_over(ours), decide)
            self._serve(ours, said)
        self._end()

    @property
    def made(self) -> dict[str, int]:
        return dict(self._listener.made)

    def _serve(self, door: socket.socket, said: IO[bytes]) -> None:
        """Answer until the process, and whatever it started, has ended."""
        listener, text = self._listener.descriptor, b""
        waiting = select.poll()
        for descriptor in (listener, door, said):
            waiting.register(descriptor, select.POLLIN)
        try:
            while True:
                events = dict(waiting.poll(120_000))
                assert events, f"nothing happens any more: {self!r}"
                if events.get(listener, 0) & select.POLLIN:
                    self._listener.hear()
                elif listener in events:  # the last process with the filter has ended
                    break
                if door.fileno() in events:
                    waiting.unregister(door)
                    if door.recv(1):
                        self._listener.counting = True
                        door.send(b"!")
                if said.fileno() in events:
                    text += (piece := os.read(said.fileno(), 65536))
                    if not piece:
                        waiting.unregister(said)
            text += said.read()
        finally:
            os.close(listener)
        self.said = text.decode()


def _live(work: Callable[[], object], ready: Callable[[], None], say: int) -> None:
    """Run the forked child. It never returns, because the test must not continue twice."""
    status, text = BROKEN, ""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ready()
        work()
        status = DONE
    except SnapstoreError as error:
        said = {"error": error.name, "message": error.message, "hint": error.hint, **error.details}
        status, text = REFUSED, json.dumps(said, default=repr)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BaseException:
        text = traceback.format_exc()
    finally:
        try:
            os.writev(say, [text.encode("utf-8", "replace")])  # not by writing: that may be what is struck
        finally:
            os._exit(status)


def strike(work: Callable[[], object], call: str, number: int, how: str, *, forever: bool = False) -> Work:
    """Run the work with a fault at its Nth call of one kind, and wait for its end."""
    kind, _, what = how.partition("=")
    deadly = kind == "signal" and what in ("SIGKILL", "KILL")
    if not (deadly or (kind == "error" and what.isalpha())) or not call_filter.known([call]):
        return begin(work, call, number, how, forever=forever).wait()
    verdict = call_filter.KILL if deadly else getattr(errno, what)

    def decide(_call: str, made: int) -> int:
        return verdict if made == number or (forever and made > number) else 0

    return Filtered(work, [call], decide)


def begin(work: Callable[[], object], call: str, number: int, how: str, *, forever: bool = False) -> Struck:
    when = f"{number}{'+' if forever else ''}"
    return Struck(work, "-e", f"trace={call}", "-e", f"inject={call}:{how}:when={when}")


def count(work: Callable[[], object], calls: Iterable[str], log: Path) -> dict[str, int]:
    """Count how often successful work makes each call."""
    done = Struck(work, "-e", f"trace={','.join(calls)}", log=str(log)).wait()
    assert done.status == DONE, done
    found: dict[str, int] = {}
    for row in log.read_text(errors="replace").splitlines():
        name = re.match(r"\d+\s+(\w+)\(", row)
        if name:
            assert ".pyc" not in row, f"a module is loaded only now: {row}"
            found[name[1]] = found.get(name[1], 0) + 1
    return found


assert sys.platform == "linux", "strace is Linux's"


def age_locks(home: Path) -> None:
    """Make locks look some seconds older; test_faults_locks.py really waits."""
    for lock in home.rglob("*.lock"):
        os.utime(lock, (NOW, NOW))
