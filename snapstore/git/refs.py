"""Refs: read, list, and move with compare-and-swap, through `ref_container`.

A ref is written as git writes it (`<ref>.lock`, then rename). Anyone may run `git gc` or `git pack-refs` on the store,
and those commands hold the same lock while they delete a loose file they have packed. dulwich never waits for such a
lock. This module waits, and after a while removes a lock that nobody releases: its process is dead. So a stale lock
file never needs a person's help (test_faults_locks.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dulwich.file import FileLocked
from dulwich.objects import ObjectID
from dulwich.refs import SYMREF, Ref

from snapstore.base.files import remove_if_there, sync_folder
from snapstore.errors import Conflict, Corrupt, Unsafe
from snapstore.git import reflog
from snapstore.git.ref_container import COMMITTER, PACKED, Container, make_folder
from snapstore.git.ref_names import DISK_REF, NOTES, TURN_NOTES
from snapstore.git.reflog import files_below

T = TypeVar("T")

# Old values of these refs are reachable only from the reflog. So `git fsck` does not report them, and gc can expire
# them.
_LOGGED = (NOTES, DISK_REF)
_MANY = 64  # from this number of refs on, one write of packed-refs is faster
_MOST_VANISHED = 100  # attempts, if git keeps removing the folder before a lock can be created in it
STALE_AFTER = 5.0  # seconds; git holds a ref's lock for milliseconds


# An object id, the name of the ref that a symbolic ref points to, or None for an absent ref.
RefValue = bytes | str | None
Damaged = list[Corrupt]


class Refs:
    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self.container = Container(git_dir)
        self._packed: dict[str, bytes] = {}
        self._packed_from: object = None
        self._paths: dict[str, str] = {}
        self.stale_after = STALE_AFTER

    def read(self, name: str) -> bytes | None:
        """Return the object id of a ref, following a symbolic ref."""
        value = self.value(name)
        if isinstance(value, str):
            value = self.value(value)
        return None if isinstance(value, str) else value  # one step only: snapstore never makes longer chains

    def value(self, name: str) -> RefValue:
        """Return the value of the ref itself: an object id, a ref name, or None."""
        self._path(name)
        return _value(self.container.read_ref(Ref(os.fsencode(name))))

    def list(self, prefix: str, damaged: Damaged | None = None) -> dict[str, bytes]:
        """Return every ref below a prefix such as `refs/heads/`, by full name.

        Unreadable refs are added to `damaged`. Without that list, an unreadable ref raises Corrupt.
        """
        found = {name: oid for name, oid in self._read_packed().items() if name.startswith(prefix)}
        top = f"{self._git_dir}/{prefix.rstrip('/')}"
        for path in files_below(top):
            if not path.endswith(".lock"):
                full = path[len(self._git_dir) + 1 :]
                try:
                    value = self.read(full)
                except Corrupt as error:
                    if damaged is None:
                        raise
                    damaged.append(error)
                    continue
                if value is not None:
                    found[full] = value
        return found

    def _read_packed(self) -> dict[str, bytes]:
        packed = self.container.get_packed_refs()
        if packed is not self._packed_from:
            self._packed = {os.fsdecode(name): bytes.fromhex(value.decode()) for name, value in packed.items()}
            self._packed_from = packed
        return self._packed

    def update(self, name: str, old: RefValue, new: RefValue) -> None:
        """Move a ref durably from `old` to `new`, where None means absent.

        Raises Conflict if the ref is not at `old`.
        """
        path = self._path(name)
        ref = Ref(os.fsencode(name))
        before, after = _spelled(old), _spelled(new)

        def move() -> bool:
            make_folder(os.path.dirname(path))
            with self.container.exactly(ref):
                if before is None and after is None:
                    return self.container.read_ref(ref) is None
                if after is None:
                    return self.container.remove_if_equals(ref, before)
                if before is None:
                    return self.container.add_if_new(ref, after)
                return self.container.set_if_equals(ref, before, after)

        if not self._patiently(move):
            raise stale_ref_error(name, old, self.value(name))
        try:
            sync_folder(os.path.dirname(path))
        except FileNotFoundError:  # git has already packed the ref and removed the empty folder
            sync_folder(self._git_dir)

    def update_all(self, moves: Sequence[tuple[str, RefValue, RefValue]]) -> None:
        """Move several refs.

        Many creations, or many deletions of refs that exist only in packed-refs, share one write of packed-refs. One
        write per ref would take milliseconds each, while every other process waits.

        A rename is a creation and a deletion in sequence, and a git process that lists the refs in between may see
        neither. Such a process would then pack or prune without this line of turns. So the object is first added to the
        reflog of the notes ref, because git reads reflogs after refs. snapstore's gc drops these reflog lines.
        """
        made = {new for _, old, new in moves if old is None and isinstance(new, bytes)}
        for _, old, new in moves:
            if new is None and isinstance(old, bytes) and old in made:
                self._hold(old)
        at_once = [
            (name, old, new)
            for name, old, new in moves
            if isinstance(old or new, bytes) and None in (old, new) and not os.path.lexists(self._path(name))
        ]
        if len(at_once) < _MANY:
            at_once = []
        else:
            self._refuse_in_the_way({name for name, _, new in at_once if new is not None})
            self._patiently(lambda: self._change_packed(at_once))
        done = {name for name, _, _ in at_once}
        for move in moves:
            if move[0] not in done:
                self.update(*move)

    def _change_packed(self, moves: Sequence[tuple[str, RefValue, RefValue]]) -> None:
        def check() -> None:
            for name, old, _ in moves:
                found = self.value(name)
                if found != old:
                    raise stale_ref_error(name, old, found)

        self.container.change_packed({Ref(os.fsencode(name)): _spelled(new) for name, _, new in moves}, check)

    def _refuse_in_the_way(self, names: set[str]) -> None:
        """Raise Conflict if a ref would also be a folder of other refs.

        For loose refs, the file system itself refuses this.
        """
        there = self.list("refs/").keys()
        clash = (names & folders_of(there | names)) | (there & folders_of(names))
        for name in sorted(clash):
            raise Conflict(f"ref {name} is in the way of refs below it", "Rename one of them.", ref=name)

    def _hold(self, oid: bytes) -> None:
        if self.value(TURN_NOTES) is not None:  # git ignores the reflog of an absent ref
            try:
                self._append(TURN_NOTES, oid, oid, reflog.RENAMED)
            except OSError:
                pass  # a full disk must not prevent a rollback

    def log(self, name: str, old: RefValue, new: RefValue) -> None:
        """Append a line to the ref's reflog, for a move that will not be rolled back."""
        if name.startswith(_LOGGED):
            self._append(name, old, new, b"snapstore")

    def _append(self, name: str, old: RefValue, new: RefValue, why: bytes) -> None:
        before, after = (value.hex().encode() if isinstance(value, bytes) else None for value in (old, new))
        self.container._log(os.fsencode(name), before, after, COMMITTER, max(0, int(time.time())), 0, why)

    def logged(self) -> dict[str, reflog.Rows]:
        """Return the reflogs per ref."""
        return reflog.read(self._git_dir)

    def forget_logged(self, before: int) -> None:
        """Drop reflog lines older than `before`. Call under the store's lock."""
        reflog.forget(self._git_dir, before)

    def _path(self, name: str) -> str:
        path = self._paths.get(name)
        if path is None:
            parts = name.split("/")
            if name != "HEAD" and (parts[0] != "refs" or len(parts) < 3 or any(bad_part(part) for part in parts)):
                raise Unsafe(f"{name!r} is not a ref name")
            path = self._paths[name] = f"{self._git_dir}/{name}"
        return path

    def clear_locks(self, names: Iterable[str]) -> None:
        """Remove locks that a killed snapstore process left.

        The locks of refs that had already moved are included, since no process may come to lock those refs for a while.
        Ordinary git refuses to work while such a lock exists.
        """
        for path in (*map(self._path, names), f"{self._git_dir}/{PACKED}"):
            lock = f"{path}.lock"
            wait = _Wait(lock, self.stale_after)
            while os.path.lexists(lock):
                wait.once()

    def _patiently(self, change: Callable[[], T]) -> T:
        """Make a change as soon as the locks it needs are free."""
        waits: dict[str, _Wait] = {}
        vanished = 0
        while True:
            try:
                return change()
            except FileLocked as error:
                lock = os.fsdecode(error.lockfilename)
                waits.setdefault(lock, _Wait(lock, self.stale_after)).once()
            except FileNotFoundError:  # git removed the folder while packing the last ref in it
                vanished += 1
                if vanished > _MOST_VANISHED:
                    raise


class _Wait:
    """Wait for a lock file to disappear, and remove a stale one.

    A lock is stale if nobody has released or renewed the lock file for `stale_after` seconds.
    """

    def __init__(self, lock: str, stale_after: float) -> None:
        self._lock = lock
        self._stale_after = stale_after
        self._held: tuple[int, int] | None = None
        self._since = 0.0

    def once(self) -> None:
        try:
            st = os.stat(self._lock)
        except FileNotFoundError:
            return
        if self._held != (st.st_ino, st.st_mtime_ns):  # another process holds the lock now
            self._held, self._since = (st.st_ino, st.st_mtime_ns), time.monotonic()
        if time.time() - st.st_mtime > self._stale_after or time.monotonic() - self._since > self._stale_after:
            remove_if_there(self._lock)
        else:
            time.sleep(0.005)


def _value(text: bytes | None) -> RefValue:
    if text is None:
        return None
    return os.fsdecode(text[len(SYMREF) :]) if text.startswith(SYMREF) else bytes.fromhex(text.decode())


def _spelled(value: RefValue) -> ObjectID | None:
    return None if value is None else ObjectID(os.fsencode(spell(value)))


def folders_of(names: Iterable[str]) -> set[str]:
    """Return every folder that contains one of the names."""
    found: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def spell(value: bytes | str) -> str:
    """Return a ref's value as git writes it."""
    return value.hex() if isinstance(value, bytes) else f"ref: {value}"


def unspell(text: str | None) -> RefValue:
    if text is None:
        return None
    return text[5:] if text.startswith("ref: ") else bytes.fromhex(text)


def stale_ref_error(name: str, old: RefValue, found: RefValue) -> Conflict:
    return Conflict(
        f"ref {name} moved meanwhile",
        "Another program moved it; run the command again.",
        ref=name,
        expected=old and spell(old),
        found=found and spell(found),
    )


def bad_part(part: str) -> bool:
    """Return whether git would refuse this as one part of a ref name."""
    return (
        not part
        or part.startswith((".", "-"))
        or part.endswith((".", ".lock"))
        or ".." in part
        or "@{" in part
        or part == "@"
        or any(character in "~^:?*[\\/ \x7f" or character < " " for character in part)
    )


def classify_moves(
    moves: Iterable[tuple[str, RefValue, RefValue]],
) -> tuple[list[tuple[str, str]], dict[str, bytes], dict[str, bytes]]:
    """Classify ref moves into renames, created refs and lost refs.

    A rename is a value that one ref lost and another ref received. Refs with equal values are paired by their order,
    which is the same on both sides.
    """
    plain = [move for move in moves if not isinstance(move[1], str) and not isinstance(move[2], str)]
    arrived = [(name, new) for name, _, new in plain if isinstance(new, bytes)]
    travels: list[tuple[str, str]] = []
    lost: dict[str, bytes] = {}
    for name, old, _ in plain:
        if not isinstance(old, bytes):
            continue
        target = next((place for place in arrived if place[1] == old), None)
        if target is None:
            lost[name] = old
        else:
            arrived.remove(target)
            travels.append((name, target[0]))
    return travels, dict(arrived), lost
