"""Push after each turn, in the background, without delaying or failing the turn.

The end of a turn starts a process that pushes and exits. While one such process is running, the next one only leaves a
mark, and the running one pushes once more: ten quick turns make one or two pushes. Failures go to the log, which
`status` shows, and the next turn tries again.
"""

from __future__ import annotations

import os

from snapstore.base import locks
from snapstore.base.files import remove_if_there
from snapstore.errors import SnapstoreError
from snapstore.share.push import push
from snapstore.share.remotes import Remotes
from snapstore.store import log
from snapstore.store.handle import StoreHandle

_LOCK, _MARK = "autopush.lock", "autopush.again"


def run(store: StoreHandle) -> None:
    """Push to the automatic remotes, or let a process that is already pushing do it."""
    mark = f"{store.state}/{_MARK}"
    _touch(mark)
    while os.path.exists(mark):
        fd = os.open(f"{store.state}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not locks.try_lock(fd):
                return
            while remove_if_there(mark):
                _push(store)
        finally:
            os.close(fd)


def _push(store: StoreHandle) -> None:
    try:
        remotes = Remotes(store)
        for remote in [remote for remote in remotes.list() if remote.auto] or [remotes.find(None)]:
            try:
                for remark in push(store, remote).remarks:
                    store.log(f"push to {remote.name}: {remark}")
            except SnapstoreError as error:
                text = f"push to {remote.name}: {error.message} {error.hint}"
                log.set_notice(f"{store.folder}/log", f"push-{remote.name}", text, store.clock())
        log.clear_notice(f"{store.folder}/log", "push")
    except SnapstoreError as error:
        log.set_notice(f"{store.folder}/log", "push", f"push after a turn: {error.message}", store.clock())
    except Exception as error:  # a background process can only log it
        store.log(f"push after a turn: {type(error).__name__}: {error}")


def _touch(path: str) -> None:
    """Create a file; not synced, because the next turn's push sends everything anyway."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
