"""The objects of a repository by raw id, and writers for new ones.

Objects are read through dulwich's object store (`dulwich_store`). dulwich lacks the following, so this module adds it:
- Large objects are read in chunks (test_record_large.py).
- An object is found even while git moves it between packs, or from loose to packed (test_vanishing.py,
  test_beside_git.py).
- A query about many objects does not list the pack folder for each missing object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha1
from typing import TypeVar

from dulwich import pack as dulwich_pack

from snapstore.errors import Corrupt
from snapstore.git.objects.dulwich_store import ObjectStore
from snapstore.git.objects.ids import BLOB, CHUNK, KIND_NAMES, Missing, object_id
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import BORROWED, read_small_file, remove_packs
from snapstore.git.objects.pack_writer import GIVEN_UP, PackWriter

T = TypeVar("T")

_RETRIES = 10  # for an object that git moves while repacking
_TAKEN_OVER = 1 << 20  # bytes of a given-up pack; a larger one is left to gc
# A larger blob is streamed instead of held in memory.
LARGE = 8 * CHUNK


class Objects:
    """The objects of one bare repository by raw id; errors are `snapstore.errors`."""

    def __init__(self, git_dir: str, folder: str | None = None) -> None:
        self.folder = folder or f"{git_dir}/objects"
        self.store = ObjectStore(self.folder)
        self.pack_folder = self.store.pack_folder
        self._loose_folders: dict[int, bool] = {}
        self._borrowed: list[Pack] | None = None

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        """Return kind and data. Raises Missing, or Corrupt if the bytes are damaged."""
        number, data = self._find(oid, lambda: self.store.get_raw(oid))
        return KIND_NAMES[number], data

    def read_small(self, oid: bytes, most: int) -> bytes | None:
        """Return the data of an object of at most `most` bytes, else None."""
        return self.read(oid)[1] if self.header(oid)[1] <= most else None

    def read_kind(self, oid: bytes, kind: bytes) -> bytes:
        found, data = self.read(oid)
        if found != kind:
            raise Corrupt(f"object {oid.hex()} is a {found.decode()}, not a {kind.decode()}", object=oid.hex())
        return data

    def header(self, oid: bytes) -> tuple[bytes, int]:
        """Return kind and size."""
        return self._look(oid, lambda pack, offset: pack.header(offset), lambda opened: opened[:2])

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """Return a blob's data in chunks; memory is bounded unless it is a delta."""
        pieces = self._look(oid, lambda pack, offset: pack.stream(offset), lambda opened: opened[2])
        return pieces if pieces is not None else iter((self.read_kind(oid, BLOB),))

    def _look(
        self, oid: bytes, packed: Callable[[Pack, int], T], loose: Callable[[tuple[bytes, int, Iterator[bytes]]], T]
    ) -> T:
        """Query an object, packed or loose. Raises Missing."""

        def in_pack(pack: dulwich_pack.Pack) -> T:
            assert isinstance(pack, Pack)
            offset = pack.find(oid)
            if offset is None:
                raise KeyError(oid)
            return packed(pack, offset)

        def anywhere() -> T:
            try:
                return self.store.look(in_pack)
            except KeyError:
                opened = self.store.open_loose(oid)
                if opened is None:
                    raise
                return loose(opened)

        return self._find(oid, anywhere)

    def _find(self, oid: bytes, look: Callable[[], T]) -> T:
        """Repeat a lookup while other processes move packs. Raises Missing."""
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
        """Return whether the object exists.

        `fresh=False` may miss an object that another process packed just now, and may find one in a pack that another
        process removed. It is for hints and for reading; whatever a ref is about to lead to needs the fresh answer.
        """
        if not fresh:
            try:
                for pack in self.store.cached():
                    if pack.find(oid) is not None:
                        self.store.look_first_in(pack)
                        return True
                # A store mostly has no loose objects: one check of the folder answers for every id that would be in the
                # folder.
                first = oid[0]
                if first not in self._loose_folders:
                    self._loose_folders[first] = os.path.isdir(f"{self.folder}/{first:02x}")
                return self._loose_folders[first] and os.path.exists(self.loose_path(oid))
            except FileNotFoundError:  # another process repacked meanwhile
                pass
        self.refresh()
        try:
            self._find(oid, lambda: self._is_there(oid))
        except Missing:
            return False
        return True

    def _is_there(self, oid: bytes) -> None:
        if not self.store.contains_packed(oid) and not os.path.exists(self.loose_path(oid)):  # type: ignore[arg-type]
            raise KeyError(oid)

    def is_borrowed(self, oid: bytes) -> bool:
        """Return whether a pack linked from the user's repository has the object.

        No git process removes such a pack, because it has a `.keep` file.
        """
        if self._borrowed is None:
            packs = [pack for pack in self.packs() if pack.base in self.store.kept]
            self._borrowed = [pack for pack in packs if read_small_file(f"{pack.base}.keep") == BORROWED.encode()]
        try:
            return any(pack.find(oid) is not None for pack in self._borrowed)
        except FileNotFoundError:  # another process removed the pack
            self.reload()
            return False

    def verify(self, oid: bytes) -> tuple[bytes, int]:
        """Compare every byte with the id and return kind and size.

        Large blobs are read in chunks.
        """
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
        """List the packs again if the pack folder has changed.

        An object of a pack that another gc removed must not count as stored, although the pack's index is still in
        memory.
        """
        self._loose_folders.clear()
        if self.store.seen is not None and self.store.stamp() != self.store.seen:
            self.reload()

    def finish(self, writer: PackWriter) -> str | None:
        """Make a writer's pack visible, protected from any gc until `release`.

        The new pack is searched first from now on.
        """
        store = self.store
        unchanged = store.seen is not None and store.stamp() == store.seen
        given_up = self._given_up() if len(writer) else []
        for pack in given_up:
            writer.add_pack(pack)
        base = writer.finish(keep=True)
        if given_up:
            remove_packs(self.pack_folder, given_up)
            self.reload()
        elif base is not None and unchanged:
            store.add(base)
            store.seen = store.stamp()
        return base

    def release(self, base: str | None) -> None:
        """Drop the protection of a pack whose objects are now reachable from refs."""
        if base is not None:
            unchanged = self.store.stamp() == self.store.seen
            if os.path.exists(f"{base}.keep"):
                os.unlink(f"{base}.keep")
            if unchanged:
                self.store.seen = self.store.stamp()

    def give_up(self, base: str | None, *, retried: bool = False) -> None:
        """Give up a pack, because the change it was written for failed.

        The pack stays: since it was visible with `.keep`, git may have omitted its objects from a new pack and deleted
        every other copy (see `pack_writer`). If the change will be `retried`, the disk may be full again, so the next
        pack takes over this one. Errors are ignored, to not hide the cause.
        """
        try:
            if base is None or not retried or os.stat(f"{base}.pack").st_size > _TAKEN_OVER:
                self.release(base)
                return
            with open(f"{base}.keep", "r+b") as file:
                file.write(GIVEN_UP)
                file.truncate()
            self.store.kept.add(base)
        except OSError:
            pass  # the next sweep removes the `.keep` file, once this process has ended

    def _given_up(self) -> list[Pack]:
        """Return the small given-up packs that the next pack takes over."""
        packs = [pack for pack in self.packs() if pack.base in self.store.kept]
        try:
            return [
                pack for pack in packs if read_small_file(f"{pack.base}.keep") == GIVEN_UP and not pack.has_deltas()
            ]
        except FileNotFoundError:  # another process removed a pack
            self.reload()
            return []

    def packs(self) -> list[Pack]:
        return self.store.cached()

    def reload(self) -> None:
        """List the packs again, because another process repacked."""
        self.store.reload()
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
        """Return kind and size of a loose object, or None."""
        opened = self.store.open_loose(oid)
        return opened and opened[:2]


def store_again(objects: Objects, writer: PackWriter, oid: bytes) -> None:
    """Store an existing object in a new pack as well, comparing its bytes with its id."""
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
