"""A terminal driver that survives the terminal being closed."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import IO, Any, cast

from textual.drivers.linux_driver import LinuxDriver


class LastingDriver(LinuxDriver):
    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        errors = sys.__stderr__
        terminal = errors if errors is not None and errors.isatty() else sys.__stdout__
        self._file = cast(Any, Lasting(cast("IO[str]", terminal)))


class Lasting:
    """A file that ignores write errors.

    Textual's writer thread would end with the first error. Its queue would fill up, and the whole program would wait
    for it forever.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()
