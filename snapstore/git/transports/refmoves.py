"""Moves refs of a repository that is not a store of ours, the way git does: every lock taken, every value compared, and
only then the first one renamed into place. Modes are the repository's own, by umask: others may read it.

Git's lock is a file that is there or not, and stays when its maker is killed. Ours are links to a file beside them that
the living maker has locked: so the next push knows a dead one's, and clears it without guessing by the clock.

Several refs do not move in one instant, here as in git itself (its transactions rename one file after the other, and a
loose ref hides what packed-refs says). A kill between two leaves each ref old or new, in the order that was asked for,
and all that either leads to is there: the next push moves the others.
"""

from __future__ import annotations

import fcntl
import os
import time

from snapstore.git.packwriter import write_all
from snapstore.git.refs import Refs
from snapstore.git.transport import MOVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from snapstore.git.transports.report import Moves

MARK = "snapstore_lock_"
_PATIENCE = 1.0  # seconds for another's lock; git holds one for milliseconds
_NOT_THIS_ONE = "another ref of the same push cannot move"


def move(git_dir: str, going: Moves, seen: Mapping[str, bytes], *, atomic: bool) -> dict[str, str | None]:
    """Why each ref stayed, or None. Each goes to an object; deleting is git's. Locks are taken by name, so that two who
    push do not wait for each other; refs move in the order given."""
    locks: list[_Lock] = []
    results: dict[str, str | None] = {}
    try:
        for name in sorted(going):
            why = _in_the_way(git_dir, name, [*seen, *going])
            if why is None:
                locks.append(lock := _Lock(git_dir, name, going[name][1] or b""))
                why = lock.take()
            results[name] = why
        refs = Refs(git_dir)
        for lock in locks:
            if lock.held and refs.value(lock.name) != going[lock.name][0]:
                results[lock.name] = MOVED
        if atomic and any(results.values()):
            return {name: why or _NOT_THIS_ONE for name, why in results.items()}
        held = {lock.name: lock for lock in locks}
        ready = [held[name] for name in going if results[name] is None]
        for lock in ready:
            # Its folder is not synced, as in git: after a power cut a ref may be the old one, and is pushed again.
            lock.put_in_place()
    finally:
        for lock in locks:
            lock.release()
    return results


class _Lock:
    """One ref's lock, with the ref's next value in it."""

    def __init__(self, git_dir: str, name: str, new: bytes) -> None:
        self.name = name
        self.path = f"{git_dir}/{name}"
        self.held = False
        self._git_dir = git_dir
        while True:
            self._file = f"{git_dir}/{MARK}{os.urandom(8).hex()}"
            self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.path.exists(self._file):
                break
            os.close(self._fd)  # taken for a dead one's before it was locked
        write_all(self._fd, new.hex().encode() + b"\n")
        os.fsync(self._fd)

    def take(self) -> str | None:
        """Why it cannot be had."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                os.link(self._file, f"{self.path}.lock")
                self.held = True
                return None
            except FileNotFoundError:  # not there yet, or removed just now by a git that packed the last ref in it
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            except FileExistsError:
                if not _clear(self._git_dir, f"{self.path}.lock"):
                    time.sleep(0.005)
            if time.monotonic() > end:
                return f"it is locked; if no git is at work there, remove {self.name}.lock"

    def put_in_place(self) -> None:
        os.rename(f"{self.path}.lock", self.path)
        self.held = False

    def release(self) -> None:
        if self.held:
            os.unlink(f"{self.path}.lock")
        os.unlink(self._file)
        os.close(self._fd)


def _clear(git_dir: str, lock: str) -> bool:
    """Removes a lock whose maker was one of us and is dead. Says whether it did."""
    try:
        planted = os.stat(lock)
    except FileNotFoundError:
        return True
    for path, fd in _dead(git_dir):
        if os.fstat(fd).st_ino == planted.st_ino:
            os.unlink(lock)
            os.unlink(path)
            return True
    return False


def sweep(git_dir: str) -> None:
    """Removes what one of us left who was killed before it had the lock, or after it was done with it."""
    for path, fd in _dead(git_dir):
        if os.fstat(fd).st_nlink == 1:
            os.unlink(path)


def _dead(git_dir: str) -> Iterator[tuple[str, int]]:
    for name in os.listdir(git_dir):
        if not name.startswith(MARK):
            continue
        path = f"{git_dir}/{name}"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path, fd
        except BlockingIOError:
            pass
        finally:
            os.close(fd)


def _in_the_way(git_dir: str, name: str, names: list[str]) -> str | None:
    """A ref cannot be below another one, nor where folders of others are."""
    for other in names:
        if other != name and (other.startswith(f"{name}/") or name.startswith(f"{other}/")):
            return f"{other} is in the way"
    path = f"{git_dir}/{name}"
    parts = name.split("/")
    if any(os.path.islink(f"{git_dir}/{'/'.join(parts[:depth])}") for depth in range(1, len(parts) + 1)):
        return "a link is in the way"
    while os.path.isdir(path):  # left empty by refs that are gone
        try:
            os.rmdir(path)
        except OSError:
            return "a folder is in the way"
    return None
