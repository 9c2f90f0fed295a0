"""Reuse of blobs and trees of the user's own repository for the first snapshot.

The user's index names the blob of every clean file. An index entry is trusted only if the file's stat matches, the
entry is not racy, no conversion could apply (usergit/conversions.py), the blob exists and is undamaged, and the blob
has exactly the file's size. Every other file is read and hashed.

The size matters because a file that was checked out under attributes that no longer exist looks clean but differs from
its blob. Converted line endings and `$Id$` change the size. A filter may keep the size, but its name is in the
configuration, and then everything is hashed. One case cannot be detected without reading the file: a working-tree
encoding that is no longer in force and takes as many bytes as UTF-8.

The objects are hard-linked into the store, so that the user's own gc cannot remove them. With an alternates entry gc
could: after `reset --hard`, reflog expiry and `gc --prune=now`, a shadow repository with alternates lacked a tree.

Linked files are synced, one by one or many at once. Git syncs neither its loose objects nor every pack, and a store
that depends on unsynced files would be unusable after a power cut (test_powercut.py).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from threading import Thread

from snapstore.base.files import remove_quietly, sync_folder
from snapstore.base.platform import COARSE_NS, READ_FLAGS, TICK_NS, file_system_sync, is_young
from snapstore.errors import SnapstoreError
from snapstore.git.objects.ids import BLOB, EXECUTABLE, FILE, Entry, object_id
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import BORROWED, read_small_file
from snapstore.git.objects.pack_writer import new_name, write_keep
from snapstore.git.objects.store import Objects
from snapstore.worktree.scan.stat_cache import YOUNG, FileStat
from snapstore.worktree.usergit import config as gitconfig
from snapstore.worktree.usergit.conversions import Conversions, read_conversions
from snapstore.worktree.usergit.index import IndexUnreadable, read_index
from snapstore.worktree.usergit.user_repo import UserRepo

_STAT = Struct(">10I")
_CHECK_WHOLE = 1 << 29  # packs up to this many bytes are checked as a whole
_MANY = 8  # a pack with more than this many objects per file is searched, not read into memory


class NotBorrowable(Exception):
    """The checkout cannot be borrowed from; the files are hashed instead."""


class Borrow:
    """The objects of one checkout, offered to the scan as a hint.

    `link` hard-links the objects that the scan used into the store.
    """

    def __init__(self, repo: UserRepo, root: bytes, home: bytes | None) -> None:
        if repo.object_format != b"sha1":
            raise NotBorrowable("its object ids are not SHA-1")
        self._repo = repo
        self._home = home
        self._sources = [_Source(folder) for folder in _object_folders(os.path.join(repo.common_dir, b"objects"))]
        # Hashing releases the GIL: check the packs while the index is read.
        checking = Thread(target=self._check)
        checking.start()
        try:
            self._read(root)
        finally:
            checking.join()
        for source in self._sources:
            source.prepare(len(self._index.entries))

    def _check(self) -> None:
        for source in self._sources:
            source.check()

    def _read(self, root: bytes) -> None:
        repo = self._repo
        self._prefix = root[len(repo.top.rstrip(b"/")) + 1 :] + b"/" if root != repo.top else b""
        try:
            self._index = read_index(os.path.join(repo.git_dir, b"index"))
        except (IndexUnreadable, OSError) as error:
            raise NotBorrowable(str(error)) from None
        written = self._index.mtime_ns
        self._newest = written - (TICK_NS if written % 1_000_000_000 else COARSE_NS)
        self.expected = len(self._index.entries)
        self._staged_attributes = {
            path: head for path, head in self._index.entries.items() if path.endswith(b".gitattributes")
        }
        self._trees: set[bytes] = set()

    @property
    def tracked(self) -> Iterable[bytes]:
        """Return the paths below the root that the user's git tracks."""
        if not self._prefix:
            return self._index.entries
        return [path[len(self._prefix) :] for path in self._index.entries if path.startswith(self._prefix)]

    def rows(
        self, files: list[tuple[bytes, os.stat_result]], folders_with_attributes: list[bytes], limit: int
    ) -> dict[bytes, FileStat]:
        """Return cache rows for the files that need not be read.

        The loop is tight because it visits every file of the checkout.
        """
        conversions = self._read_conversions(folders_with_attributes)
        suspect = None if conversions.nothing else conversions.suspect
        smallest = conversions.smallest
        entries, prefix, newest, unpack = self._index.entries, self._prefix, self._newest, _STAT.unpack_from
        now = time.time_ns()
        settled = now - COARSE_NS  # older than the coarsest clock tick
        rows: dict[bytes, FileStat] = {}
        for path, st in files:
            head = entries.get(prefix + path)
            if head is None:
                continue
            ctime_s, ctime_ns, mtime_s, mtime_ns, _, inode, mode, _, _, size = unpack(head)
            mtime, ctime, st_mode = st.st_mtime_ns, st.st_ctime_ns, st.st_mode
            if (
                size != st.st_size
                or size < smallest
                or mtime_s * 1_000_000_000 + mtime_ns != mtime
                or ctime_s * 1_000_000_000 + ctime_ns != ctime
                or inode != st.st_ino & 0xFFFFFFFF
                or mtime >= newest  # racy: the file may have changed in the same tick after git looked
                or mode >> 12 != 8  # a regular file
                or st_mode >> 12 != 8
                or (limit and size > limit)
                or (mode ^ st_mode) & 0o100  # core.fileMode is off: git does not know the mode
                or (suspect is not None and suspect(prefix + path))
            ):
                continue
            oid = head[40:60]
            for source in self._sources:
                if source.lends(oid, size):
                    young = (mtime > settled or ctime > settled) and is_young(st, now)
                    kind = EXECUTABLE if st_mode & 0o100 else FILE
                    rows[path] = (YOUNG if young else size, mtime, ctime, st.st_ino, st_mode, kind, oid)
                    break
        if not all(source.checked for source in self._sources):
            for path in [path for path, row in rows.items() if not self._intact(row[6])]:
                del rows[path]  # the file on disk may be the only good copy
        return rows

    def _intact(self, oid: bytes) -> bool:
        """Return whether the copy that would be linked is undamaged."""
        return any(source.intact(oid) for source in self._sources)

    def _read_conversions(self, folders_with_attributes: list[bytes]) -> Conversions:
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
        return read_conversions(self._repo, config, texts, self._home, self._staged_attributes)

    def base(
        self, changes: Mapping[bytes, Entry | None], hinted: Mapping[bytes, FileStat]
    ) -> tuple[bytes, dict[bytes, Entry | None]] | None:
        """Return one of the user's trees to start from, and how the disk differs from it.

        Return None if no tree can be used.
        """
        top, at = self._prefix.rstrip(b"/"), len(self._prefix)
        found = self._index.trees.get(top)
        if found is None or self._index.unmerged:
            return None
        staged = self._index.entries.keys() | self._index.gitlinks
        if self._prefix:
            staged = {path[at:] for path in staged if path.startswith(self._prefix)}
        if found[0] != len(staged):  # a sparse index: the tree has files that are not checked out
            return None
        trees = [oid for folder, (_, oid) in self._index.trees.items() if (folder + b"/").startswith(self._prefix)]
        if not all(self._intact(oid) for oid in trees):
            return None
        self._trees = set(trees)
        # A hinted file is in that tree unchanged: its id and mode came from the index.
        gone: dict[bytes, Entry | None] = dict.fromkeys(staged - hinted.keys())
        return found[1], {**gone, **changes}

    def link(self, objects: Objects, hinted: Mapping[bytes, FileStat]) -> None:
        """Hard-link the packs and loose objects of the hinted blobs and of `base`'s trees.

        All or nothing: raise NotBorrowable if an object is missing or cannot be linked.
        """
        made: list[str] = []
        try:
            if len(self._sources) == 1 and self._sources[0].is_one_pack():
                self._sources[0].link_all(objects, made)  # as after a clone: there is nothing to choose
            else:
                wanted = {row[6] for row in hinted.values()} | self._trees
                for source in self._sources:
                    wanted = source.link(wanted, objects, made)
                if wanted:
                    raise FileNotFoundError(f"{len(wanted)} objects are missing")
            _sync_linked(made)
        except OSError as error:
            _remove_links(made)
            raise NotBorrowable(str(error)) from None
        finally:
            objects.reload()
            self.close()

    def linked_loose(self) -> set[bytes]:
        """Return the linked objects that no `.keep` protects.

        Until a ref leads to these objects, `git prune` may remove them.
        """
        return {oid for source in self._sources for oid in source.linked}

    def close(self) -> None:
        for source in self._sources:
            source.close()


class _Table:
    """One pack and its lookup function."""

    def __init__(self, pack: Pack, small: bool) -> None:
        self.pack = pack
        self.find: Callable[[bytes], int | None] = pack.offsets().get if small else pack.find
        self.checked = pack.size() <= _CHECK_WHOLE

    def intact(self, oid: bytes, offset: int) -> bool:
        if self.checked:
            return True
        try:  # a long history: reading the wanted objects costs less than reading the whole pack
            return object_id(*self.pack.read(offset)) == oid
        except SnapstoreError:
            return False


class _Source:
    """One object folder of the user's repository."""

    def __init__(self, folder: bytes) -> None:
        self._folder = os.fsdecode(folder)
        self._objects = Objects(os.path.dirname(self._folder), self._folder)
        self._packs: list[Pack] = []
        self._tables: list[_Table] = []
        self.loose = any(self._objects.loose_ids())
        self.linked: set[bytes] = set()  # loose objects that are hard-linked into the store
        self.checked = False  # whether every byte was checked

    def check(self) -> None:
        """Find the usable packs.

        Files whose blobs are in a damaged pack are read from disk instead.
        """
        try:
            packs = self._objects.packs() if os.path.isdir(self._objects.pack_folder) else []
        except (SnapstoreError, OSError):
            packs = []
        for pack in packs:
            try:
                # A pack of a partial clone has trees whose blobs may be missing.
                promised = os.path.exists(f"{pack.base}.promisor")
                if not promised and (pack.size() > _CHECK_WHOLE or pack.is_whole()):
                    self._packs.append(pack)
            except (SnapstoreError, OSError):
                continue

    def prepare(self, wanted: int) -> None:
        """Read the pack indexes.

        An index of moderate size becomes a table: one lookup instead of a search.
        """
        for pack in self._packs:
            try:
                self._tables.append(_Table(pack, small=pack.count() <= _MANY * wanted + 1000))
            except (SnapstoreError, OSError, ValueError):
                continue
        self.checked = not self.loose and all(table.checked for table in self._tables)

    def lends(self, oid: bytes, size: int) -> bool:
        """Return whether a blob of this size is here."""
        for table in self._tables:
            offset = table.find(oid)
            if offset is not None:
                return table.pack.holds_blob(offset, size)
        return self._loose(oid) == (BLOB, size)

    def intact(self, oid: bytes) -> bool:
        """Return whether the object is here and undamaged."""
        for table in self._tables:
            offset = table.find(oid)
            if offset is not None:
                return table.intact(oid, offset)
        try:
            return self._objects.loose_header(oid) is not None and bool(self._objects.verify(oid))
        except (SnapstoreError, OSError):
            return False

    def is_one_pack(self) -> bool:
        return len(self._tables) == 1 and not self.loose

    def link_all(self, objects: Objects, made: list[str]) -> None:
        for table in self._tables:
            self._link_pack(table.pack.base, objects, made)

    def link(self, wanted: set[bytes], objects: Objects, made: list[str]) -> set[bytes]:
        """Link the files that hold wanted objects; return the objects that are not here."""
        for table in self._tables:
            missing = {oid for oid in wanted if table.find(oid) is None}
            if len(missing) < len(wanted):
                self._link_pack(table.pack.base, objects, made)
            wanted = missing
        loose = self.linked = {oid for oid in wanted if self._loose(oid) is not None}
        for oid in loose:
            name = oid.hex()
            folder = f"{objects.folder}/{name[:2]}"
            if not os.path.isdir(folder):
                os.mkdir(folder, 0o700)
            if not os.path.exists(f"{folder}/{name[2:]}"):
                _link(f"{self._folder}/{name[:2]}/{name[2:]}", f"{folder}/{name[2:]}")
                made.append(f"{folder}/{name[2:]}")
        return wanted - loose

    def _link_pack(self, base: str, objects: Objects, made: list[str]) -> None:
        for pack in objects.packs():
            if os.path.samefile(f"{pack.base}.pack", f"{base}.pack"):  # linked before
                if read_small_file(f"{pack.base}.keep") == BORROWED.encode():
                    return
                raise FileExistsError(f"{pack.base}.pack is linked, and not kept")
        # Use a new name: a pack with the old name may exist here, and an existing pack must not get a `.keep` later.
        target = new_name(objects.pack_folder)
        # Link the index last: git ignores a pack without one. `.keep` protects the pack from repacking.
        made.append(f"{target}.keep")
        write_keep(target, BORROWED.encode())
        for suffix in (".pack", ".idx"):
            _link(base + suffix, target + suffix)
            made.append(target + suffix)

    def _loose(self, oid: bytes) -> tuple[bytes, int] | None:
        try:
            return self._objects.loose_header(oid)
        except (SnapstoreError, OSError):
            return None

    def close(self) -> None:
        self._objects.close()


def _remove_links(made: list[str]) -> None:
    """Remove the links that no other program can depend on yet.

    Loose objects and packs without an index are removed. A pack with its index was visible with `.keep`, so a git
    process may have deleted other copies of its objects. Such a pack is kept, without the `.keep`, until a later gc
    collects it. It takes no space while the user's repository has it too.
    """
    for path in made:
        stem, _, suffix = path.rpartition(".")
        if suffix not in ("pack", "idx") or f"{stem}.idx" not in made:
            remove_quietly(path)


def _link(source: str, target: str) -> None:
    st = os.lstat(source)
    if st.st_uid != os.geteuid() or not stat.S_ISREG(st.st_mode) or st.st_mode & 0o022:
        raise PermissionError(f"other users can write to {source}")
    os.link(source, target, follow_symlinks=False)


def _sync_linked(paths: list[str]) -> None:
    """Make linked files and their names durable. All lie in one object folder."""
    sync = file_system_sync(len(paths))
    for path in paths if sync is None else paths[:1]:
        fd = os.open(path, READ_FLAGS)
        try:
            (sync or os.fsync)(fd)
        finally:
            os.close(fd)
    folders = {os.path.dirname(path) for path in paths}
    for folder in folders | {os.path.dirname(folder) for folder in folders} if sync is None else ():
        sync_folder(folder)


def _object_folders(first: bytes) -> list[bytes]:
    """Return a repository's object folder and its alternates."""
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
