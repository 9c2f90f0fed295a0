"""Refs: read, list, and move with compare-and-swap.

A ref is written the way git itself does it (`<ref>.lock`, then rename), because anyone may run `git gc` or `git
pack-refs` on the store, and those hold the same lock while they delete the loose file they have packed. A lock that
nobody gives up is a dead process's: it is cleared after a while, so no stale lock file ever needs a person.
"""

from __future__ import annotations

import os
import time

from snapstore.errors import Conflict, Corrupt, Unsafe
from snapstore.git.packwriter import sync_folder

STALE_AFTER = 5.0  # seconds; git holds a ref's lock for milliseconds


class Refs:
    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self._packed: dict[str, bytes] = {}
        self._packed_stat: tuple[int, int, int] | None = None

    def read(self, name: str) -> bytes | None:
        for _ in range(5):
            # Loose first, packed second, and loose again when neither has it: git packs by writing packed-refs and
            # then deleting the loose file, so one of the looks must find it.
            value = self._read_loose(name) or self._read_packed().get(name)
            if value is not None:
                return value
            if not os.path.lexists(self._path(name)):
                break
        return None

    def list(self, prefix: str) -> dict[str, bytes]:
        """Every ref below a prefix such as `refs/heads/`, by full name."""
        found = {name: oid for name, oid in self._read_packed().items() if name.startswith(prefix)}
        top = f"{self._git_dir}/{prefix.rstrip('/')}"
        for folder, _, names in os.walk(top):
            for name in names:
                if not name.endswith(".lock"):
                    full = f"{folder}/{name}"[len(self._git_dir) + 1 :]
                    value = self._read_loose(full)
                    if value is not None:
                        found[full] = value
        return found

    def update(self, name: str, old: bytes | None, new: bytes | None) -> None:
        """Moves a ref from `old` to `new` (None: absent), durably. Raises Conflict when it is not at `old`."""
        path = self._path(name)
        self._make_folder(os.path.dirname(path))
        lock = f"{path}.lock"
        fd = self._lock(lock)
        try:
            try:
                found = self.read(name)
                if found != old:
                    raise Conflict(
                        f"ref {name} moved meanwhile",
                        "Another program moved it; run the command again.",
                        ref=name,
                        expected=old and old.hex(),
                        found=found and found.hex(),
                    )
                if new is not None:
                    os.write(fd, new.hex().encode() + b"\n")
                    os.fsync(fd)
            finally:
                os.close(fd)
            if new is not None:
                os.rename(lock, path)
            else:
                self._delete(name, path)
                os.unlink(lock)
            sync_folder(os.path.dirname(path))
        except BaseException:
            try:
                os.unlink(lock)
            except FileNotFoundError:
                pass
            raise

    def head(self) -> str | None:
        """The ref that HEAD stands for."""
        try:
            with open(f"{self._git_dir}/HEAD", encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        except FileNotFoundError:
            return None
        return text[5:].strip() if text.startswith("ref: ") else None

    def set_head(self, name: str) -> None:
        path = f"{self._git_dir}/HEAD"
        fd = self._lock(f"{path}.lock")
        try:
            os.write(fd, f"ref: {name}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(f"{path}.lock", path)
        sync_folder(self._git_dir)

    def _path(self, name: str) -> str:
        parts = name.split("/")
        if parts[0] != "refs" or len(parts) < 3 or any(bad_part(part) for part in parts):
            raise Unsafe(f"{name!r} is not a ref name")
        return f"{self._git_dir}/{name}"

    def _read_loose(self, name: str) -> bytes | None:
        try:
            with open(self._path(name), "rb") as file:
                text = file.read(64)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        try:
            oid = bytes.fromhex(text.strip().decode())
        except ValueError:
            oid = b""
        if len(oid) != 20:
            raise Corrupt(
                f"ref {name} is damaged",
                f"Its file in the store holds {text[:41]!r}; put the right commit there or remove it.",
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
            packed: dict[str, bytes] = {}
            with open(path, "rb") as file:
                for line in file:
                    if line[:1] not in b"#^" and len(line) > 41:
                        try:
                            oid = bytes.fromhex(line[:40].decode())
                        except ValueError:
                            raise Corrupt("packed-refs is damaged", ref="packed-refs") from None
                        packed[line[41:].rstrip(b"\n").decode("utf-8", "surrogateescape")] = oid
            self._packed, self._packed_stat = packed, seen
        return self._packed

    def _delete(self, name: str, path: str) -> None:
        if name in self._read_packed():
            lock = f"{self._git_dir}/packed-refs.lock"
            fd = self._lock(lock)
            try:
                lines: list[bytes] = []
                with open(f"{self._git_dir}/packed-refs", "rb") as file:
                    dropping = False
                    for line in file:
                        if line[:1] != b"^":
                            dropping = line[41:].rstrip(b"\n") == os.fsencode(name)
                        if not dropping:
                            lines.append(line)
                os.write(fd, b"".join(lines))
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(lock, f"{self._git_dir}/packed-refs")
            sync_folder(self._git_dir)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def _lock(self, path: str) -> int:
        start = time.monotonic()
        while True:
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                pass
            except FileNotFoundError:  # git removed the folder as it packed the last ref in it
                self._make_folder(os.path.dirname(path))
                continue
            try:
                age = time.time() - os.stat(path).st_mtime
            except FileNotFoundError:
                continue
            if age > STALE_AFTER or time.monotonic() - start > STALE_AFTER:
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
            else:
                time.sleep(0.005)

    def _make_folder(self, path: str) -> None:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                pass
            sync_folder(os.path.dirname(folder))


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
