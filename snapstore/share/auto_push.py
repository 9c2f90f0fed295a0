"""Push after each turn, in the background. It never delays a turn and never fails one.

A turn that ends starts a process of its own, which pushes and is gone. While one is at work the next only leaves a
mark, and the one at work goes round once more: ten quick turns make one or two pushes. What goes wrong is in the log,
which `status` shows, and is tried again after the next turn.
"""

from __future__ import annotations

import os

from snapstore.base import platform
from snapstore.errors import SnapstoreError
from snapstore.share.push import push
from snapstore.share.remotes import Remotes
from snapstore.store import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.store.handle import StoreHandle

_LOCK, _MARK = "autopush.lock", "autopush.again"


def run(store: StoreHandle) -> None:
    """Pushes to the remotes that every turn goes to; unless another process is doing so, which then goes on."""
    mark = f"{store.state}/{_MARK}"
    _touch(mark)
    while os.path.exists(mark):
        fd = os.open(f"{store.state}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not platform.try_lock(fd):
                return
            while _taken(mark):
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
                log.stand(f"{store.folder}/log", f"push-{remote.name}", text, store.clock())
        log.settle(f"{store.folder}/log", "push")
    except SnapstoreError as error:
        log.stand(f"{store.folder}/log", "push", f"push after a turn: {error.message}", store.clock())
    except Exception as error:  # nobody is there to see it
        store.log(f"push after a turn: {type(error).__name__}: {error}")


def _touch(path: str) -> None:
    """Not synced: after a power cut no push is under way, and the next turn's push sends everything."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _taken(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
