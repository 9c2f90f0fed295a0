"""Moves refs of a repository that is not a store of ours, the way git does: every lock taken, every value compared, and
only then the first one renamed into place. Modes are the repository's own, by umask: others may read it.

Git's lock is a file that is there or not, and stays when its maker is killed. Ours are links to files that belong to a
mark, which lists their refs and which the living maker has locked: so the next push knows a dead one's, and clears them
without guessing by the clock. One mark for all of a push: there may be more refs than files that a process may open.

Several refs do not move in one instant, here as in git itself (its transactions rename one file after the other, and a
loose ref hides what packed-refs says). A kill between two leaves each ref old or new, in the order that was asked for,
and all that either leads to is there: the next push moves the others.
"""

from __future__ import annotations

import fcntl
import os
import time

from snapstore.git.packwriter import write_all
from snapstore.git.refs import Refs, folders_of
from snapstore.git.transport import MOVED
from snapstore.git.transports.pktline import is_ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.git.transports.report import Moves

MARK = "snapstore_lock_"
_PATIENCE = 1.0  # seconds for another's lock; git holds one for milliseconds
_NOT_THIS_ONE = "another ref of the same push cannot move"


def move(git_dir: str, going: Moves, seen: Mapping[str, bytes], *, atomic: bool) -> dict[str, str | None]:
    """Why each ref stayed, or None. Each goes to an object; deleting is git's. Locks are taken by name, so that two who
    push do not wait for each other; refs move in the order given."""
    results: dict[str, str | None] = {}
    names = {*seen, *going}
    folders = folders_of(names)
    locks = _Locks(git_dir)
    try:
        for name in sorted(going):
            results[name] = _in_the_way(git_dir, name, names, folders) or locks.take(name, going[name][1] or b"")
        refs = Refs(git_dir)
        for name in locks.held:
            found = refs.value(name)
            if isinstance(found, str):
                results[name] = f"there it stands for another ref, {found}"
            elif found != going[name][0]:
                results[name] = MOVED
        if atomic and any(results.values()):
            return {name: why or _NOT_THIS_ONE for name, why in results.items()}
        for name in going:
            if results[name] is None:
                # Its folder is not synced, as in git: after a power cut a ref may be the old one, and is pushed again.
                locks.put_in_place(name)
    finally:
        locks.release()
    return results


class _Locks:
    """The locks of one push, each with its ref's next value in it."""

    def __init__(self, git_dir: str) -> None:
        self.held: dict[str, str] = {}  # ref: the file that its lock is a link to
        self._git_dir = git_dir
        self._count = 0
        while True:
            self._mark = f"{git_dir}/{MARK}{os.urandom(8).hex()}"
            self._fd = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.path.exists(self._mark):
                break
            os.close(self._fd)  # taken for a dead one's before it was locked

    def take(self, name: str, new: bytes) -> str | None:
        """Why it cannot be had."""
        path, value = f"{self._git_dir}/{name}", f"{self._mark}_{self._count}"
        self._count += 1
        write_all(self._fd, os.fsencode(name) + b"\n")
        try:
            fd = os.open(value, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                write_all(fd, new.hex().encode() + b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)
            if self._is_taken(value, path):
                self.held[name] = value
                return None
            return f"it is locked; if no git is at work there, remove {name}.lock"
        finally:
            if name not in self.held:
                _remove(value)

    def _is_taken(self, value: str, path: str) -> bool:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                os.link(value, f"{path}.lock")
                return True
            except FileNotFoundError:  # not there yet, or removed just now by a git that packed the last ref in it
                os.makedirs(os.path.dirname(path), exist_ok=True)
            except FileExistsError:
                sweep(self._git_dir)
                if os.path.lexists(f"{path}.lock"):
                    time.sleep(0.005)
        return False

    def put_in_place(self, name: str) -> None:
        os.rename(f"{self._git_dir}/{name}.lock", f"{self._git_dir}/{name}")
        os.unlink(self.held.pop(name))

    def release(self) -> None:
        for name, value in self.held.items():
            os.unlink(f"{self._git_dir}/{name}.lock")
            os.unlink(value)
        os.unlink(self._mark)
        os.close(self._fd)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def sweep(git_dir: str) -> None:
    """Removes what those of us left who were killed: their locks, so that nobody waits for the dead, and the rest."""
    for name in os.listdir(git_dir):
        mark = f"{git_dir}/{name}"
        if not name.startswith(MARK) or "_" in name.removeprefix(MARK):
            continue
        try:
            fd = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(mark):
                with open(fd, "rb", closefd=False) as file:
                    _bury(git_dir, mark, file.read().decode("utf-8", "surrogateescape").splitlines())
        except BlockingIOError:
            pass  # its maker is alive
        finally:
            os.close(fd)


def _bury(git_dir: str, mark: str, names: list[str]) -> None:
    for number, name in enumerate(names):
        value, lock = f"{mark}_{number}", f"{git_dir}/{name}.lock"
        try:
            if is_ref(name) and os.path.samestat(os.lstat(value), os.lstat(lock)):
                os.unlink(lock)
        except (FileNotFoundError, NotADirectoryError):
            pass  # it had not come to that, or was done with it
        _remove(value)
    os.unlink(mark)


def _in_the_way(git_dir: str, name: str, names: set[str], folders: set[str]) -> str | None:
    """A ref cannot be below another one, nor where folders of others are."""
    if name in folders or folders_of([name]) & names:
        others = sorted(other for other in names if f"{other}/".startswith(f"{name}/") or name.startswith(f"{other}/"))
        return f"{next(other for other in others if other != name)} is in the way"
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
