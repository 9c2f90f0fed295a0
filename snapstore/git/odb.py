"""The object store: finds an object wherever it lies, packed or loose, and hands out writers for new ones."""

from __future__ import annotations

import os
import zlib

from snapstore.errors import Corrupt
from snapstore.git.housekeeping import BORROWED, has_deltas, remove_packs, what_it_says
from snapstore.git.objects import BLOB, CHUNK, Missing, object_id
from snapstore.git.packs import Pack
from snapstore.git.packwriter import GIVEN_UP, PackWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

_RETRIES = 10  # for an object that a repacking git moves about
_TAKEN_OVER = 1 << 20  # bytes of a pack that came to nothing; a larger one is left to gc
# Above this a blob is streamed, not held.
LARGE = 8 * CHUNK


class Objects:
    """Objects of one bare repository. Alternates are never followed: nothing here creates one."""

    def __init__(self, git_dir: str) -> None:
        self.folder = f"{git_dir}/objects"
        self.pack_folder = f"{self.folder}/pack"
        self._packs: list[Pack] | None = None
        self._loose_folders: dict[int, bool] = {}
        self._seen: tuple[int, int] = (0, 0)  # the pack folder's stamp when it was listed
        self._kept: set[str] = set()  # the packs, without suffix, that had a `.keep` then
        self._borrowed: list[Pack] | None = None

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        """Kind and data. Raises Missing, or Corrupt where the bytes are damaged."""
        found = self._locate(oid, lambda pack, at: pack.read(at), self._read_loose)
        if found is None:
            raise Missing(oid)
        return found

    def read_small(self, oid: bytes, most: int) -> bytes | None:
        """The data of an object of no more than so many bytes, or None: one look where `header` and `read` take two."""

        def loose(oid: bytes) -> tuple[bytes | None] | None:
            opened = self._loose_open(oid)
            return opened and (b"".join(opened[2]) if opened[1] <= most else None,)

        found = self._locate(oid, lambda pack, offset: (pack.read_small(offset, most),), loose)
        if found is None:
            raise Missing(oid)
        return found[0]

    def read_kind(self, oid: bytes, kind: bytes) -> bytes:
        found, data = self.read(oid)
        if found != kind:
            raise Corrupt(f"object {oid.hex()} is a {found.decode()}, not a {kind.decode()}", object=oid.hex())
        return data

    def header(self, oid: bytes) -> tuple[bytes, int]:
        """Kind and size."""
        found = self._locate(oid, lambda pack, at: pack.header(at), self.loose_header)
        if found is None:
            raise Missing(oid)
        return found

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """A blob's data in pieces; memory is bounded unless the blob is stored as a delta."""
        pieces = self._locate(oid, lambda pack, at: (pack.stream(at),), self._loose_stream)
        if pieces is None:
            raise Missing(oid)
        if pieces[0] is not None:
            return pieces[0]
        return iter((self.read_kind(oid, BLOB),))

    def contains(self, oid: bytes, *, fresh: bool = True) -> bool:
        """Whether the object is here. `fresh=False` may miss what another process packed just now."""
        if not fresh:
            try:
                for at, pack in enumerate(self.packs()):
                    if pack.find(oid) is not None:
                        self._ask_first(at)
                        return True
                # A store mostly has no loose objects: one look at the folder answers for all that would lie in it.
                first = oid[0]
                if first not in self._loose_folders:
                    self._loose_folders[first] = os.path.isdir(f"{self.folder}/{first:02x}")
                return self._loose_folders[first] and os.path.exists(self.loose_path(oid))
            except FileNotFoundError:  # repacked under our feet
                pass
        loose = os.path.exists
        return self._locate(oid, lambda pack, at: True, lambda oid: loose(self.loose_path(oid)) or None) is True

    def is_borrowed(self, oid: bytes) -> bool:
        """Whether a pack holds it that was linked from the user's repository: with its `.keep` no git takes it away."""
        if self._borrowed is None:
            packs = [pack for pack in self.packs() if pack.base in self._kept]
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
            from hashlib import sha1

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
        if self._packs is not None and self._stamp() != self._seen:
            self.reload()

    def finish(self, writer: PackWriter) -> str | None:
        """Makes a writer's pack visible, kept from any gc until `release`; looks there first from now on."""
        unchanged = self._packs is not None and self._stamp() == self._seen
        given_up = self._given_up() if len(writer) else []
        for pack in given_up:
            writer.add_pack(pack)
        base = writer.finish(keep=True)
        if given_up:
            remove_packs(self, given_up)
            self.reload()
        elif base is not None and unchanged:
            self.packs().insert(0, Pack(base))
            self._seen = self._stamp()
        return base

    def release(self, base: str | None) -> None:
        """The pack's objects are held by refs now."""
        if base is not None:
            unchanged = self._stamp() == self._seen
            if os.path.exists(f"{base}.keep"):
                os.unlink(f"{base}.keep")
            if unchanged:
                self._seen = self._stamp()

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
            self._kept.add(base)
        except OSError:
            pass  # the next sweep removes it, when this process is gone

    def _given_up(self) -> list[Pack]:
        """Small packs that the next one takes over."""
        packs = [pack for pack in self.packs() if pack.base in self._kept]
        try:
            return [pack for pack in packs if what_it_says(f"{pack.base}.keep") == GIVEN_UP and not has_deltas(pack)]
        except FileNotFoundError:  # somebody has taken one away
            self.reload()
            return []

    def _stamp(self) -> tuple[int, int]:
        st = os.stat(self.pack_folder)
        return st.st_mtime_ns, st.st_ctime_ns

    def packs(self) -> list[Pack]:
        if self._packs is None:
            self._packs = self._list_packs({})
        return self._packs

    def reload(self) -> None:
        """Forget which packs there are: someone has repacked."""
        known = {pack.base: pack for pack in self._packs or ()}
        self._packs = self._list_packs(known)

    def close(self) -> None:
        for pack in self._packs or ():
            pack.close()
        self._packs = None

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

    def _list_packs(self, known: dict[str, Pack]) -> list[Pack]:
        """Newest first: a turn asks for what the turn before it wrote."""
        found: list[tuple[int, str]] = []
        packs: set[str] = set()
        self._kept, self._borrowed = set(), None
        try:
            self._seen = self._stamp()
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
                        self._kept.add(entry.path[:-5])
        except FileNotFoundError:
            raise Corrupt("the store has no folder for packs", hint="Restore it from a clone or a backup.") from None
        # An index whose pack did not come through a power cut holds nothing: what it lists must be stored again. A pack
        # that got its name while we listed the folder may not have been in the list.
        found = [(age, base) for age, base in found if base in packs or os.path.exists(f"{base}.pack")]
        found.sort(reverse=True)
        # One that is gone is not closed here: someone may be reading from it still.
        return [known[base] if base in known else Pack(base) for _, base in found]

    def _locate(self, oid: bytes, packed: Callable[[Pack, int], T], loose: Callable[[bytes], T | None]) -> T | None:
        for attempt in range(_RETRIES):
            vanished = False
            for at, pack in enumerate(self.packs()):
                try:
                    offset = pack.find(oid)
                    if offset is not None:
                        self._ask_first(at)
                        return packed(pack, offset)
                except FileNotFoundError:  # repacked under our feet
                    vanished = True
            result = loose(oid)
            if result is not None:
                return result
            before = self._seen
            self.reload()
            if not vanished and before == self._seen and attempt > 0:
                break
        return None

    def _ask_first(self, at: int) -> None:
        """What is asked for next lies in the same pack, most likely."""
        if at:
            packs = self.packs()
            packs[0], packs[at] = packs[at], packs[0]

    def loose_path(self, oid: bytes) -> str:
        name = oid.hex()
        return f"{self.folder}/{name[:2]}/{name[2:]}"

    def _loose_open(self, oid: bytes) -> tuple[bytes, int, Iterator[bytes]] | None:
        """Kind, size and the data in pieces."""
        try:
            fd = os.open(self.loose_path(oid), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        pieces = _inflate_file(fd, oid)
        first = next(pieces, b"")
        head, separator, rest = first.partition(b"\0")
        kind, _, size = head.partition(b" ")
        if not separator or not size.isdigit():
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

    def _read_loose(self, oid: bytes) -> tuple[bytes, bytes] | None:
        opened = self._loose_open(oid)
        return opened and (opened[0], b"".join(opened[2]))

    def loose_header(self, oid: bytes) -> tuple[bytes, int] | None:
        """Kind and size of an object that lies loose."""
        opened = self._loose_open(oid)
        return opened and opened[:2]

    def _loose_stream(self, oid: bytes) -> tuple[Iterator[bytes] | None] | None:
        opened = self._loose_open(oid)
        return opened and (opened[2],)


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
