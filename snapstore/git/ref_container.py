"""dulwich's refs of one repository, guarded for a store in which anybody may run git at the same time.

Ours stays, because dulwich's `DiskRefsContainer` does not do it (test_git_refs.py shows each):
- a ref that cannot be read is refused by name, not taken for one that is not there;
- a symbolic ref is moved itself, where its name is what `exactly` says: dulwich moves what it stands for;
- a packed value goes before the loose one, and git cannot pack the ref meanwhile and bring it back;
- packed-refs is read whatever its header says, 19,000 lines in milliseconds, and written without the word `peeled`:
  by that git would take a tag that was packed here for one that leads to no other object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dulwich.file import GitFile
from dulwich.objects import ZERO_SHA, ObjectID
from dulwich.reflog import format_reflog_line
from dulwich.refs import SYMREF, DiskRefsContainer, Ref, write_packed_refs

from snapstore.base.files import sync_folder
from snapstore.errors import Corrupt
from snapstore.git.objects.pack_writer import remove

COMMITTER = b"snapstore <snapstore@localhost>"
PACKED = "packed-refs"
_Stamp = tuple[int, int, int, int, int]


class Container(DiskRefsContainer):
    """The refs of a store, as `Store.repo.refs` gives them to others."""

    def __init__(self, git_dir: str) -> None:
        super().__init__(git_dir, logger=self._append)
        self.git_dir = git_dir
        self._exact: bytes | None = None
        self._packed: tuple[_Stamp | None, dict[Ref, ObjectID]] | None = None  # as last read

    @contextmanager
    def exactly(self, name: bytes) -> Iterator[None]:
        """Move a ref itself meanwhile, also where it is a symbolic one."""
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
        """What a ref itself holds. Loose first, packed second, and loose again when neither has it: git packs by
        writing packed-refs and then deleting the loose file, so one of the looks must find it."""
        for _ in range(5):
            value = self._read_loose_ref_file(refname) or self.get_packed_refs().get(refname)
            if value is not None or not os.path.lexists(self.refpath(refname)):
                return value
        return None

    def refpath(self, name: bytes) -> bytes:
        return self.path + b"/" + name  # a store is nobody's second work tree

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
            raise Corrupt(f"ref {os.fsdecode(name)} is damaged", _mending(os.fsdecode(name)), ref=os.fsdecode(name))
        return text

    def get_packed_refs(self) -> dict[Ref, ObjectID]:
        known = self._packed  # other threads may let go of it meanwhile
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
                    raise Corrupt(f"{PACKED} is damaged", ref=PACKED)
                found[Ref(line[41:])] = ObjectID(line[:40])
        self._packed = key, found
        return found

    def _stamp(self) -> _Stamp | None:
        try:
            return _stamp_of(os.stat(f"{self.git_dir}/{PACKED}"))
        except FileNotFoundError:
            return None

    def get_peeled(self, name: Ref) -> ObjectID | None:
        return None  # nobody has looked

    def add_packed_refs(self, new_refs: Mapping[Ref, ObjectID | None]) -> None:
        """Make refs, or with None remove them, in one write of packed-refs. None of them may be loose."""
        self.change_packed(new_refs, lambda: None)

    def change_packed(self, new_refs: Mapping[Ref, ObjectID | None], check: Callable[[], None]) -> None:
        """The same. `check` may refuse once packed-refs is locked."""
        with GitFile(f"{self.git_dir}/{PACKED}", "wb", mask=0o600) as file:
            check()
            self._write(file, {**self.get_packed_refs(), **new_refs})
        self._packed = None
        sync_folder(self.git_dir)

    def _write(self, file: object, refs: Mapping[Ref, ObjectID | None]) -> None:
        packed = {name: value for name, value in refs.items() if value is not None}
        # An empty file is no packed-refs to dulwich: with a header it is.
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
        """Removes a ref, first its packed value and then its loose one, as git does: in the other order an interruption
        would leave the packed value, which is older than either side of the move. packed-refs stays locked until the
        loose file is gone: git may be packing that very ref just now, and would bring it back."""
        path = os.fsdecode(self.refpath(name))
        with _locked(path):
            if old_ref is not None and self.read_ref(name) != old_ref:
                return False
            with _locked(f"{self.git_dir}/{PACKED}"):
                self._remove_packed_ref(name)
                remove(path)
            if message is not None:
                self._append(name, old_ref or ZERO_SHA, ZERO_SHA, committer, timestamp, timezone, message)
        return True

    def _remove_packed_ref(self, name: Ref) -> None:
        packed = self.get_packed_refs()
        if name not in packed:
            return
        # Not git's own name for it: git refuses to work where a killed process left that file.
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
        """A line in a ref's reflog. Not synced: no object that matters is held by a reflog alone."""
        path = f"{self.git_dir}/logs/{os.fsdecode(ref)}"
        make_folder(os.path.dirname(path))
        line = format_reflog_line(old_sha, new_sha, committer or COMMITTER, timestamp or 0, timezone or 0, message)
        with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(line + b"\n")


def make_folder(path: str) -> None:
    """Make a folder with those above it, durably and for nobody else."""
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
    """Hold git's lock on a file, and give it back without writing."""
    file = GitFile(path, "wb", mask=0o600)
    try:
        yield
    finally:
        file.abort()


def _stamp_of(st: os.stat_result) -> _Stamp:
    return st.st_ino, st.st_dev, st.st_size, st.st_mtime_ns, st.st_ctime_ns


def _is_id(text: bytes) -> bool:
    return len(text) == 40 and not text.strip(b"0123456789abcdef")


def _mending(name: str) -> str:
    """What to do about a ref that cannot be read."""
    if name.startswith("refs/snapstore/cursor/"):
        session = name.rpartition("/")[2]
        return f"Put `ref: refs/heads/{session}/BRANCH` into its file in the store: the branch it stood on."
    return "Put the right commit into its file in the store; `git fsck --lost-found` there lists those without a name."
