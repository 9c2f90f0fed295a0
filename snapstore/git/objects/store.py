"""The objects of a repository by raw ids, found wherever they lie, and writers for new ones.

They are read through dulwich's object store (objectstore.py). Ours stays, because dulwich does not do it: large objects
are read in pieces (test_record_large.py), an object that a git moves from pack to pack or from loose to packed is found
all the same (test_vanishing.py, test_beside_git.py), and a question about many objects does not list the folder of
packs for each that is not there.
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
from snapstore.git.objects.pack_files import BORROWED, remove_packs, what_it_says
from snapstore.git.objects.pack_writer import GIVEN_UP, PackWriter

T = TypeVar("T")

_RETRIES = 10  # for an object that a repacking git moves about
_TAKEN_OVER = 1 << 20  # bytes of a pack that came to nothing; a larger one is left to gc
# Above this a blob is streamed, not held.
LARGE = 8 * CHUNK


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
        number, data = self._find(oid, lambda: self.store.get_raw(oid))
        return KIND_NAMES[number], data

    def read_small(self, oid: bytes, most: int) -> bytes | None:
        """The data of an object of no more than so many bytes, or None."""
        return self.read(oid)[1] if self.header(oid)[1] <= most else None

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
                return self.store.look(in_pack)
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
                        self.store.look_first_in(pack)
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
            remove_packs(self.pack_folder, given_up)
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
            return [pack for pack in packs if what_it_says(f"{pack.base}.keep") == GIVEN_UP and not pack.has_deltas()]
        except FileNotFoundError:  # somebody has taken one away
            self.reload()
            return []

    def packs(self) -> list[Pack]:
        return self.store.cached()

    def reload(self) -> None:
        """Forget which packs there are: someone has repacked."""
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
