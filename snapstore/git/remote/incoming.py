"""Received objects in a quarantine folder, treated as hostile until checked.

git fetches into a folder next to the store's packs, where neither snapstore nor git looks for objects. git proves that
every object matches its id. This module requires every tree, commit and tag to be one that snapstore itself would
write, and checks every link. Only `accept` moves the packs into the store, durable and complete. Until then, and after
a kill at any moment, the store is unchanged, and the next run removes the leftovers (test_incoming_hostile.py).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from snapstore.base.files import remove_quietly, sync_folder
from snapstore.base.locks import lock_if_abandoned, lock_work_folder
from snapstore.errors import Corrupt, Remote
from snapstore.git.objects.ids import BLOB, COMMIT, TREE, Missing
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_writer import PackWriter, cannot_write, new_name, write_keep
from snapstore.git.objects.reachability import new_objects
from snapstore.git.objects.store import Objects, store_again
from snapstore.git.objects.validate import check_link, check_object, links_in

FOLDER = "snapstore_incoming_"
SMALL = 1 << 20  # bytes of objects


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one transfer.

    Trees and commits are held in memory while they are checked; blobs are not.
    """

    pack: int = 1 << 36
    blob: int = 1 << 34
    held: int = 1 << 27
    objects: int = 4_000_000


class Incoming:
    """Received objects: checked, and invisible until `accept`.

    End with `accept` or `discard`.
    """

    def __init__(self, objects: Objects, limits: Limits | None = None) -> None:
        self._objects = objects
        self.limits = limits or Limits()
        self.ids: list[bytes] = []  # needed by the tips and not known: received, or left by a failed pull
        self.commits: list[bytes] = []  # those of them that are commits
        self.builds_on: list[bytes] = []  # local tips that are assumed to be complete
        self._links: set[bytes] = set()
        self._received: set[bytes] = set()
        self._size = 0  # bytes of the needed objects
        self._lock = -1
        sweep(objects)
        try:
            self._make_folder()
        except OSError as error:
            raise cannot_write(error) from error

    def _make_folder(self) -> None:
        while True:
            self.folder = f"{self._objects.folder}/{FOLDER}{os.urandom(8).hex()}"
            os.mkdir(self.folder, 0o700)
            try:
                self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            lock_work_folder(self._lock)  # while the lock is held, nobody sweeps the folder
            if os.path.exists(self.folder):
                break
            os.close(self._lock)  # the sweep of another run removed the folder
        self.pack_folder = f"{self.folder}/pack"
        os.mkdir(self.pack_folder, 0o700)

    @property
    def is_empty(self) -> bool:
        """Return whether no object was received."""
        return not self._bases()

    def environment(self) -> dict[str, str]:
        """Return variables that make git write here and also read the store's objects."""
        return {
            "GIT_DIR": os.path.dirname(self._objects.folder),
            "GIT_OBJECT_DIRECTORY": self.folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self._objects.folder),
        }

    def watch(self) -> None:
        """Raise Remote if too much has been received.

        Called from time to time while git receives.
        """
        size = 0
        for name in os.listdir(self.pack_folder):
            try:
                size += os.stat(f"{self.pack_folder}/{name}").st_size
            except FileNotFoundError:
                continue
        if size > self.limits.pack:
            raise Remote(
                f"more than {self.limits.pack:,} bytes would come in", "Raise the limit, or fetch less at once."
            )

    def verify(self, tips: Iterable[bytes], known: Iterable[bytes]) -> Incoming:
        """Check the received objects, and prove that nothing the tips need is missing.

        `known` are tips whose history is already stored. On any error, the quarantine is removed.
        """
        try:
            self.watch()
            packs = [Pack(base) for base in self._bases()]
            try:
                for pack in packs:
                    self._check(pack)
                self._follow(packs, list(tips), [oid for oid in known if self._objects.contains(oid)])
            finally:
                for pack in packs:
                    pack.close()
        except OSError as error:
            self.discard()
            raise cannot_write(error) from error
        except BaseException:
            self.discard()
            raise
        return self

    @contextmanager
    def visible(self) -> Iterator[None]:
        """Let the store find the objects in the quarantine, in this process only."""
        store = self._objects.store
        store.beside = [Pack(base) for base in self._bases()]
        self._objects.reload()
        try:
            yield
        finally:
            store.beside = []  # not closed: another thread may still read them
            self._objects.reload()

    def accept(self, writer: PackWriter | None = None) -> list[str]:
        """Make the objects visible and durable, in one pack with those of `writer`.

        Call under the store's lock, right before the refs move. Returns the paths of the packs without suffix. Each
        path is for `Objects.release`, to be called once refs reach the objects: until then a `.keep` file protects the
        pack from any gc. Objects left by a failed pull, which may be unreachable from any ref, are stored again. A
        small pack is rewritten with only the needed objects: the result has no deltas, and can be folded with the packs
        of turns. A large pack is moved into the store as it is.
        """
        writer = self._objects.writer() if writer is None else writer
        made: list[str] = []
        try:
            for oid in self.builds_on:  # a prune may have run since the check
                if not self._objects.contains(oid):
                    raise Missing(oid)
            moves = self._size > SMALL
            made += self._written([oid for oid in self.ids if not moves or oid not in self._received], writer)
            for base in self._bases() if moves else ():
                made.append(self._moved_in(base))
        except BaseException as error:
            writer.abandon()
            for base in made:
                self._objects.give_up(base)
            if isinstance(error, OSError):
                raise cannot_write(error) from error
            raise
        finally:
            self.discard()
        self._objects.reload()
        return made

    def discard(self) -> None:
        """Remove the quarantine, which no other process reads. A second call does nothing."""
        if self._lock >= 0:
            _remove(self.folder)
            lock, self._lock = self._lock, -1
            os.close(lock)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()

    def _bases(self) -> list[str]:
        names = sorted(name for name in os.listdir(self.pack_folder) if name.endswith(".idx"))
        return [f"{self.pack_folder}/{name[:-4]}" for name in names]

    def _written(self, ids: list[bytes], writer: PackWriter) -> list[str]:
        """Write objects into a new pack of the store, each compared with its id."""
        packs = [Pack(base) for base in self._bases()]
        both = _Beside(self._objects, packs)
        try:
            for oid in ids:
                store_again(both, writer, oid)
            base = self._objects.finish(writer)
        finally:
            for pack in packs:
                pack.close()
        return [base] if base is not None else []

    def _moved_in(self, source: str) -> str:
        """Move a pack into the store, always under a new name.

        A git may be about to delete an existing pack of the same name.
        """
        base = new_name(self._objects.pack_folder)
        try:
            for suffix in (".pack", ".idx"):
                fd = os.open(source + suffix, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            write_keep(base)
            for suffix in (".pack", ".idx"):
                os.rename(source + suffix, base + suffix)
            sync_folder(self._objects.pack_folder)
        except BaseException:
            # Without its index nobody has seen the pack, so the pack can be removed. With the index, other processes
            # may already rely on the pack, so it stays as garbage for a later gc (see `objects/pack_writer`).
            for path in [f"{base}.keep", *([f"{base}.pack"] if not os.path.exists(f"{base}.idx") else [])]:
                remove_quietly(path)
            raise
        return base

    # Checking the received objects.

    def _check(self, pack: Pack) -> None:
        found = list(pack.ids())
        if len(set(found)) != len(found):
            raise Corrupt("the same object was received twice")
        self._received.update(found)
        if len(self._received) > self.limits.objects:
            raise Remote(f"more than {self.limits.objects:,} objects would come in", "Fetch less at once.")
        for oid, offset in pack.offsets().items():
            kind, size = pack.header(offset)
            limit = self.limits.blob if kind == BLOB else self.limits.held
            if size > limit:
                raise Remote(
                    f"an object of {size:,} bytes would come in; {limit:,} is the limit", "Leave that file out."
                )
            if kind != BLOB:
                self._checked(kind, pack.read(offset)[1], oid)

    def _checked(self, kind: bytes, data: bytes, oid: bytes) -> None:
        check_object(kind, data, oid)
        if kind == TREE:
            self._links |= links_in(data)

    def _follow(self, packs: list[Pack], tips: list[bytes], known: list[bytes]) -> None:
        """Walk from the tips down to the known objects.

        That an object is in the store does not prove that its references are: the object may be left over from
        something that gc removed.
        """
        both = _Beside(self._objects, packs)
        try:
            for oid, kind, path, commit in new_objects(both, tips, known):
                found, size = both.header(oid)
                if found != kind:
                    where = f" for {os.fsdecode(path)!r} in {commit.hex()}" if path else ""
                    raise Corrupt(f"a {found.decode()} came in{where} where a {kind.decode()} belongs")
                self.ids.append(oid)
                if kind == COMMIT:
                    self.commits.append(oid)
                self._size += size
                if oid not in self._received and kind != BLOB:
                    self._checked(kind, both.read(oid)[1], oid)
            for oid in sorted(self._links):
                if both.contains(oid):  # otherwise it belongs to a tree that no tip reaches
                    check_link(both, oid)
            self.builds_on = known
        except Missing as error:
            raise Corrupt(
                f"what was received is incomplete: {error.message}",
                "The other side is damaged; `git fsck` there says more. Nothing was imported.",
                **error.details,
            ) from None


class _Beside(Objects):
    """The store's objects together with those of packs that are not visible yet."""

    def __init__(self, objects: Objects, own: list[Pack]) -> None:
        super().__init__(os.path.dirname(objects.folder))
        self.store.beside = own


def sweep(objects: Objects) -> None:
    """Remove the leftovers of killed runs. A running one holds its folder's lock."""
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
            if lock_if_abandoned(fd):
                _remove(folder)
        finally:
            os.close(fd)


def _remove(folder: str) -> None:
    """Remove a quarantine folder, as far as possible.

    A git whose parent was killed may still be writing there. The next sweep removes what that git adds.
    """
    shutil.rmtree(folder, ignore_errors=True)


def _quoted(path: str) -> str:
    """Return a path quoted for git's path lists, if it needs quotes.

    A path needs quotes if it has a colon or begins with a quote.
    """
    if ":" not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
