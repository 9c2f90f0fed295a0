"""dulwich's object store, guarded for a folder in which others repack meanwhile.

Ours stays, because dulwich's `DiskObjectStore` does not do it: loose objects come in pieces (it inflates them whole,
and reads one to say whether it is there), an object that dulwich could not parse is read all the same, alternates are
never followed (nothing here makes one), packs are asked newest first, an index without its pack counts for nothing,
and a pack that vanishes is not closed under a reader (test_git_packs.py, test_vanishing.py, test_repository.py).
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
    """The objects of one folder, as dulwich reads them, and as `Store.repo.object_store` gives them to others."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder
        self.pack_folder = f"{folder}/pack"
        self.seen: tuple[int, int] | None = None  # the pack folder's stamp when it was listed
        self.kept: set[str] = set()  # the packs, without suffix, that had a `.keep` then
        self.beside: list[Pack] = []  # packs of another folder that count as well

    def __del__(self) -> None:
        self.close()  # without dulwich's warning: whoever drops a store closes it so

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return []

    def get_midx(self) -> None:
        """Somebody's list of packs may be older than the packs."""

    def cached(self) -> list[Pack]:
        """The packs as last listed: what is asked for next lies most likely in the first."""
        if self.seen is None:
            self._update_pack_cache()
        return list(self._pack_cache.values())  # type: ignore[arg-type]

    def look(self, lookup: Callable[[dulwich_pack.Pack], T]) -> T:
        """Ask one pack after the other. `lookup` raises KeyError where the pack lacks what is asked for."""
        return self._lookup_in_packs(lookup)

    def look_first_in(self, pack: Pack) -> None:
        """Ask this pack first from now on."""
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
        """Count a new pack in, without listing the folder again."""
        self._pack_cache = {os.path.basename(base): Pack(base), **self._pack_cache}

    def _mark_pack_used(self, pack_hash: str) -> None:
        """Put a pack first: what is asked for next lies in the same one, most likely."""
        packs = self._pack_cache
        if pack_hash in packs and next(iter(packs)) != pack_hash:
            self._pack_cache = {pack_hash: packs[pack_hash], **packs}

    def _lookup_in_packs(self, lookup: Callable[[dulwich_pack.Pack], T]) -> T:
        """Ask the packs at hand, without a copy of their list; dulwich lists them anew where none has the object."""
        for name, pack in self._pack_cache.items():  # never changed in place: threads may share it
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
        """Let go of a pack that vanished, without closing it: another thread may be reading from it still."""
        self._pack_cache = {name: known for name, known in self._pack_cache.items() if known is not pack}

    def _update_pack_cache(self) -> list[dulwich_pack.Pack]:
        """List the packs, newest first: a turn asks for what the turn before it wrote. Gives those that are new."""
        found: list[tuple[int, str]] = []
        packs: set[str] = set()
        self.kept = set()
        try:
            self.seen = self.stamp()
            with os.scandir(self.pack_folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".idx") and not entry.name.startswith("."):  # `.tmp-`: a git is making it
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
        # An index whose pack did not come through a power cut holds nothing: what it lists must be stored again. A pack
        # that got its name while we listed the folder may not have been in the list.
        found = [(age, base) for age, base in found if base in packs or os.path.exists(f"{base}.pack")]
        found.sort(reverse=True)
        known = self._pack_cache
        # One that is gone is not closed here: someone may be reading from it still.
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
        """Kind number and data as they are stored, also of an object that dulwich could not parse."""
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
        """Kind, size and the data in pieces, of an object that lies loose."""
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
                if seen > int(size):  # not read on: it may be ten bytes that hold a terabyte
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
