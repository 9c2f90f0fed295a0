"""Refs: read, list, and move with compare-and-swap.

A ref is written the way git itself does it (`<ref>.lock`, then rename), because anyone may run `git gc` or `git
pack-refs` on the store, and those hold the same lock while they delete the loose file they have packed. A lock that
nobody gives up is a dead process's: it is cleared after a while, so no stale lock file ever needs a person.
"""

from __future__ import annotations

import os
import time

from snapstore.errors import Conflict, Corrupt, Unsafe
from snapstore.git import packedrefs, reflogs
from snapstore.git.packwriter import sync_folder, write_all
from snapstore.git.reflogs import files_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Refs whose former values hang from nothing else; in the reflog they are no surprise to `git fsck`, and gc ages them.
_LOGGED = ("refs/notes/", "refs/snapstore/disk")
# What a ref led to that gets another name: see `update_all`. Our own gc drops these lines, under the store's lock.
_HOLDER = "refs/notes/turns"
_MANY = 64  # refs from which on one write of all the packed ones is quicker
STALE_AFTER = 5.0  # seconds; git holds a ref's lock for milliseconds


# An object id, the name of the ref that a symbolic ref stands for, or None for no ref at all.
RefValue = bytes | str | None
Damaged = list[Corrupt]


class Refs:
    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self._packed: dict[str, bytes] = {}
        self._packed_stat: tuple[int, int, int] | None = None
        self._paths: dict[str, str] = {}
        self.stale_after = STALE_AFTER

    def read(self, name: str) -> bytes | None:
        """The object a ref leads to, through a symbolic one if need be."""
        value = self.value(name)
        return self._oid(value) if isinstance(value, str) else value

    def value(self, name: str) -> RefValue:
        """What the ref itself holds: an object id, the name of another ref, or None."""
        path = self._path(name)
        for _ in range(5):
            # Loose first, packed second, and loose again when neither has it: git packs by writing packed-refs and
            # then deleting the loose file, so one of the looks must find it.
            value = self._read_loose(name, path) or self._read_packed().get(name)
            if value is not None:
                return value
            if not os.path.lexists(path):
                break
        return None

    def _oid(self, name: str) -> bytes | None:
        value = self.value(name)
        return None if isinstance(value, str) else value  # one step only: we never make longer chains

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

    def update(self, name: str, old: RefValue, new: RefValue) -> None:
        """Moves a ref from `old` to `new` (None: absent), durably. Raises Conflict when it is not at `old`."""
        path = self._path(name)
        lock = f"{path}.lock"
        fd = self._lock(lock)
        try:
            try:
                found = self.value(name)
                if found != old:
                    raise moved_meanwhile(name, old, found)
                if new is not None:
                    os.write(fd, spell(new).encode("utf-8", "surrogateescape") + b"\n")
                    os.fsync(fd)
            finally:
                os.close(fd)
            if new is not None:
                os.rename(lock, path)
            else:
                self._delete(name, path)
                os.unlink(lock)
        except BaseException:
            _discard(lock)
            raise
        try:
            sync_folder(os.path.dirname(path))  # by now the lock may be another's
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
        at_once: dict[str, bytes | None] = {}
        for name, old, new in moves:
            if isinstance(old or new, bytes) and None in (old, new) and not os.path.lexists(self._path(name)):
                at_once[name] = new if isinstance(new, bytes) else None
        if len(at_once) < _MANY:
            at_once.clear()
        else:
            self._change_packed(at_once, {name: old for name, old, _ in moves})
        for move in moves:
            if move[0] not in at_once:
                self.update(*move)

    def _change_packed(self, changes: Mapping[str, bytes | None], before: Mapping[str, RefValue]) -> None:
        self._refuse_in_the_way({name for name, new in changes.items() if new is not None})
        lock = f"{self._git_dir}/packed-refs.lock"
        fd = self._lock(lock)
        try:
            try:
                for name in changes:
                    found = self.value(name)
                    if found != before[name]:
                        raise moved_meanwhile(name, before[name], found)
                write_all(fd, b"".join(packedrefs.changed(packedrefs.lines(self._git_dir), changes)))
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(lock, f"{self._git_dir}/packed-refs")
        except BaseException:
            _discard(lock)
            raise
        sync_folder(self._git_dir)

    def _refuse_in_the_way(self, names: set[str]) -> None:
        """A ref cannot be a folder of others as well; of a loose one the file system says so."""
        there = self.list("refs/").keys()
        clash = (names & folders_of(there | names)) | (there & folders_of(names))
        for name in sorted(clash):
            raise Conflict(f"ref {name} is in the way of others below it", "Rename one of them.", ref=name)

    def _hold(self, oid: bytes) -> None:
        if self.value(_HOLDER) is not None:  # git passes over the reflog of a ref that is not there
            try:
                self._append(_HOLDER, oid, oid, reflogs.RENAMED)
            except OSError:
                pass  # a full disk must not keep a change from being taken back

    def log(self, name: str, old: RefValue, new: RefValue) -> None:
        """A line in the ref's reflog, as git writes it: for a move that will not be taken back. Not synced: no object
        that matters is held by a reflog alone, and git skips lines that it cannot read."""
        if name.startswith(_LOGGED):
            self._append(name, old, new, "snapstore")

    def _append(self, name: str, old: RefValue, new: RefValue, why: str) -> None:
        path = f"{self._git_dir}/logs/{name}"
        self._make_folder(os.path.dirname(path))
        before, after = (value if isinstance(value, bytes) else bytes(20) for value in (old, new))
        reflogs.append(path, before, after, why)

    def logged(self) -> dict[str, reflogs.Rows]:
        """The reflogs, by ref."""
        return reflogs.read(self._git_dir)

    def forget_logged(self, before: int) -> None:
        """Drops the lines of reflogs from before a moment. Call under the store's lock."""
        reflogs.forget(self._git_dir, before)

    def _path(self, name: str) -> str:
        path = self._paths.get(name)
        if path is None:
            parts = name.split("/")
            if name != "HEAD" and (parts[0] != "refs" or len(parts) < 3 or any(bad_part(part) for part in parts)):
                raise Unsafe(f"{name!r} is not a ref name")
            path = self._paths[name] = f"{self._git_dir}/{name}"
        return path

    def _read_loose(self, name: str, path: str) -> RefValue:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            text = os.read(fd, 4096)
        except IsADirectoryError:
            return None
        finally:
            os.close(fd)
        if text.startswith(b"ref: "):
            return text[5:].strip().decode("utf-8", "surrogateescape")
        try:
            oid = bytes.fromhex(text.strip().decode())
        except ValueError:
            oid = b""
        if len(oid) != 20:
            raise Corrupt(
                f"ref {name} is damaged",
                _mending(name),
                ref=name,
            )
        return oid

    def _read_packed(self) -> dict[str, bytes]:
        path = f"{self._git_dir}/packed-refs"
        try:
            stat = os.stat(path)
        except FileNotFoundError:
            self._packed, self._packed_stat = {}, None
            return self._packed
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen != self._packed_stat:
            packed = packedrefs.parse(packedrefs.lines(self._git_dir))
            self._packed, self._packed_stat = packed, seen
        return self._packed

    def _delete(self, name: str, path: str) -> None:
        """Removes a ref, first its packed value and then its loose one, as git does: in the other order an interruption
        would leave the packed value, which is older than either side of the move. packed-refs stays locked until the
        loose file is gone: git may be packing that very ref just now, and would bring it back."""
        lock = f"{self._git_dir}/packed-refs.lock"
        os.close(self._lock(lock))
        try:
            lines = packedrefs.lines(self._git_dir)
            if name in packedrefs.parse(lines):
                # Not git's own name for it: git refuses to work where a killed process left that file.
                temporary = f"{self._git_dir}/snapstore_packed_refs"
                fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                try:
                    write_all(fd, b"".join(packedrefs.changed(lines, {name: None})))
                    os.fsync(fd)
                finally:
                    os.close(fd)
                os.rename(temporary, f"{self._git_dir}/packed-refs")
                sync_folder(self._git_dir)
            _discard(path)
        finally:
            _discard(lock)

    def clear_locks(self, names: Iterable[str]) -> None:
        """Removes locks that a killed process of ours left: also of refs that had moved by then, which nobody would
        lock again for a while. A git by hand refuses to work where one lies."""
        for path in (*map(self._path, names), f"{self._git_dir}/packed-refs"):
            lock = f"{path}.lock"
            if os.path.lexists(lock):
                os.close(self._lock(lock))
                _discard(lock)

    def _lock(self, path: str) -> int:
        """Makes a lock file, waiting while another process holds it. One that nobody gives up is a dead process's."""
        held: tuple[int, int] | None = None
        since = 0.0
        while True:
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                pass
            except FileNotFoundError:  # git removed the folder as it packed the last ref in it
                self._make_folder(os.path.dirname(path))
                continue
            try:
                st = os.stat(path)
            except FileNotFoundError:
                continue
            if held != (st.st_ino, st.st_mtime_ns):  # it changed hands
                held, since = (st.st_ino, st.st_mtime_ns), time.monotonic()
            if time.time() - st.st_mtime > self.stale_after or time.monotonic() - since > self.stale_after:
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
            else:
                time.sleep(0.005)

    def _make_folder(self, path: str) -> None:
        missing = [path]
        while missing:
            try:
                os.mkdir(missing[-1], 0o700)
                sync_folder(os.path.dirname(missing[-1]))
            except FileExistsError:
                pass
            except FileNotFoundError:
                missing.append(os.path.dirname(missing[-1]))
                continue
            missing.pop()


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def folders_of(names: Iterable[str]) -> set[str]:
    """All that some names are below."""
    found: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _mending(name: str) -> str:
    """What to do about a ref that cannot be read."""
    if name.startswith("refs/snapstore/cursor/"):
        session = name.rpartition("/")[2]
        return f"Put `ref: refs/heads/{session}/BRANCH` into its file in the store: the branch it stood on."
    return "Put the right commit into its file in the store; `git fsck --lost-found` there lists those without a name."


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
