"""The first snapshot of a git checkout: blobs and trees that the user's own repository already holds are taken over.

The user's index says which blob every clean file is. It is believed only where the file's stat matches, the entry is
not racy, no conversion could apply (conversions.py), the blob is there, and it has exactly the file's size: a file that
was checked out under attributes or settings that are gone by now looks clean and differs from its blob, but then in
size too. Everything else is read and hashed.

The objects come in by hard links, so that the user's own gc cannot take them away. An alternates entry would: after
`reset --hard`, reflog expiry and `gc --prune=now` a shadow on alternates lacked a tree.
"""

from __future__ import annotations

import os
import stat
from struct import Struct

from snapstore.errors import SnapstoreError
from snapstore.git.objects import BLOB, Entry
from snapstore.git.odb import Objects
from snapstore.git.packs import Pack
from snapstore.git.packwriter import sync_folder
from snapstore.worktree import gitconfig, usergit
from snapstore.worktree.conversions import read_conversions
from snapstore.worktree.gitindex import IndexUnreadable, read_index
from snapstore.worktree.platform import COARSE_NS, TICK_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from snapstore.worktree.conversions import Conversions

_STAT = Struct(">10I")
_MANY = 8  # a pack with this many objects for each file is searched, not read into memory


class NotBorrowable(Exception):
    """The files are to be hashed instead."""


class Borrow:
    """What one checkout can lend. Offered to the scan as a hint; `link` brings in what was used."""

    def __init__(self, repo: usergit.UserRepo, root: bytes, home: bytes | None) -> None:
        if repo.object_format != b"sha1":
            raise NotBorrowable("its object ids are not ours")
        self._repo = repo
        self._home = home
        self._prefix = root[len(repo.top.rstrip(b"/")) + 1 :] + b"/" if root != repo.top else b""
        try:
            self._index = read_index(os.path.join(repo.git_dir, b"index"))
        except (IndexUnreadable, OSError) as error:
            raise NotBorrowable(str(error)) from None
        written = self._index.mtime_ns
        self._newest = written - (TICK_NS if written % 1_000_000_000 else COARSE_NS)
        self._sources = [_Source(folder) for folder in _object_folders(os.path.join(repo.common_dir, b"objects"))]
        for source in self._sources:
            source.prepare(len(self._index.entries))
        self._clean: set[bytes] = set()
        self._conversions: Conversions | None = None

    @property
    def tracked(self) -> Iterable[bytes]:
        """Paths that the user's git tracks, below the root."""
        if not self._prefix:
            return self._index.entries
        return [path[len(self._prefix) :] for path in self._index.entries if path.startswith(self._prefix)]

    def prepare(self, folders_with_attributes: Iterable[bytes]) -> None:
        """Told which folders hold a .gitattributes file, before the first question."""
        texts: dict[bytes, bytes] = {}
        folders = {(self._prefix + folder).rstrip(b"/") for folder in folders_with_attributes}
        above = self._prefix.rstrip(b"/")
        while above:
            above = above.rpartition(b"/")[0]
            folders.add(above)
        for folder in folders:
            text = gitconfig.read_text(os.path.join(self._repo.top, folder, b".gitattributes"))
            if text is not None:
                texts[folder] = text
        config = gitconfig.user_config(self._repo, self._home)
        self._conversions = read_conversions(self._repo, config, texts, self._home, self._index.entries)

    def __call__(self, path: bytes, st: os.stat_result) -> bytes | None:
        """The blob of a file, or None where it must be read."""
        head = self._index.entries.get(self._prefix + path)
        if head is None or self._conversions is None:
            return None
        ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size = _STAT.unpack_from(head)
        if (
            size != st.st_size
            or mtime * 1_000_000_000 + mtime_ns != st.st_mtime_ns
            or ctime * 1_000_000_000 + ctime_ns != st.st_ctime_ns
            or inode != st.st_ino & 0xFFFFFFFF
            or st.st_mtime_ns >= self._newest  # racy: it may have changed after git looked, within the same tick
            or not stat.S_ISREG(mode)
            or self._conversions.suspect(self._prefix + path)
        ):
            return None
        oid = head[40:60]
        for source in self._sources:
            if source.lends(oid, size):
                if mode & 0o777 == 0o755 if st.st_mode & stat.S_IXUSR else mode & 0o777 == 0o644:
                    self._clean.add(path)
                return oid
        return None

    def base(self, changes: Mapping[bytes, Entry | None]) -> tuple[bytes, dict[bytes, Entry | None]] | None:
        """A whole tree of the user's to start from, and what on disk differs from it. None: there is none."""
        found = self._index.trees.get(self._prefix.rstrip(b"/"))
        if found is None or self._index.unmerged:
            return None
        top, at = self._prefix.rstrip(b"/"), len(self._prefix)
        staged = [path[at:] for path in (*self._index.entries, *self._index.gitlinks) if path.startswith(self._prefix)]
        if found[0] != len(staged):  # a sparse index: the tree has files that are not checked out
            return None
        for folder, (_, oid) in self._index.trees.items():
            below = not top or folder == top or folder.startswith(self._prefix)
            if below and not any(source.lends_tree(oid) for source in self._sources):
                return None
        rest: dict[bytes, Entry | None] = {path: entry for path, entry in changes.items() if path not in self._clean}
        rest.update(dict.fromkeys([path for path in staged if path not in changes]))
        return found[1], rest

    def link(self, objects: Objects) -> None:
        """Hard-links the packs and loose objects that were used. All or nothing: NotBorrowable if one cannot be."""
        made: list[str] = []
        try:
            for source in self._sources:
                source.link(objects, made)
            sync_folder(objects.pack_folder)
        except OSError as error:
            for path in made:
                os.unlink(path)
            raise NotBorrowable(str(error)) from None
        finally:
            objects.reload()
            self.close()

    def close(self) -> None:
        for source in self._sources:
            source.close()


class _Source:
    """One object folder of the user's repository."""

    def __init__(self, folder: bytes) -> None:
        self._folder = os.fsdecode(folder)
        self._objects = Objects(os.path.dirname(self._folder))
        self._objects.folder, self._objects.pack_folder = self._folder, f"{self._folder}/pack"
        self._tables: list[tuple[Pack, Callable[[bytes], int | None]]] = []
        self._used: set[str] = set()
        self._used_loose: set[bytes] = set()

    def prepare(self, wanted: int) -> None:
        """Reads the pack indexes, those of moderate size as a table: one look-up instead of a search in each."""
        if not os.path.isdir(self._objects.pack_folder):
            return
        try:
            for pack in self._objects.packs():
                if pack.count() <= _MANY * wanted + 1000:
                    self._tables.append((pack, pack.offsets().get))
                else:
                    self._tables.append((pack, pack.find))
                pack.map()
        except (SnapstoreError, OSError, ValueError) as error:
            raise NotBorrowable(str(error)) from None

    def lends(self, oid: bytes, size: int) -> bool:
        """Whether a blob of this size is here."""
        try:
            for pack, find in self._tables:
                offset = find(oid)
                if offset is not None:
                    if pack.header(offset, self._objects.header) != (BLOB, size):
                        return False
                    self._used.add(pack.base)
                    return True
            if oid in self._used_loose:
                return True
            loose = self._objects.loose_header(oid)
            if loose == (BLOB, size):
                self._used_loose.add(oid)
                return True
        except (SnapstoreError, OSError, ValueError, IndexError):
            pass
        return False

    def lends_tree(self, oid: bytes) -> bool:
        for pack, find in self._tables:
            if find(oid) is not None:
                self._used.add(pack.base)
                return True
        if self._objects.loose_header(oid) is None:
            return False
        self._used_loose.add(oid)
        return True

    def link(self, objects: Objects, made: list[str]) -> None:
        for base in self._used:
            target = f"{objects.pack_folder}/{os.path.basename(base)}"
            # The index last: only with it does a pack count. `.keep` spares it any repacking.
            os.close(os.open(f"{target}.keep", os.O_WRONLY | os.O_CREAT, 0o600))
            made.append(f"{target}.keep")
            for suffix in (".pack", ".idx"):
                _link(base + suffix, target + suffix)
                made.append(target + suffix)
        for oid in self._used_loose:
            name = oid.hex()
            folder = f"{objects.folder}/{name[:2]}"
            os.makedirs(folder, mode=0o700, exist_ok=True)
            path = f"{folder}/{name[2:]}"
            if not os.path.exists(path):
                _link(f"{self._folder}/{name[:2]}/{name[2:]}", path)
                made.append(path)
        for folder in {f"{objects.folder}/{oid.hex()[:2]}" for oid in self._used_loose}:
            sync_folder(folder)
        if self._used_loose:
            sync_folder(objects.folder)

    def close(self) -> None:
        self._objects.close()


def _link(source: str, target: str) -> None:
    st = os.lstat(source)
    if st.st_uid != os.geteuid() or not stat.S_ISREG(st.st_mode) or st.st_mode & 0o022:
        raise PermissionError(f"{source} is not only ours to write")
    os.link(source, target, follow_symlinks=False)


def _object_folders(first: bytes) -> list[bytes]:
    """The repository's objects and those it borrows itself."""
    folders: list[bytes] = []
    waiting = [first]
    while waiting and len(folders) < 10:
        folder = waiting.pop(0)
        if folder in folders or not os.path.isdir(folder):
            continue
        folders.append(folder)
        text = gitconfig.read_text(os.path.join(folder, b"info", b"alternates")) or b""
        for line in text.split(b"\n"):
            if line and not line.startswith((b"#", b'"')):
                waiting.append(os.path.normpath(os.path.join(folder, line)))
    return folders
