"""dulwich's ref container, guarded against git running at the same time.

dulwich's `DiskRefsContainer` lacks the following, so this module adds it (test_git_refs.py shows each):
- An unreadable ref is refused by name. dulwich treats such a ref as absent.
- Inside `exactly`, a symbolic ref itself is moved. dulwich moves the ref that a symbolic ref points to.
- When a ref is removed, the packed value goes before the loose one, and the locks keep git from packing the
  ref in between, which would bring the ref back.
- packed-refs is read whatever its header says, 19,000 lines in milliseconds, and written without the word `peeled`.
  With that word, git would believe that a tag packed here points to no other object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dulwich.file import GitFile
from dulwich.objects import ZERO_SHA, ObjectID
from dulwich.reflog import format_reflog_line
from dulwich.refs import SYMREF, DiskRefsContainer, Ref, write_packed_refs

from snapstore.base.files import remove_if_there, sync_folder
from snapstore.errors import Corrupt
from snapstore.git.ref_names import CURSORS, HEADS, MAIN

COMMITTER = b"snapstore <snapstore@localhost>"
PACKED = "packed-refs"
_Stamp = tuple[int, int, int, int, int]


class Container(DiskRefsContainer):
    """The refs of a store, as exposed by `Store.repo.refs`."""

    def __init__(self, git_dir: str) -> None:
        super().__init__(git_dir, logger=self._append)
        self.git_dir = git_dir
        self._exact: bytes | None = None
        self._packed: tuple[_Stamp | None, dict[Ref, ObjectID]] | None = None  # the cache of packed-refs

    @contextmanager
    def exactly(self, name: bytes) -> Iterator[None]:
        """Make changes apply to this ref itself, even if the ref is symbolic."""
        self._exact = name
        try:
            yield
        finally:
            self._exact = None

    def follow(self, name: Ref) -> tuple[list[Ref], ObjectID | None]:
        if name == self._exact:
            found = self.read_ref(name)
            return [name], None if found is None else ObjectID(found)
        return super().follow(name)

    def read_ref(self, refname: Ref) -> bytes | None:
        """Return the value of the ref itself, without following a symbolic ref.

        The order is loose, packed, and loose again if neither exists. git packs a ref by writing packed-refs and then
        deleting the loose file, so one of these reads finds the value.
        """
        for _ in range(5):
            value = self._read_loose_ref_file(refname) or self.get_packed_refs().get(refname)
            if value is not None or not os.path.lexists(self.refpath(refname)):
                return value
        return None

    def refpath(self, name: bytes) -> bytes:
        return self.path + b"/" + name  # a store is never a linked worktree, so every ref lies in one folder

    def _read_loose_ref_file(self, name: Ref) -> bytes | None:
        try:
            fd = os.open(self.refpath(name), os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            text = os.read(fd, 4096)
        except IsADirectoryError:
            return None
        finally:
            os.close(fd)
        if text.startswith(SYMREF):
            return SYMREF + text[len(SYMREF) :].strip()
        text = text.strip()
        if not _is_id(text):
            shown = os.fsdecode(name)
            raise Corrupt(f"ref {shown} is damaged", self._mending(shown), ref=shown)
        return text

    def _mending(self, name: str) -> str:
        """Return a hint on how to repair an unreadable ref."""
        path = f"{self.git_dir}/{name}"
        if name.startswith(CURSORS):
            return f"Remove {path}; the next command in that session creates it again."
        if name == "HEAD":  # git does not recognize a repository with a damaged HEAD
            return f"Write the line `ref: {self._last_branch()}`, or that of another branch, into {path}."
        return (
            f"Write the id of the right commit into {path}; `git --git-dir {self.git_dir} fsck --lost-found` lists the "
            "commits that no ref reaches."
        )

    def _last_branch(self) -> str:
        """Return the branch that was written last."""
        written = [path for path in Path(self.git_dir, HEADS).rglob("*") if path.is_file() and path.suffix != ".lock"]
        loose = [str(path.relative_to(self.git_dir)) for path in sorted(written, key=os.path.getmtime, reverse=True)]
        packed = [os.fsdecode(name) for name in self.get_packed_refs() if name.startswith(HEADS.encode())]
        return [*loose, *packed, f"{HEADS}shell/{MAIN}"][0]

    def get_packed_refs(self) -> dict[Ref, ObjectID]:
        known = self._packed  # other threads may reset the attribute meanwhile
        if known is not None and known[0] == self._stamp():
            return known[1]
        found: dict[Ref, ObjectID] = {}
        try:
            with open(f"{self.git_dir}/{PACKED}", "rb") as file:
                key = _stamp_of(os.fstat(file.fileno()))
                lines = file.read().splitlines()
        except FileNotFoundError:
            lines, key = [], None
        for line in lines:
            if line[:1] not in b"#^" and len(line) > 41:
                if not _is_id(line[:40]):
                    path = f"{self.git_dir}/{PACKED}"
                    hint = f"Move {path} away, then run `snapstore check`: it tells which branches are missing."
                    raise Corrupt(f"{PACKED} is damaged", hint, ref=PACKED)
                found[Ref(line[41:])] = ObjectID(line[:40])
        self._packed = key, found
        return found

    def _stamp(self) -> _Stamp | None:
        try:
            return _stamp_of(os.stat(f"{self.git_dir}/{PACKED}"))
        except FileNotFoundError:
            return None

    def get_peeled(self, name: Ref) -> ObjectID | None:
        return None  # unknown: nothing here records peeled values

    def add_packed_refs(self, new_refs: Mapping[Ref, ObjectID | None]) -> None:
        """Create refs, or remove those with value None, in one write of packed-refs.

        None of the refs may be loose.
        """
        self.change_packed(new_refs, lambda: None)

    def change_packed(self, new_refs: Mapping[Ref, ObjectID | None], check: Callable[[], None]) -> None:
        """Create or remove packed refs like `add_packed_refs`, after a check.

        `check` runs once packed-refs is locked, and may raise to refuse the change.
        """
        with GitFile(f"{self.git_dir}/{PACKED}", "wb", mask=0o600) as file:
            check()
            self._write(file, {**self.get_packed_refs(), **new_refs})
        self._packed = None
        sync_folder(self.git_dir)

    def _write(self, file: object, refs: Mapping[Ref, ObjectID | None]) -> None:
        packed = {name: value for name, value in refs.items() if value is not None}
        # dulwich does not accept an empty file as packed-refs. An empty dict of peeled values makes dulwich write a
        # header.
        write_packed_refs(file, packed, None if packed else {})  # type: ignore[arg-type]

    def remove_if_equals(
        self,
        name: Ref,
        old_ref: ObjectID | None,
        committer: bytes | None = None,
        timestamp: int | None = None,
        timezone: int | None = None,
        message: bytes | None = None,
    ) -> bool:
        """Remove a ref: first its packed value, then its loose one, as git does.

        The journal, which calls this, decides whether the commits that only this ref reaches are still needed. In the
        other order, an interruption would leave the packed value, which is older than both values of this move.
        packed-refs stays locked until the loose file is gone, because git may be packing this very ref and would bring
        the ref back.
        """
        path = os.fsdecode(self.refpath(name))
        with _locked(path):
            if old_ref is not None and self.read_ref(name) != old_ref:
                return False
            with _locked(f"{self.git_dir}/{PACKED}"):
                self._remove_packed_ref(name)
                remove_if_there(path)
            if message is not None:
                self._append(name, old_ref or ZERO_SHA, ZERO_SHA, committer, timestamp, timezone, message)
        return True

    def _remove_packed_ref(self, name: Ref) -> None:
        packed = self.get_packed_refs()
        if name not in packed:
            return
        # Not git's own temporary name: git refuses to work if a killed process left a file of that name.
        temporary = f"{self.git_dir}/snapstore_packed_refs"
        with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            self._write(file, {**packed, name: None})
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, f"{self.git_dir}/{PACKED}")
        self._packed = None
        sync_folder(self.git_dir)

    def _append(
        self,
        ref: bytes,
        old_sha: bytes,
        new_sha: bytes,
        committer: bytes | None,
        timestamp: int | None,
        timezone: int | None,
        message: bytes,
    ) -> None:
        """Append a line to a ref's reflog.

        dulwich's own function would read the git config for the permissions, and anybody may have changed the config.
        The line is not synced: no object that matters is reachable only from a reflog.
        """
        path = f"{self.git_dir}/logs/{os.fsdecode(ref)}"
        make_folder(os.path.dirname(path))
        line = format_reflog_line(old_sha, new_sha, committer or COMMITTER, timestamp or 0, timezone or 0, message)
        with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(line + b"\n")


def make_folder(path: str) -> None:
    """Create a folder and its parents durably, accessible only to the owner."""
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


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold git's lock on a file, and release the lock without writing."""
    file = GitFile(path, "wb", mask=0o600)
    try:
        yield
    finally:
        file.abort()


def _stamp_of(st: os.stat_result) -> _Stamp:
    return st.st_ino, st.st_dev, st.st_size, st.st_mtime_ns, st.st_ctime_ns


def _is_id(text: bytes) -> bool:
    return len(text) == 40 and not text.strip(b"0123456789abcdef")
