"""Two processes for one long look at the disk.

Threads do not help: the time goes into Python itself, not into waiting. A forked copy shares everything read so far and
hands back only what it found. It is used for large trees, and only where forking is harmless: no other threads.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORTH_IT = 20_000  # files; below that one process is as quick


def in_two(work: Callable[[Sequence[T]], R], items: Sequence[T]) -> list[R]:
    """`work` on each half of `items`, one half in a forked process. What it gives must be plain data (marshal)."""
    half = len(items) // 2
    if half == 0 or not _may_fork():
        return [work(items)]
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            with open(writer, "wb") as pipe:
                marshal.dump(work(items[half:]), pipe)  # type: ignore[arg-type]
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    try:
        first = work(items[:half])
    finally:
        with open(reader, "rb") as pipe:
            answer = pipe.read()
        _, ended = os.waitpid(pid, 0)
    # A copy that was killed or failed has cost nothing but time: its half is done here, errors and all.
    second: R = marshal.loads(answer) if ended == 0 else work(items[half:])
    return [first, second]


def _may_fork() -> bool:
    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    return alone and hasattr(os, "fork") and (os.cpu_count() or 1) > 1
