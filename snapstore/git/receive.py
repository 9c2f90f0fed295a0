"""What comes in from others: a pack, hostile until every byte of it is checked.

It is streamed into a folder of its own beside the store's packs, where neither we nor git look for objects. Each
object is inflated no further than it says it goes, hashed, and refused if it is a tree or commit that we would not
write ourselves. Deltas are resolved, every link is followed. Only `accept` moves the pack in, durable and whole; until
then, and after a kill at any moment, the store is as it was, and the next run removes what was left.
"""

from __future__ import annotations

import fcntl
import os
from hashlib import sha1

from snapstore.errors import Corrupt, Remote, Unsafe
from snapstore.git import outgoing
from snapstore.git.checks import check_link, check_object, links_in
from snapstore.git.deltas import resolve
from snapstore.git.missing import between
from snapstore.git.objects import BLOB, KIND_NAMES, TREE, Missing
from snapstore.git.odb import Objects, store_again
from snapstore.git.packs import OFFSET_DELTA, REF_DELTA, Pack
from snapstore.git.packstream import PackStream
from snapstore.git.packwriter import (
    cannot_write,
    new_name,
    pack_index,
    remove_quietly,
    sync_folder,
    write_all,
    write_keep,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Progress = Callable[[str, int, int], None]

FOLDER = "snapstore_incoming_"


class Limits:
    """How much may come in at once. Trees and commits are held in memory while they are checked; blobs are not."""

    __slots__ = ("blob", "delta", "held", "objects", "pack")

    def __init__(
        self,
        pack: int = 1 << 36,
        blob: int = 1 << 34,
        held: int = 1 << 27,
        # git makes no deltas of larger files (core.bigFileThreshold), so nobody honest sends one.
        delta: int = 1 << 29,
        objects: int = 4_000_000,
    ) -> None:
        self.pack = pack
        self.blob = blob
        self.held = held
        self.delta = delta
        self.objects = objects


class Raw:
    """One entry of the pack as it came: a whole object, or a delta of another."""

    __slots__ = ("base", "crc", "number", "oid", "size", "start")

    def __init__(self, number: int, size: int, start: int, base: int | bytes) -> None:
        self.number = number
        self.size = size
        self.start = start  # of its deflated data
        self.base = base  # offset or id, of a delta
        self.crc = 0
        self.oid = b""


class Incoming:
    """A received pack: checked, and invisible until `accept`. Leave it with `accept` or `discard`."""

    def __init__(self, objects: Objects, limits: Limits | None = None, progress: Progress | None = None) -> None:
        self._objects = objects
        self._limits = limits or Limits()
        self._progress = progress
        self.ids: list[bytes] = []
        self._entries: dict[int, Raw] = {}
        self.builds_on: list[bytes] = []  # tips of ours that are taken for whole
        self._links: set[bytes] = set()
        self._counted_on: list[bytes] = []  # needed, not sent, and not below what is known: it is stored here
        sweep(objects)
        try:
            self._make_folder()
        except OSError as error:
            raise cannot_write(error) from error

    def _make_folder(self) -> None:
        while True:
            self._folder = f"{self._objects.folder}/{FOLDER}{os.urandom(8).hex()}"
            os.mkdir(self._folder, 0o700)
            try:
                self._lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            fcntl.flock(self._lock, fcntl.LOCK_EX)  # while it is held, nobody sweeps it
            if os.path.exists(self._folder):
                break
            os.close(self._lock)  # another run's sweep came between
        self._base = f"{self._folder}/pack"
        self._fd = os.open(f"{self._base}.pack", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def receive(self, pieces: Iterable[bytes], tips: Iterable[bytes], known: Iterable[bytes]) -> Incoming:
        """Takes the pack in, and proves that with it the store holds all that the tips need; `known` are tips whose
        history is here already. Whatever is wrong is raised, and nothing is left."""

        def checked() -> dict[bytes, tuple[int, int]]:
            self._take(pieces)
            resolve(self._fd, self._entries, self._limits.delta, self._checked)
            return self._placed()

        return self._taken(checked, tips, known)

    def take_over(
        self, source: Objects, ids: Sequence[bytes], tips: Iterable[bytes], known: Iterable[bytes]
    ) -> Incoming:
        """The same for objects of our own store: they were checked when they came into it, so they are copied as they
        lie (compared with their checksums); that nothing is missing is proven all the same."""

        def copied() -> dict[bytes, tuple[int, int]]:
            places, self._checksum = outgoing.copy(source, ids, self._fd, self._progress)
            return places

        return self._taken(copied, tips, known)

    def _taken(
        self, take: Callable[[], dict[bytes, tuple[int, int]]], tips: Iterable[bytes], known: Iterable[bytes]
    ) -> Incoming:
        try:
            self._index(take())
            self._follow(list(tips), [oid for oid in known if self._objects.contains(oid)])
        except OSError as error:
            self.discard()
            raise cannot_write(error) from error
        except BaseException:
            self.discard()
            raise
        return self

    def accept_all(self, keep: bytes | None = None) -> list[str]:
        """The same, with a pack of what came in counts on and no ref of ours may lead to: it is stored once more."""
        writer = self._objects.writer()
        try:
            for oid in self._counted_on:
                store_again(self._objects, writer, oid)
            also = self._objects.finish(writer)
        except BaseException:
            writer.abandon()
            self.discard()
            raise
        try:
            base = self.accept(keep)
        except BaseException:
            self._objects.give_up(also)
            raise
        return [made for made in (base, also) if made is not None]

    def accept(self, keep: bytes | None = None) -> str | None:
        """Makes the objects visible and durable. Gives the pack's path without suffix, to be given to
        `Objects.release` when refs hold its objects: until then a `.keep` beside it holds off any gc. Call it under the
        store's lock, right before the refs move. None when nothing came. `keep` is what stands in that file, else
        the number of this process."""
        if not self.ids:
            self.discard()
            return None
        for oid in self.builds_on:  # a prune may have run since it was checked
            if not self._objects.contains(oid):
                self.discard()
                raise Missing(oid)
        # Always a name of its own. The same pack may be there already, from a run that did not come to its refs; but
        # nothing holds that one, and a git that is at work may delete it.
        base = new_name(self._objects.pack_folder)
        try:
            self._move_in(base, keep)
        except OSError as error:
            raise cannot_write(error) from error
        finally:
            self.discard()
        self._objects.reload()
        return base

    def _move_in(self, base: str, keep: bytes | None) -> None:
        try:
            write_keep(base, keep)
            for suffix in (".pack", ".idx"):
                os.rename(self._base + suffix, base + suffix)
            sync_folder(self._objects.pack_folder)
        except BaseException:
            # Without its index nobody has seen the pack, so it can go. With it others may count on it already, and it
            # stays as garbage for a later gc (see packwriter).
            for path in [f"{base}.keep", *([f"{base}.pack"] if not os.path.exists(f"{base}.idx") else [])]:
                remove_quietly(path)
            raise

    def discard(self) -> None:
        """Leaves no trace; a second call does nothing."""
        fd, self._fd = self._fd, -1  # forgotten first: an interrupt may come at any point
        if fd >= 0:
            os.close(fd)
        if self._lock >= 0:
            _remove(self._folder)
            lock, self._lock = self._lock, -1
            os.close(lock)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()

    # Taking it in.

    def _take(self, pieces: Iterable[bytes]) -> None:
        reader = PackStream(pieces, self._fd, self._limits.pack)
        head = reader.take(12)
        if head[:8] != b"PACK\0\0\0\2":
            raise Corrupt("what came in is not a pack of version 2")
        count = int.from_bytes(head[8:], "big")
        if count > self._limits.objects:
            raise Remote(f"more than {self._limits.objects:,} objects would come in", "Fetch less at once.")
        for done in range(count):
            offset = reader.position
            self._entries[offset] = self._entry(reader, offset)
            if self._progress is not None and done % 1024 == 0:
                self._progress("receiving", done, count)
        self._checksum = reader.finish()
        if self._progress is not None:
            self._progress("receiving", count, count)

    def _entry(self, reader: PackStream, offset: int) -> Raw:
        reader.crc = 0
        byte = reader.byte()
        number, size, shift = (byte >> 4) & 7, byte & 15, 4
        while byte & 0x80:
            byte = reader.byte()
            size |= (byte & 0x7F) << shift
            shift += 7
            if shift > 60:
                raise Corrupt("an object that came in gives no size")
        base: int | bytes = 0
        if number == OFFSET_DELTA:
            byte = reader.byte()
            distance = byte & 0x7F
            while byte & 0x80:
                byte = reader.byte()
                distance = ((distance + 1) << 7) | (byte & 0x7F)
            base = offset - distance
            if base not in self._entries:
                raise Corrupt("a delta that came in has no base")
        elif number == REF_DELTA:
            base = reader.take(20)
        elif number not in KIND_NAMES:
            raise Corrupt(f"an object of unknown kind {number} came in")
        raw = Raw(number, size, reader.position, base)
        kind = KIND_NAMES.get(number)
        limit = self._limits.delta if kind is None else self._limits.blob if kind == BLOB else self._limits.held
        if size > limit:
            raise _too_large(size, limit)
        if kind is None:
            for _ in reader.inflate(size):
                pass
        elif kind == BLOB:
            digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
            for piece in reader.inflate(size):
                digest.update(piece)
            raw.oid = digest.digest()
        else:
            data = b"".join(reader.inflate(size))
            raw.oid = sha1(b"%s %d\0%s" % (kind, size, data), usedforsecurity=False).digest()
            self._checked(kind, data, raw.oid)
        raw.crc = reader.crc
        return raw

    def _checked(self, kind: bytes, data: bytes, oid: bytes) -> None:
        if kind != BLOB:
            if len(data) > self._limits.held:
                raise _too_large(len(data), self._limits.held)
            check_object(kind, data, oid)
            if kind == TREE:
                self._links |= links_in(data)

    def _placed(self) -> dict[bytes, tuple[int, int]]:
        places: dict[bytes, tuple[int, int]] = {}
        for offset, raw in self._entries.items():
            if raw.oid in places:
                raise Corrupt(f"object {raw.oid.hex()} came in twice")
            places[raw.oid] = (offset, raw.crc)
        self._entries.clear()
        return places

    def _index(self, places: dict[bytes, tuple[int, int]]) -> None:
        self.ids = list(places)
        fd = os.open(f"{self._base}.idx", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            write_all(fd, pack_index(places, self._checksum))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.fchmod(self._fd, 0o444)
        os.fsync(self._fd)

    # Following the links.

    def _follow(self, tips: list[bytes], known: list[bytes]) -> None:
        """From the tips down to what is known. An object that is in the store is not taken as proof of what it points
        at: it may be the remains of something that gc took away."""
        own = Pack(self._base)
        try:
            self._refuse_forged(own)
            both = _Beside(self._objects, own)
            for oid, kind, path, commit in between(both, tips, known):
                offset = own.find(oid)
                found = own.header(offset)[0] if offset is not None else self._objects.header(oid)[0]
                if found != kind:
                    where = f" for {os.fsdecode(path)!r} in {commit.hex()}" if path else ""
                    raise Corrupt(f"a {found.decode()} came in{where} where a {kind.decode()} belongs")
                if offset is None:
                    self._counted_on.append(oid)
                if offset is None and kind != BLOB:
                    self._checked(kind, self._objects.read(oid)[1], oid)
            for oid in sorted(self._links):
                if both.contains(oid):  # where not, it is of a tree that no tip leads to
                    check_link(both, oid)
            self.builds_on = known
        except Missing as error:
            raise Corrupt(
                f"what came in is not whole: {error.message}",
                "The other side is damaged; `git fsck` there says more. Nothing was taken over.",
                **error.details,
            ) from None
        finally:
            own.close()

    def _refuse_forged(self, own: Pack) -> None:
        """Two different objects of one id would be a forgery of sha1; ours must not be replaced by it."""
        for oid in self.ids:
            if self._objects.contains(oid, fresh=False):
                try:
                    # Only blobs stream: what else is stored as a delta is small, and read whole.
                    is_blob = self._objects.header(oid)[0] == BLOB
                    ours = _digest(self._objects.stream(oid) if is_blob else iter((self._objects.read(oid)[1],)))
                except Missing:
                    continue  # garbage that a gc has just removed: it is not replaced by anything
                offset = own.find(oid)
                assert offset is not None
                if _digest(own.stream(offset) or iter((own.read(offset)[1],))) != ours:
                    raise Unsafe(f"object {oid.hex()} came in with other contents than ours")


class _Beside(Objects):
    """The store's objects with those of a pack that is not visible yet."""

    def __init__(self, objects: Objects, own: Pack) -> None:
        super().__init__(os.path.dirname(objects.folder))
        self.store.beside = [own]


def sweep(objects: Objects) -> None:
    """Removes what killed runs left. One that is still at work holds its folder's lock."""
    try:
        names = [name for name in os.listdir(objects.folder) if name.startswith(FOLDER)]
    except OSError:
        return
    for name in names:
        folder = f"{objects.folder}/{name}"
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        except OSError:
            pass
        finally:
            os.close(fd)


def _remove(folder: str) -> None:
    try:
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)
    except OSError:
        pass


def _too_large(size: int, limit: int) -> Remote:
    return Remote(f"an object of {size:,} bytes would come in; {limit:,} is the limit", "Leave that file out.")


def _digest(pieces: Iterator[bytes]) -> bytes:
    from hashlib import blake2b

    digest = blake2b()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
