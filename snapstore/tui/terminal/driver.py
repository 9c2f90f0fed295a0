"""The terminal as it is written to: one that is closed in the middle must not hold up the end."""

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
    """A file that takes what is written when it is gone too: the thread that writes would end with the first error, its
    queue fill up, and the whole program wait for it for ever."""

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
