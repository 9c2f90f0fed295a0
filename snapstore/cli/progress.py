"""A progress bar that appears after one second."""

from __future__ import annotations

import time
from typing import Any

from snapstore.cli.output import Output

PATIENCE = 1.0


class Progress:
    """A callback that shows the number of files done so far.

    The bar appears only on a terminal, and only after one second.
    """

    def __init__(self, what: str, err: Output) -> None:
        self._what = what
        self._wanted = err.terminal
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, number: int) -> None:
        if self._bar is None:
            if not self._wanted or time.monotonic() - self._start < PATIENCE:
                return
            self._show()
        self._bar.update(self._task, completed=number)

    def _show(self) -> None:
        # Most commands show no bar, and importing rich takes longer than the whole command.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24, style="dim", pulse_style="cyan"),
            TextColumn("{task.completed:,.0f} files", style="dim"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._what, total=None)
        self._bar.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()
