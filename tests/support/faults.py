"""Strikes a piece of work at its Nth call of the system: killed, failed, interrupted, stopped or delayed there.

The work runs in a fork of the test's own process, in which all modules are loaded already, and strace is attached to
it before it begins: only the work itself is counted and struck, and a strike costs milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from snapstore import SnapstoreError

NOW = 1_700_000_000.0  # the clock of every strike

# How the work ended, where it was not killed.
DONE, REFUSED, BROKEN, INTERRUPTED = 0, 3, 4, 5

_ANYONE_MAY_TRACE = 0x59616D61  # PR_SET_PTRACER, for systems where only a parent may


class Struck:
    """Work under strace, begun and not yet waited for."""

    def __init__(self, work: Callable[[], object], *rules: str, log: str = os.devnull) -> None:
        gate, opener = os.pipe()
        said, self._say = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(opener)
            _live(work, gate, self._say)
        os.close(gate)
        os.close(self._say)
        self._said = said
        self.status: int | None = None
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
        """Waits until strace says so. It has the process's tracer set a moment earlier, and calls made between the two
        would be neither counted nor struck."""
        assert self._strace.stderr is not None
        heard, pipe, end = b"", self._strace.stderr.fileno(), time.monotonic() + 20
        while b" attached" not in heard:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(pipe, 4096) if ready else b""
            assert piece, f"strace could not attach: {heard.decode(errors='replace')}"
            heard += piece

    def state(self) -> str:
        """The kernel's letter for what the process does."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def wait(self) -> Struck:
        with open(self._said, "rb") as file:  # first: a long tale would not fit into the pipe
            self.said = file.read().decode()
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._strace.communicate(timeout=20)
        return self

    @property
    def error(self) -> dict[str, str]:
        """What a refusal says."""
        assert self.status == REFUSED, (self.status, self.said)
        document: dict[str, str] = json.loads(self.said)
        return document

    def __repr__(self) -> str:
        return f"status {self.status}: {self.said}"


def _live(work: Callable[[], object], gate: int, say: int) -> None:
    """The life of the fork. It never returns: there must not be two of the test."""
    status, text = BROKEN, ""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ctypes.CDLL(None).prctl(_ANYONE_MAY_TRACE, ctypes.c_ulong(-1), 0, 0, 0)
        opened = select.poll()  # not by reading: that may be what is struck
        opened.register(gate, select.POLLIN)
        opened.poll()
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
            os.writev(say, [text.encode("utf-8", "replace")])  # nor by writing
        finally:
            os._exit(status)


def strike(work: Callable[[], object], call: str, number: int, how: str, *, forever: bool = False) -> Struck:
    """Runs the work with a fault at its Nth call of one kind, and waits for its end."""
    return begin(work, call, number, how, forever=forever).wait()


def begin(work: Callable[[], object], call: str, number: int, how: str, *, forever: bool = False) -> Struck:
    when = f"{number}{'+' if forever else ''}"
    return Struck(work, "-e", f"trace={call}", "-e", f"inject={call}:{how}:when={when}")


def count(work: Callable[[], object], calls: Iterable[str], log: Path) -> dict[str, int]:
    """How often the work makes each call. It must succeed."""
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
    """Some seconds later; test_faults_locks.py waits them out."""
    for lock in home.rglob("*.lock"):
        os.utime(lock, (NOW, NOW))
