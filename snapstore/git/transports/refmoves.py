"""Moves refs of a repository that is not a store of ours, the way git does: every lock taken, every value compared, and
only then the first one renamed into place. Modes are the repository's own, by umask: others may read it.

Git's lock is a file that is there or not, and stays when its maker is killed. Ours are links to files that belong to a
mark, which lists their refs and which the living maker has locked: so the next push knows a dead one's, and clears them
without guessing by the clock. One mark for all of a push: there may be more refs than files that a process may open.

The mark and the files that locks are links to are on disk before the first lock is, and go after it: a power cut leaves
no lock whose maker nobody knows. What has moved is on disk before success is reported (test_powercut.py).

Several refs do not move in one instant, here as in git itself (its transactions rename one file after the other, and a
loose ref hides what packed-refs says). A kill between two leaves each ref old or new, in the order that was asked for,
and all that either leads to is there: the next push moves the others.
"""

from __future__ import annotations

import fcntl
import os
import time

from snapstore.git.packwriter import sync_folder, write_all
from snapstore.git.refs import Refs, folders_of
from snapstore.git.transport import MOVED
from snapstore.git.transports.pktline import is_ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        locks.prepare({name: going[name][1] or b"" for name in sorted(going)})
        for name in sorted(going):
            results[name] = _in_the_way(git_dir, name, names, folders) or locks.take(name)
        refs = Refs(git_dir)
        for name in locks.held:
            found = refs.value(name)
            if isinstance(found, str):
                results[name] = f"there it stands for another ref, {found}"
            elif found != going[name][0]:
                results[name] = MOVED
        if atomic and any(results.values()):
            return {name: why or _NOT_THIS_ONE for name, why in results.items()}
        moving = [name for name in going if results[name] is None]
        for name in moving:
            locks.put_in_place(name)
        _sync_folders(git_dir, moving)
    finally:
        locks.release()
    return results


class _Locks:
    """The locks of one push, each with its ref's next value in it."""

    def __init__(self, git_dir: str) -> None:
        self.held: dict[str, str] = {}  # ref: the file that its lock is a link to
        self._git_dir = git_dir
        self._values: dict[str, str] = {}  # the same of all refs, locked or not
        while True:
            self._mark = f"{git_dir}/{MARK}{os.urandom(8).hex()}"
            self._fd = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.path.exists(self._mark):
                break
            os.close(self._fd)  # taken for a dead one's before it was locked

    def prepare(self, values: Mapping[str, bytes]) -> None:
        """Writes down whose the locks will be, and each ref's next value."""
        write_all(self._fd, b"".join(os.fsencode(name) + b"\n" for name in values))
        os.fsync(self._fd)
        for number, (name, new) in enumerate(values.items()):
            self._values[name] = f"{self._mark}_{number}"
            fd = os.open(self._values[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                write_all(fd, new.hex().encode() + b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(self._git_dir)

    def take(self, name: str) -> str | None:
        """Why it cannot be had."""
        if not self._is_taken(self._values[name], f"{self._git_dir}/{name}"):
            return f"it is locked; if no git is at work there, remove {name}.lock"
        self.held[name] = self._values[name]
        return None

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
        del self.held[name]

    def release(self) -> None:
        try:
            for name in self.held:
                os.unlink(f"{self._git_dir}/{name}.lock")
            _sync_folders(self._git_dir, self.held)
            for value in self._values.values():
                _remove(value)
            os.unlink(self._mark)
        finally:
            os.close(self._fd)  # what is left is known to be a dead one's


def _sync_folders(git_dir: str, names: Iterable[str]) -> None:
    """Makes the names of refs durable, or that they are gone: every folder above them, for some may be new."""
    for folder in sorted(folders_of(names) | {"."} if names else ()):
        try:
            sync_folder(f"{git_dir}/{folder}")
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed by a git that packed the last ref in it


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
    buried = []
    for number, name in enumerate(names):
        value, lock = f"{mark}_{number}", f"{git_dir}/{name}.lock"
        try:
            if is_ref(name) and os.path.samestat(os.lstat(value), os.lstat(lock)):
                os.unlink(lock)
                buried.append(name)
        except (FileNotFoundError, NotADirectoryError):
            pass  # it had not come to that, or was done with it
    _sync_folders(git_dir, buried)
    for number in range(len(names)):
        _remove(f"{mark}_{number}")
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
