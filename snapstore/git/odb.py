"""The object store: dulwich's, guarded for a store that others repack meanwhile, and with writers for new objects.

Ours stays, because dulwich's `DiskObjectStore` does not do it: large objects are read in pieces, packed or loose (it
inflates them whole: test_record_large.py), alternates are never followed (nothing here makes one), an object that a
git moves from pack to pack or from loose to packed is found all the same (test_vanishing.py, test_beside_git.py), and a
question about many objects does not list the folder of packs for each that is not there.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha1
from typing import TypeVar

from dulwich import pack as dulwich_pack
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID, ShaFile

from snapstore.errors import Corrupt
from snapstore.git.housekeeping import BORROWED, has_deltas, remove_packs, what_it_says
from snapstore.git.objects import BLOB, CHUNK, KIND_NAMES, KIND_NUMBERS, Missing, object_id
from snapstore.git.packs import Pack
from snapstore.git.packwriter import GIVEN_UP, PackWriter

T = TypeVar("T")

_RETRIES = 10  # for an object that a repacking git moves about
_TAKEN_OVER = 1 << 20  # bytes of a pack that came to nothing; a larger one is left to gc
# Above this a blob is streamed, not held.
LARGE = 8 * CHUNK


class ObjectStore(DiskObjectStore):
    """The objects of one folder, as dulwich reads them, and as `Store.repo.object_store` gives them to others."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._use_midx = False  # somebody's list of packs may be older than the packs
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

    def cached(self) -> list[Pack]:
        """The packs as last listed: what is asked for next lies most likely in the first."""
        if self.seen is None:
            self._update_pack_cache()
        return list(self._pack_cache.values())  # type: ignore[arg-type]

    def close(self) -> None:
        super().close()
        self.seen = None

    def stamp(self) -> tuple[int, int]:
        st = os.stat(self.pack_folder)
        return st.st_mtime_ns, st.st_ctime_ns

    def add(self, base: str) -> None:
        """Count a new pack in, without listing the folder again."""
        self._add_cached_pack(os.path.basename(base), Pack(base))

    def _mark_pack_used(self, pack_hash: str) -> None:
        """Put a pack first: what is asked for next lies in the same one, most likely."""
        if next(iter(self._pack_cache)) != pack_hash:
            pack = self._pack_cache.pop(pack_hash)
            self._pack_cache = {pack_hash: pack, **self._pack_cache}

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
        self._pack_cache = {os.path.basename(pack.base): pack for pack in self.beside}
        new: list[dulwich_pack.Pack] = []
        for _, base in found:
            name = os.path.basename(base)
            if name not in known:
                new.append(Pack(base))
            self._pack_cache[name] = known.get(name) or new[-1]
        return new

    def contains_loose(self, sha: bytes) -> bool:
        return os.path.exists(self._get_shafile_path(ObjectID(sha)))

    def _get_loose_object(self, sha: bytes) -> ShaFile | None:
        opened = self.open_loose(bytes.fromhex(sha.decode()) if len(sha) == 40 else sha)
        if opened is None:
            return None
        kind, _, pieces = opened
        return ShaFile.from_raw_string(KIND_NUMBERS[kind], b"".join(pieces), ObjectID(sha))

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


class Objects:
    """Objects of one bare repository, by raw ids, with refusals in the family's words."""

    def __init__(self, git_dir: str, folder: str | None = None) -> None:
        self.folder = folder or f"{git_dir}/objects"
        self.store = ObjectStore(self.folder)
        self.pack_folder = self.store.pack_folder
        self._loose_folders: dict[int, bool] = {}
        self._borrowed: list[Pack] | None = None

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        """Kind and data. Raises Missing, or Corrupt where the bytes are damaged."""
        number, data = self._find(oid, lambda: self.store.get_raw(oid))  # type: ignore[arg-type]
        return KIND_NAMES[number], data

    def read_small(self, oid: bytes, most: int) -> bytes | None:
        """The data of an object of no more than so many bytes, or None: one look where `header` and `read` take two."""

        def loose(opened: tuple[bytes, int, Iterator[bytes]]) -> bytes | None:
            return b"".join(opened[2]) if opened[1] <= most else None

        return self._look(oid, lambda pack, offset: pack.read_small(offset, most), loose)

    def read_kind(self, oid: bytes, kind: bytes) -> bytes:
        found, data = self.read(oid)
        if found != kind:
            raise Corrupt(f"object {oid.hex()} is a {found.decode()}, not a {kind.decode()}", object=oid.hex())
        return data

    def header(self, oid: bytes) -> tuple[bytes, int]:
        """Kind and size."""
        return self._look(oid, lambda pack, offset: pack.header(offset), lambda opened: opened[:2])

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """A blob's data in pieces; memory is bounded unless the blob is stored as a delta."""
        pieces = self._look(oid, lambda pack, offset: pack.stream(offset), lambda opened: opened[2])
        return pieces if pieces is not None else iter((self.read_kind(oid, BLOB),))

    def _look(
        self, oid: bytes, packed: Callable[[Pack, int], T], loose: Callable[[tuple[bytes, int, Iterator[bytes]]], T]
    ) -> T:
        """Ask about an object where it lies. Raises Missing."""

        def in_pack(pack: dulwich_pack.Pack) -> T:
            assert isinstance(pack, Pack)
            offset = pack.find(oid)
            if offset is None:
                raise KeyError(oid)
            return packed(pack, offset)

        def anywhere() -> T:
            try:
                return self.store._lookup_in_packs(in_pack)
            except KeyError:
                opened = self.store.open_loose(oid)
                if opened is None:
                    raise
                return loose(opened)

        return self._find(oid, anywhere)

    def _find(self, oid: bytes, look: Callable[[], T]) -> T:
        """Look again where others have moved packs about since. Raises Missing."""
        for attempt in range(_RETRIES):
            before = self.store.seen
            try:
                return look()
            except KeyError:
                self.reload()
            if attempt > 0 and before == self.store.seen:
                break
        raise Missing(oid)

    def contains(self, oid: bytes, *, fresh: bool = True) -> bool:
        """Whether the object is here. `fresh=False` may miss what another process packed just now."""
        if not fresh:
            try:
                for pack in self.store.cached():
                    if pack.find(oid) is not None:
                        self.store._mark_pack_used(os.path.basename(pack.base))
                        return True
                # A store mostly has no loose objects: one look at the folder answers for all that would lie in it.
                first = oid[0]
                if first not in self._loose_folders:
                    self._loose_folders[first] = os.path.isdir(f"{self.folder}/{first:02x}")
                return self._loose_folders[first] and os.path.exists(self.loose_path(oid))
            except FileNotFoundError:  # repacked under our feet
                pass
        try:
            self._find(oid, lambda: self._is_there(oid))
        except Missing:
            return False
        return True

    def _is_there(self, oid: bytes) -> None:
        if not self.store.contains_packed(oid) and not os.path.exists(self.loose_path(oid)):  # type: ignore[arg-type]
            raise KeyError(oid)

    def is_borrowed(self, oid: bytes) -> bool:
        """Whether a pack holds it that was linked from the user's repository: with its `.keep` no git takes it away."""
        if self._borrowed is None:
            packs = [pack for pack in self.packs() if pack.base in self.store.kept]
            self._borrowed = [pack for pack in packs if what_it_says(f"{pack.base}.keep") == BORROWED.encode()]
        try:
            return any(pack.find(oid) is not None for pack in self._borrowed)
        except FileNotFoundError:  # somebody has taken it away
            self.reload()
            return False

    def verify(self, oid: bytes) -> tuple[bytes, int]:
        """Reads every byte and compares with the id; large blobs in pieces. Gives kind and size."""
        kind, size = self.header(oid)
        if kind == BLOB and size > LARGE:
            digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
            for piece in self.stream(oid):
                digest.update(piece)
            right = digest.digest() == oid
        else:
            kind, data = self.read(oid)
            right = object_id(kind, data) == oid
        if not right:
            raise Corrupt(f"object {oid.hex()} does not match its id", object=oid.hex())
        return kind, size

    def writer(self) -> PackWriter:
        return PackWriter(self.pack_folder)

    def refresh(self) -> None:
        """Looks once whether packs came or went: an object of a pack that someone's gc removed must not count as
        stored, though its index is in our memory still."""
        self._loose_folders.clear()
        if self.store.seen is not None and self.store.stamp() != self.store.seen:
            self.reload()

    def finish(self, writer: PackWriter) -> str | None:
        """Makes a writer's pack visible, kept from any gc until `release`; looks there first from now on."""
        store = self.store
        unchanged = store.seen is not None and store.stamp() == store.seen
        given_up = self._given_up() if len(writer) else []
        for pack in given_up:
            writer.add_pack(pack)
        base = writer.finish(keep=True)
        if given_up:
            remove_packs(self, given_up)
            self.reload()
        elif base is not None and unchanged:
            store.add(base)
            store.seen = store.stamp()
        return base

    def release(self, base: str | None) -> None:
        """The pack's objects are held by refs now."""
        if base is not None:
            unchanged = self.store.stamp() == self.store.seen
            if os.path.exists(f"{base}.keep"):
                os.unlink(f"{base}.keep")
            if unchanged:
                self.store.seen = self.store.stamp()

    def give_up(self, base: str | None, *, retried: bool = False) -> None:
        """What the pack was written for came to nothing. The pack stays: since it was visible with `.keep`, a git may
        have left its objects out of a new pack and deleted every other copy (see packwriter). What will be `retried`
        may find the disk full again, so the next pack takes this one over. Fails silently, so as not to hide why."""
        try:
            if base is None or not retried or os.stat(f"{base}.pack").st_size > _TAKEN_OVER:
                self.release(base)
                return
            with open(f"{base}.keep", "r+b") as file:
                file.write(GIVEN_UP)
                file.truncate()
            self.store.kept.add(base)
        except OSError:
            pass  # the next sweep removes it, when this process is gone

    def _given_up(self) -> list[Pack]:
        """Small packs that the next one takes over."""
        packs = [pack for pack in self.packs() if pack.base in self.store.kept]
        try:
            return [pack for pack in packs if what_it_says(f"{pack.base}.keep") == GIVEN_UP and not has_deltas(pack)]
        except FileNotFoundError:  # somebody has taken one away
            self.reload()
            return []

    def packs(self) -> list[Pack]:
        return self.store.cached()

    def reload(self) -> None:
        """Forget which packs there are: someone has repacked."""
        self.store._update_pack_cache()
        self._borrowed = None

    def close(self) -> None:
        self.store.close()

    def loose_ids(self) -> Iterator[bytes]:
        for first in range(256):
            try:
                names = os.listdir(f"{self.folder}/{first:02x}")
            except (FileNotFoundError, NotADirectoryError):
                continue
            for name in names:
                if len(name) == 38 and not name.startswith("tmp_"):
                    try:
                        yield bytes.fromhex(f"{first:02x}{name}")
                    except ValueError:
                        continue

    def loose_path(self, oid: bytes) -> str:
        return self.store.loose_path(oid)

    def loose_header(self, oid: bytes) -> tuple[bytes, int] | None:
        """Kind and size of an object that lies loose."""
        opened = self.store.open_loose(oid)
        return opened and opened[:2]


def store_again(objects: Objects, writer: PackWriter, oid: bytes) -> None:
    """Puts an object that is there into a new pack as well, its bytes compared with its id."""
    kind, size = objects.header(oid)
    if kind == BLOB and size > LARGE:
        pieces = objects.stream(oid)
        found = writer.add_stream(lambda _: next(pieces, b""), size, lambda _: False)
    else:
        data = objects.read_kind(oid, kind)
        found = object_id(kind, data)
        if found == oid:
            writer.add(kind, data, oid)
    if found != oid:
        raise Corrupt(f"object {oid.hex()} does not match its id", object=oid.hex())


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
