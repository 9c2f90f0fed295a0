"""A warm process for tests, with a runtime folder of its own; it is gone when its block ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from snapstore.daemon import client

PROGRAM = [sys.executable, "-m", "snapstore"]


@dataclass
class Warm:
    """A running server."""

    runtime: Path  # XDG_RUNTIME_DIR of its clients
    process: subprocess.Popen[bytes]
    environment: dict[str, str]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def socket(self) -> Path:
        return next((self.runtime / "snapstore").glob("*.sock"))

    def served(self) -> int:
        """Return the number of requests so far, including this one."""
        return int(client.question(str(self.socket), client.STATUS).split()[2])

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(word) for word in text.split()]


@contextmanager
def runtime_folder() -> Iterator[Path]:
    """Make a folder with a short name: a socket's address has room for 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="snapwarm-", dir="/tmp") as folder:
        yield Path(folder)


@contextmanager
def serving(*options: str, program: Sequence[str] = PROGRAM, **environment: str) -> Iterator[Warm]:
    """Start a server, wait until it listens, and stop it at the end."""
    with runtime_folder() as runtime:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SNAPSTORE_")}
        env = {**clean, **environment, "XDG_RUNTIME_DIR": str(runtime)}
        process = subprocess.Popen(
            [*program, "daemon", "run", *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith(b"Listening"), first + process.stdout.read()
            yield Warm(runtime, process, env)
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            _stop_others(runtime)


def _stop_others(runtime: Path) -> None:
    """Stop a server that a hook has left behind, after the first one was killed or had left."""
    for path in (runtime / "snapstore").glob("*.sock"):
        try:
            client.question(str(path), client.STOP)
        except OSError:
            continue
