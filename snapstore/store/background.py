"""Start background processes after a turn: a push, or a gc."""

from __future__ import annotations

import os

from snapstore.base.own_command import own_command
from snapstore.store.handle import StoreHandle

# The shell exits at once, so the caller need not wait, and a program that records turns for hours collects no zombie
# processes.
_DETACHED = 'exec "$@" &'


def start_push(store: StoreHandle) -> None:
    """Start a push if `auto_push` is on."""
    if store.header.auto_push:
        start(store, "push", "--background")


def start(store: StoreHandle, *command: str) -> None:
    """Start a snapstore command detached; log a failure, which the next turn retries."""
    words = [*own_command(), "-C", os.fsdecode(store.root), *command]
    environment = {**os.environ, "SNAPSTORE_HOME": store.home}
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    try:
        pid = os.posix_spawn(
            "/bin/sh", ["sh", "-c", _DETACHED, "sh", *words], environment, file_actions=null, setsid=True
        )
        os.waitpid(pid, 0)
    except OSError as error:
        store.log(f"{command[0]} after a turn could not be started: {error}")
