"""dulwich's object store, guarded against other processes that repack.

dulwich's `DiskObjectStore` lacks the following, so this module adds it (test_git_packs.py, test_vanishing.py,
test_repository.py):
- Loose objects are read in chunks. dulwich inflates them whole, and reads an object just to tell whether it exists.
- An object that dulwich cannot parse can still be read.
- Alternates are never followed, since snapstore never creates any.
- Packs are searched newest first.
- An index without its pack is ignored.
- A pack that vanishes is not closed while a reader uses the pack.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from dulwich import pack as dulwich_pack
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID, RawObjectID, ShaFile

from snapstore.errors import Corrupt
from snapstore.git.objects.ids import CHUNK, KIND_NUMBERS
from snapstore.git.objects.pack import Pack

T = TypeVar("T")


class ObjectStore(DiskObjectStore):
    """The objects of one folder, as exposed by `Store.repo.object_store`."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder
        self.pack_folder = f"{folder}/pack"
        self.seen: tuple[int, int] | None = None  # mtime and ctime of the pack folder when it was last listed
        self.kept: set[str] = set()  # the packs, without suffix, that had a `.keep` file at that time
        self.beside: list[Pack] = []  # packs of another folder that are searched as well

    def __del__(self) -> None:
        self.close()  # avoids dulwich's warning about a store that was dropped without being closed

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return []

    def get_midx(self) -> None:
        """Return None: a multi-pack index may be older than the packs."""

    def cached(self) -> list[Pack]:
        """Return the packs as last listed, most recently used first.

        The next object is most likely in the pack that was used last.
        """
        if self.seen is None:
            self._update_pack_cache()
        return list(self._pack_cache.values())  # type: ignore[arg-type]

    def look(self, lookup: Callable[[dulwich_pack.Pack], T]) -> T:
        """Apply `lookup` to one pack after the other and return the first result.

        `lookup` raises KeyError if the pack lacks the object.
        """
        return self._lookup_in_packs(lookup)

    def look_first_in(self, pack: Pack) -> None:
        """Search this pack first from now on."""
        self._mark_pack_used(os.path.basename(pack.base))

    def reload(self) -> None:
        """List the packs again."""
        self._update_pack_cache()

    def close(self) -> None:
        super().close()
        self.seen = None

    def stamp(self) -> tuple[int, int]:
        st = os.stat(self.pack_folder)
        return st.st_mtime_ns, st.st_ctime_ns

    def add(self, base: str) -> None:
        """Add a new pack without listing the folder again."""
        self._pack_cache = {os.path.basename(base): Pack(base), **self._pack_cache}

    def _mark_pack_used(self, pack_hash: str) -> None:
        """Move a pack to the front: the next object is most likely in the same pack."""
        packs = self._pack_cache
        if pack_hash in packs and next(iter(packs)) != pack_hash:
            self._pack_cache = {pack_hash: packs[pack_hash], **packs}

    def _lookup_in_packs(self, lookup: Callable[[dulwich_pack.Pack], T]) -> T:
        """Search the known packs first, without copying their list.

        If no pack has the object, dulwich lists the packs again.
        """
        for name, pack in self._pack_cache.items():  # the dict is replaced, never changed: threads may share it
            try:
                found = lookup(pack)
            except KeyError:
                continue
            except dulwich_pack.PackFileDisappeared:
                break
            self._mark_pack_used(name)
            return found
        return super()._lookup_in_packs(lookup)

    def _evict_pack(self, pack: dulwich_pack.Pack | dulwich_pack.FilePackIndex) -> None:
        """Drop a vanished pack without closing it: another thread may still read it."""
        self._pack_cache = {name: known for name, known in self._pack_cache.items() if known is not pack}

    def _update_pack_cache(self) -> list[dulwich_pack.Pack]:
        """List the packs, newest first, and return the new ones.

        Newest first, because a turn mostly asks for objects that the previous turn wrote.
        """
        found: list[tuple[int, str]] = []
        packs: set[str] = set()
        self.kept = set()
        try:
            self.seen = self.stamp()
            with os.scandir(self.pack_folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".idx") and not entry.name.startswith("."):  # `.tmp-`: git is writing it
                        try:
                            found.append((entry.stat().st_mtime_ns, entry.path[:-4]))
                        except FileNotFoundError:
                            continue
                    elif entry.name.endswith(".pack"):
                        packs.add(entry.path[:-5])
                    elif entry.name.endswith(".keep"):
                        self.kept.add(entry.path[:-5])
        except FileNotFoundError:
            raise Corrupt("the store has no folder for packs", hint="Restore it from a clone or a backup.") from None
        # A power cut may leave an index without its pack. Such an index counts for nothing: its objects must be stored
        # again. The check with `exists` covers a pack that was renamed into place during the listing, which may have
        # missed that pack.
        found = [(age, base) for age, base in found if base in packs or os.path.exists(f"{base}.pack")]
        found.sort(reverse=True)
        known = self._pack_cache
        # Packs that are gone are not closed here: another thread may still read them.
        packs_now: dict[str, dulwich_pack.Pack] = {os.path.basename(pack.base): pack for pack in self.beside}
        new: list[dulwich_pack.Pack] = []
        for _, base in found:
            name = os.path.basename(base)
            if name not in known:
                new.append(Pack(base))
            packs_now[name] = known[name] if name in known else new[-1]
        self._pack_cache = packs_now
        return new

    def get_raw(self, name: bytes) -> tuple[int, bytes]:
        """Return kind number and data, also of an object that dulwich cannot parse."""
        oid = _raw(name)
        try:
            return self._lookup_in_packs(lambda pack: pack.get_raw(RawObjectID(oid)))
        except KeyError:
            opened = self.open_loose(oid)
            if opened is None:
                raise
            return KIND_NUMBERS[opened[0]], b"".join(opened[2])

    def contains_loose(self, sha: bytes) -> bool:
        return os.path.exists(self.loose_path(_raw(sha)))

    def _get_loose_object(self, sha: bytes) -> ShaFile | None:
        opened = self.open_loose(_raw(sha))
        return opened and ShaFile.from_raw_string(KIND_NUMBERS[opened[0]], b"".join(opened[2]), ObjectID(sha))

    def loose_path(self, oid: bytes) -> str:
        name = oid.hex()
        return f"{self.folder}/{name[:2]}/{name[2:]}"

    def open_loose(self, oid: bytes) -> tuple[bytes, int, Iterator[bytes]] | None:
        """Return kind, size and data chunks of a loose object, or None."""
        try:
            fd = os.open(self.loose_path(oid), os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        pieces = _inflate_file(fd, oid)
        first = next(pieces, b"")
        head, separator, rest = first.partition(b"\0")
        kind, _, size = head.partition(b" ")
        if not separator or not size.isdigit() or kind not in KIND_NUMBERS:
            raise _damaged(oid)

        def data() -> Iterator[bytes]:
            seen = len(rest)
            if rest:
                yield rest
            for piece in pieces:
                seen += len(piece)
                if seen > int(size):  # stop reading: ten bytes may inflate to a terabyte
                    break
                yield piece
            if seen != int(size):
                raise _damaged(oid)

        return kind, int(size), data()


def _raw(oid: bytes) -> bytes:
    return oid if len(oid) == 20 else bytes.fromhex(oid.decode())


def _inflate_file(fd: int, oid: bytes) -> Iterator[bytes]:
    inflate = zlib.decompressobj()
    try:
        while not inflate.eof:
            waiting = inflate.unconsumed_tail or os.read(fd, CHUNK)
            if not waiting:
                raise _damaged(oid)
            if piece := inflate.decompress(waiting, CHUNK):
                yield piece
    except zlib.error:
        raise _damaged(oid) from None
    finally:
        os.close(fd)


def _damaged(oid: bytes) -> Corrupt:
    return Corrupt(f"object {oid.hex()} is damaged", object=oid.hex())
