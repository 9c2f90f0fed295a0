"""Start a background process after a turn: a push if configured, or a gc."""

from __future__ import annotations

import os

from snapstore.base.own_command import own_command
from snapstore.store.handle import StoreHandle

# The shell exits at once: the caller need not wait for the background process, and a program that records turns for
# hours collects no zombie children.
_DETACHED = 'exec "$@" &'


def start_push(store: StoreHandle) -> None:
    if store.header.auto_push:
        start(store, "push", "--background")


def start(store: StoreHandle, *command: str) -> None:
    """Start a snapstore command detached. Never fails: the next turn tries again."""
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
