"""Refs: read, list, and move with compare-and-swap, through dulwich's container of them (container.py).

A ref is written the way git itself does it (`<ref>.lock`, then rename), because anyone may run `git gc` or `git
pack-refs` on the store, and those hold the same lock while they delete the loose file they have packed. dulwich never
waits for such a lock. Here a lock that nobody gives up is a dead process's: it is cleared after a while, so no stale
lock file ever needs a person (test_faults_locks.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dulwich.file import FileLocked
from dulwich.objects import ObjectID
from dulwich.refs import SYMREF, Ref

from snapstore.base.files import sync_folder
from snapstore.errors import Conflict, Corrupt, Unsafe
from snapstore.git import reflog
from snapstore.git.objects.pack_writer import remove
from snapstore.git.ref_container import COMMITTER, PACKED, Container, make_folder
from snapstore.git.reflog import files_below

T = TypeVar("T")

# Refs whose former values hang from nothing else; in the reflog they are no surprise to `git fsck`, and gc ages them.
_LOGGED = ("refs/notes/", "refs/snapstore/disk")
# What a ref led to that gets another name: see `update_all`. Our own gc drops these lines, under the store's lock.
_HOLDER = "refs/notes/turns"
_MANY = 64  # refs from which on one write of all the packed ones is quicker
_MOST_VANISHED = 100  # times that git removes a folder before a lock could be made in it
STALE_AFTER = 5.0  # seconds; git holds a ref's lock for milliseconds


# An object id, the name of the ref that a symbolic ref stands for, or None for no ref at all.
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
        """The object a ref leads to, through a symbolic one if need be."""
        value = self.value(name)
        if isinstance(value, str):
            value = self.value(value)
        return None if isinstance(value, str) else value  # one step only: we never make longer chains

    def value(self, name: str) -> RefValue:
        """What the ref itself holds: an object id, the name of another ref, or None."""
        self._path(name)
        return _value(self.container.read_ref(Ref(os.fsencode(name))))

    def list(self, prefix: str, damaged: Damaged | None = None) -> dict[str, bytes]:
        """Every ref below a prefix such as `refs/heads/`, by full name. Those that cannot be read go into `damaged`,
        if there is such a list."""
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
        """Moves a ref from `old` to `new` (None: absent), durably. Raises Conflict when it is not at `old`."""
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
            raise moved_meanwhile(name, old, self.value(name))
        try:
            sync_folder(os.path.dirname(path))
        except FileNotFoundError:  # a git has packed it already, and removed the folder, which was empty then
            sync_folder(self._git_dir)

    def update_all(self, moves: Sequence[tuple[str, RefValue, RefValue]]) -> None:
        """Moves several. Very many that are made, or that only packed-refs has and that go, take one write of it: each
        by itself would take milliseconds, while everybody waits.

        A ref that gets another name is made and removed one after the other, and a git that lists the refs just then
        may see neither. Whatever it packs or prunes would be without that line. So the reflog of another ref names the
        object before: git reads the reflogs after it has read the refs."""
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
                    raise moved_meanwhile(name, old, found)

        self.container.change_packed({Ref(os.fsencode(name)): _spelled(new) for name, _, new in moves}, check)

    def _refuse_in_the_way(self, names: set[str]) -> None:
        """A ref cannot be a folder of others as well; of a loose one the file system says so."""
        there = self.list("refs/").keys()
        clash = (names & folders_of(there | names)) | (there & folders_of(names))
        for name in sorted(clash):
            raise Conflict(f"ref {name} is in the way of others below it", "Rename one of them.", ref=name)

    def _hold(self, oid: bytes) -> None:
        if self.value(_HOLDER) is not None:  # git passes over the reflog of a ref that is not there
            try:
                self._append(_HOLDER, oid, oid, reflog.RENAMED)
            except OSError:
                pass  # a full disk must not keep a change from being taken back

    def log(self, name: str, old: RefValue, new: RefValue) -> None:
        """A line in the ref's reflog, as git writes it: for a move that will not be taken back."""
        if name.startswith(_LOGGED):
            self._append(name, old, new, b"snapstore")

    def _append(self, name: str, old: RefValue, new: RefValue, why: bytes) -> None:
        before, after = (value.hex().encode() if isinstance(value, bytes) else None for value in (old, new))
        self.container._log(os.fsencode(name), before, after, COMMITTER, max(0, int(time.time())), 0, why)

    def logged(self) -> dict[str, reflog.Rows]:
        """The reflogs, by ref."""
        return reflog.read(self._git_dir)

    def forget_logged(self, before: int) -> None:
        """Drops the lines of reflogs from before a moment. Call under the store's lock."""
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
        """Removes locks that a killed process of ours left: also of refs that had moved by then, which nobody would
        lock again for a while. A git by hand refuses to work where one lies."""
        for path in (*map(self._path, names), f"{self._git_dir}/{PACKED}"):
            lock = f"{path}.lock"
            wait = _Wait(lock, self.stale_after)
            while os.path.lexists(lock):
                wait.once()

    def _patiently(self, change: Callable[[], T]) -> T:
        """Make a change as soon as nobody holds the lock that it needs."""
        waits: dict[str, _Wait] = {}
        vanished = 0
        while True:
            try:
                return change()
            except FileLocked as error:
                lock = os.fsdecode(error.lockfilename)
                waits.setdefault(lock, _Wait(lock, self.stale_after)).once()
            except FileNotFoundError:  # git removed the folder as it packed the last ref in it
                vanished += 1
                if vanished > _MOST_VANISHED:
                    raise


class _Wait:
    """Waits for a lock file to go. One that nobody gives up is a dead process's, and is removed."""

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
        if self._held != (st.st_ino, st.st_mtime_ns):  # it changed hands
            self._held, self._since = (st.st_ino, st.st_mtime_ns), time.monotonic()
        if time.time() - st.st_mtime > self._stale_after or time.monotonic() - self._since > self._stale_after:
            remove(self._lock)
        else:
            time.sleep(0.005)


def _value(text: bytes | None) -> RefValue:
    if text is None:
        return None
    return os.fsdecode(text[len(SYMREF) :]) if text.startswith(SYMREF) else bytes.fromhex(text.decode())


def _spelled(value: RefValue) -> ObjectID | None:
    return None if value is None else ObjectID(os.fsencode(spell(value)))


def folders_of(names: Iterable[str]) -> set[str]:
    """All that some names are below."""
    found: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def spell(value: bytes | str) -> str:
    """A ref's value as git writes it."""
    return value.hex() if isinstance(value, bytes) else f"ref: {value}"


def unspell(text: str | None) -> RefValue:
    if text is None:
        return None
    return text[5:] if text.startswith("ref: ") else bytes.fromhex(text)


def moved_meanwhile(name: str, old: RefValue, found: RefValue) -> Conflict:
    return Conflict(
        f"ref {name} moved meanwhile",
        "Another program moved it; run the command again.",
        ref=name,
        expected=old and spell(old),
        found=found and spell(found),
    )


def bad_part(part: str) -> bool:
    """Whether git would refuse this as one part of a ref's name."""
    return (
        not part
        or part.startswith((".", "-"))
        or part.endswith((".", ".lock"))
        or ".." in part
        or "@{" in part
        or part == "@"
        or any(character in "~^:?*[\\/ \x7f" or character < " " for character in part)
    )


def travels_in(
    moves: Iterable[tuple[str, RefValue, RefValue]],
) -> tuple[list[tuple[str, str]], dict[str, bytes], dict[str, bytes]]:
    """What moves of refs amount to: what one ref held went to another; was made from nothing; was lost to nothing.
    Refs that held the same are told apart by their order, which is the same on both sides."""
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
