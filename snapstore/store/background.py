"""What starts by itself when a turn has ended: a push, where that was asked for, or a gc. In a process of its own."""

from __future__ import annotations

import os

from snapstore.base.own_command import own_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.store.handle import StoreHandle

# Through a shell that ends at once: nobody has to wait for what it leaves behind, and no dead child stays with a
# program that records turns for hours.
_DETACHED = 'exec "$@" &'


def start_push(store: StoreHandle) -> None:
    if store.header.auto_push:
        start(store, "push", "--background")


def start(store: StoreHandle, *command: str) -> None:
    """Never fails: the turn is recorded, and the next one tries again."""
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
