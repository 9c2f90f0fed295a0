"""Put all reachable objects into one pack, and remove unreachable ones (gc).

A turn must not wait for gc, so most of the work happens without the store's lock. git's own gc and dulwich's know
nothing of that lock, and dulwich's removes kept packs as well (test_gc.py, test_keeping_kills.py). Nothing is lost,
because:

1. `survey`, under the lock, lists the packs, the loose objects and the roots (the objects that refs point to).
2. `build`, without the lock, writes a new, not yet visible pack of everything reachable from the roots. Turns continue
   meanwhile. Each turn writes its own pack, which did not exist at the survey and is not touched here. A turn may also
   rely on an object of a borrowed pack that was unreachable at the survey (timeline/capture/stored_objects.py).
3. `install`, under the lock again. No snapstore writer is half-way at this point: the objects of a writer are reachable
   by now, or the writer checks again what is stored when it gets the lock (`Objects.refresh`). Objects that became
   reachable since the survey are searched for in the files to be removed, and a pack or loose object that holds one
   stays. Then the new pack is made visible and durable, and only then are the old packs removed, each with its index
   first, since a pack without an index does not count.

A kill before step 3 leaves files in a folder that nobody reads. A kill during step 3 leaves old and new packs side by
side, that is, the same objects twice. The grace period protects programs that ignore the store's lock (git itself): an
unreachable object stays until its file has not been touched for that long. Younger unreachable objects move to a pack
of their own, which keeps their age and is later removed as a whole. The new pack has a `.keep` file from before it is
visible until the old packs are gone, so that no `git repack` removes it in between.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from snapstore.base.files import remove_if_there, sync_folder
from snapstore.base.locks import try_lock
from snapstore.errors import Busy, Failed, Unsafe
from snapstore.git.maintenance.fold import WORK, must_have_room
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import is_kept, is_linked
from snapstore.git.objects.pack_writer import new_name, write_keep
from snapstore.git.objects.reachability import new_objects
from snapstore.git.objects.store import Objects

Progress = Callable[[int], None]
# Packs everything reachable from some ids, or only these ids. Writes to `Repack.folder`; returns paths without suffix.
Packing = Callable[["Repack", Iterable[bytes], bool], list[str]]

SUFFIXES = (".idx", ".rev", ".bitmap", ".mtimes", ".promisor", ".keep", ".pack")
_PATIENCE = 0.3  # seconds; a process that only checks for a running gc holds the lock for a moment
_STALE = ("pack/multi-pack-index", "info/commit-graph", "info/packs")


@dataclass(slots=True)
class Result:
    """What a gc did, or would do."""

    packs_before: int = 0
    packs_after: int = 0
    loose: int = 0  # number of loose objects before
    objects: int = 0  # number of objects in the new packs
    dropped: int = 0
    waiting: int = 0  # unreachable, but too young to remove
    bytes_before: int = 0
    bytes_after: int = 0


class Repack:
    """One gc of one object store, used as a context manager. Only one can run."""

    def __init__(self, objects: Objects, *, older_than: float, packing: Packing, progress: Progress | None = None):
        self.objects = objects
        self.folder = f"{objects.folder}/{WORK}"
        self.progress = progress
        self.lock = -1
        self.kept: list[Pack] = []  # packs that are neither removed nor packed again
        self._older_than = older_than
        self._packing = packing
        self._old: dict[str, tuple[Pack, os.stat_result]] = {}
        self._loose: dict[bytes, float] = {}
        self._roots: frozenset[bytes] = frozenset()
        self._made: list[str] = []
        self._reached = 0  # packs of `_made` that hold reachable objects; the rest hold waiting ones
        self._ages: dict[str, float] = {}
        self.result = Result()

    def __enter__(self) -> Self:
        end = time.monotonic() + _PATIENCE
        while not self._locked():
            if time.monotonic() > end:
                raise Busy("another gc of this store is running")
            time.sleep(0.01)
        self._empty()
        return self

    def _locked(self) -> bool:
        try:
            os.mkdir(self.folder, 0o700)
        except FileExistsError:
            pass
        try:
            # A git that this process starts inherits the lock: if that git outlives this process, the folder stays
            # locked.
            self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise Unsafe(
                f"{self.folder} is not a folder", "snapstore did not make it. Remove it, then run this again."
            ) from None
        try:
            # Otherwise the folder was removed while this process waited.
            if try_lock(self.lock) and os.path.samestat(os.fstat(self.lock), os.lstat(self.folder)):
                return True
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(self.lock)
            raise
        os.close(self.lock)
        return False

    def __exit__(self, *exception: object) -> None:
        try:
            self._empty()
            os.rmdir(self.folder)
        except OSError:
            pass  # the next gc removes it
        os.close(self.lock)

    def _empty(self) -> None:
        """Remove the packs of an unfinished gc, which no reader has seen."""
        for entry in os.scandir(self.lock):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, dir_fd=self.lock)
            else:
                os.unlink(entry.name, dir_fd=self.lock)

    def must_fit(self) -> None:
        """Raise Failed if a new pack would not fit on the disk.

        Called before something is removed that cannot be brought back.
        """
        objects = self.objects
        bases = [pack.base for pack in objects.packs() if not is_kept(pack.base)]
        loose = sum(_blocks(objects.loose_path(oid)) for oid in objects.loose_ids())
        must_have_room(self.folder, sum(map(_on_disk, bases)) + loose)

    # Step 1.

    def survey(self, roots: Iterable[bytes]) -> None:
        objects, result = self.objects, self.result
        objects.refresh()
        self._roots = frozenset(roots)
        for listed in objects.packs():
            pack = Pack(listed.base)  # the store closes its own `Pack` when another git removes the files
            try:
                st = os.stat(f"{pack.base}.pack")
                pack.count()  # loads the index
            except FileNotFoundError:
                continue
            if is_linked(st) or is_kept(pack.base):
                self.kept.append(pack)
            else:
                self._old[pack.base] = (pack, st)
                result.bytes_before += _on_disk(pack.base)
        for oid in objects.loose_ids():
            path = objects.loose_path(oid)
            try:
                st = os.stat(path)
            except FileNotFoundError:
                continue
            self._loose[oid] = st.st_mtime
            result.bytes_before += 0 if is_linked(st) else st.st_blocks * 512
        result.packs_before, result.loose = len(self._old), len(self._loose)

    # Step 2.

    def build(self) -> None:
        if not self._old and not self._loose:
            return
        must_have_room(self.folder, self.result.bytes_before)
        self._made = self._packing(self, sorted(self._roots), True)
        self._reached = len(self._made)
        new = _ids(self._made)
        self._must_hold(new, self._roots)
        waiting, dropped = self._sort_out(new)
        if dropped:
            # Removal is final, so the packing program is not trusted. git also exits with status 0 if it could not
            # report what it made.
            for oid, _, _, _ in new_objects(self.objects, sorted(self._roots), ()):
                if oid in dropped:
                    raise _left_out(oid)
        if waiting:
            made = self._packing(self, sorted(waiting), False)
            self._must_hold(_ids(made), waiting)
            self._ages = dict.fromkeys(made, max(st.st_mtime for _, st in self._old.values()))
            self._made += made
        for base in self._made:
            sync_pack(base, self._ages.get(base))
        result = self.result
        result.dropped = len(dropped)
        result.objects = len(new) + len(waiting)
        result.waiting += len(waiting)
        result.packs_after += len(self._made)
        result.bytes_after += sum(_on_disk(base) for base in self._made)
        if not self._loose and sorted(map(_trailer, self._made)) == sorted(map(_trailer, self._old)):
            self._made, self._old = [], {}  # the same packs again: keep the old ones

    def _must_hold(self, made: set[bytes], wanted: Iterable[bytes]) -> None:
        for oid in wanted:
            if oid not in made and not self._is_kept(oid):
                raise _left_out(oid)

    def _sort_out(self, new: set[bytes]) -> tuple[set[bytes], set[bytes]]:
        """Decide which old packs and loose objects to remove.

        Returns the unreachable objects: those that wait in a pack of their own, and those that are dropped.
        """
        result = self.result
        waiting: set[bytes] = set()
        dropped: set[bytes] = set()
        for base, (pack, st) in list(self._old.items()):
            unneeded = {oid for oid in pack.ids() if oid not in new and not self._is_kept(oid)}
            if st.st_mtime < self._older_than:
                dropped |= unneeded
            elif len(unneeded) == pack.count():  # already a pack of waiting objects: keep its age
                del self._old[base]
                result.waiting += len(unneeded)
                result.packs_after += 1
                result.bytes_after += _on_disk(base)
            else:
                waiting |= unneeded
        for oid, age in list(self._loose.items()):
            if oid in new or self._is_kept(oid):
                continue
            if age < self._older_than:
                dropped.add(oid)
            else:
                del self._loose[oid]
                result.waiting += 1
                result.bytes_after += _blocks(self.objects.loose_path(oid))
        return waiting, dropped - waiting

    def _is_kept(self, oid: bytes) -> bool:
        return any(pack.find(oid) is not None for pack in self.kept)

    # Step 3.

    def install(self, roots: Iterable[bytes]) -> Result:
        """Replace the old packs. Call under the lock, with the current roots."""
        objects = self.objects
        objects.refresh()
        staying = self._needed_by(frozenset(roots) - self._roots)
        new: list[str] = []
        try:
            for base in self._made:
                new.append(target := new_name(objects.pack_folder))
                show(base, target)
            if new:
                sync_folder(objects.pack_folder)
            self._remove_old(new, staying)
        finally:
            for base in new:
                remove_if_there(f"{base}.keep")  # now an ordinary pack, which the next packing may replace
        self._remove_empty_folders()
        objects.reload()
        return self.result

    def _remove_old(self, new: list[str], staying: set[object]) -> None:
        """Remove the old packs and loose objects.

        Each of these objects is in the new packs, which are durable, visible, and kept until the end, so no git removes
        them; or in a kept pack; or has been unreachable for the grace period. A reader that has an old pack open can
        continue; others find the objects in the new packs when they look again.
        """
        objects = self.objects
        for name in _STALE:  # these files describe packs and commits that may be gone
            remove_if_there(f"{objects.folder}/{name}")
        for base, (pack, st) in self._old.items():
            # A git that writes an existing object only touches the file that holds the object, and relies on that file.
            untouched = _mtime(f"{base}.pack") == st.st_mtime
            if base not in staying and untouched and os.path.exists(f"{base}.idx") and all_exist(new):
                pack.close()
                for suffix in SUFFIXES:
                    remove_if_there(base + suffix)
        for oid, age in self._loose.items():
            path = objects.loose_path(oid)
            if oid not in staying and _mtime(path) == age and all_exist(new):
                remove_if_there(path)

    def _needed_by(self, roots: frozenset[bytes]) -> set[object]:
        """Return old packs and loose objects that only new roots need.

        New roots are those that did not exist at the survey.
        """
        staying: set[object] = set()
        if not roots or not (self._old or self._loose):
            return staying
        made = [Pack(base) for base in self._made]
        try:

            def holds(oid: bytes) -> bool:
                # These packs hold what was reachable from the roots of the survey, so everything below is there as
                # well.
                return oid in self._roots or any(pack.find(oid) is not None for pack in made[: self._reached])

            for oid, _, _, _ in new_objects(self.objects, sorted(roots), (), holds):
                if any(pack.find(oid) is not None for pack in made):
                    continue
                staying.update(base for base, (pack, _) in self._old.items() if pack.find(oid) is not None)
                if oid in self._loose:
                    staying.add(oid)
        finally:
            for pack in made:
                pack.close()
        return staying

    def _remove_empty_folders(self) -> None:
        for name in os.listdir(self.objects.folder):
            if len(name) == 2:
                try:
                    os.rmdir(f"{self.objects.folder}/{name}")
                except OSError:
                    pass  # not empty


def show(base: str, target: str) -> None:
    """Make a new pack visible, under a name that no git has seen (`new_name`).

    The pack has a `.keep` file until the old packs are gone: otherwise a `git repack` could put everything into a pack
    that is about to be removed here, and remove the new one. An older pack with the same bytes is no substitute: a
    running git may have listed its name for deletion.
    """
    write_keep(target)
    for suffix in (".pack", ".rev", ".idx"):  # the index last: a pack without an index does not count
        if os.path.exists(base + suffix):
            os.rename(base + suffix, target + suffix)


def sync_pack(base: str, age: float | None = None) -> None:
    """Sync a pack to disk, with the modification time `age` if given."""
    for suffix in (".pack", ".rev", ".idx"):
        try:
            fd = os.open(base + suffix, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.fchmod(fd, 0o444)
            if age is not None:
                os.utime(fd, (age, age))
            os.fsync(fd)
        finally:
            os.close(fd)


def all_exist(bases: Iterable[str]) -> bool:
    """Return whether all packs exist, to be checked before other copies are removed."""
    return all(os.path.exists(base + suffix) for base in bases for suffix in (".idx", ".pack"))


def _ids(bases: Iterable[str]) -> set[bytes]:
    found: set[bytes] = set()
    for base in bases:
        pack = Pack(base)
        found.update(pack.ids())
        pack.close()
    return found


def _left_out(oid: bytes) -> Failed:
    return Failed(f"packing left out object {oid.hex()}", "Nothing was changed. Run `snapstore check`.")


def _on_disk(base: str) -> int:
    return sum(_blocks(base + suffix) for suffix in (".pack", ".idx", ".rev"))


def _blocks(path: str) -> int:
    try:
        st = os.stat(path)
    except FileNotFoundError:
        return 0
    return 0 if is_linked(st) else st.st_blocks * 512


def _trailer(base: str) -> bytes:
    """Return the checksum at the end of a pack: equal checksum, equal bytes."""
    try:
        with open(f"{base}.pack", "rb") as file:
            file.seek(-20, os.SEEK_END)
            return file.read(20)
    except FileNotFoundError:
        return b""  # another git removed the pack


def _mtime(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return None
