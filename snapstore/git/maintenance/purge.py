"""Leaves in an object store what some objects reach, in packs of its own, and nothing else: also packs go that were
borrowed or kept, since they hold whatever the user's own repository holds.

It has two parts. `prepare` makes the new packs, in a folder that nobody reads: all that can fail, for want of room or
for a damaged object, fails there, and nothing has changed. `run` shows them and removes the rest. It can be cut short
anywhere and done again.

Somebody's `git repack` may be at work beside it. Whatever that makes is removed, so ours must be there, for certain:
the new packs have names that no git has seen, so none that is under way removes them, and they are kept (`.keep`) from
before they are visible until the end, so none that begins meanwhile does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable
from errno import ENOTEMPTY
from hashlib import sha1

from snapstore.base.files import sync_folder
from snapstore.base.locks import lives
from snapstore.errors import Busy, Interrupted
from snapstore.git.maintenance.fold import ABANDONED, is_at_work, must_have_room, refuse_links
from snapstore.git.maintenance.repack import SUFFIXES, Packing, are_there, settle, show
from snapstore.git.maintenance.running_git import git_at_work
from snapstore.git.objects.ids import Missing
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import is_linked, what_it_says
from snapstore.git.objects.pack_writer import KEPT_BY, new_name
from snapstore.git.objects.reachability import between
from snapstore.git.objects.store import Objects

WORK = "snapstore_purge"
_PROOF = "proof"  # a file that says for which roots the packs beside it were found to be whole
_BESIDE = ("pack/multi-pack-index", "info/commit-graph", "info/commit-graphs", "info/packs")


class Purge:
    """One purge of one store. Call it under the store's lock."""

    def __init__(self, objects: Objects, packing: Packing, progress: Callable[[int], None] | None = None) -> None:
        self.objects = objects
        self.folder = f"{objects.folder}/{WORK}"
        self.kept: list[Pack] = []
        self.progress = progress
        self.lock = -1
        self._packing = packing

    def must_be_possible(self) -> None:
        """Raises what `prepare` would, as far as that can be told before anything is written."""
        refuse_links(self.objects)
        _refuse_orphan(self.objects)
        must_have_room(self.objects.folder, self._size())

    def prepare(self, roots: Iterable[bytes]) -> list[str]:
        """Makes packs of all that the roots reach. Where that fails nothing is left of it."""
        wanted = sorted(set(roots))
        refuse_links(self.objects)
        _refuse_orphan(self.objects)
        sweep(self.objects)
        os.mkdir(self.folder, 0o700)
        try:
            must_have_room(self.folder, self._size())
            # A git that we start inherits the lock: one that outlives us is still at work in the folder.
            self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                made = self._packing(self, wanted, True)  # type: ignore[arg-type]
            finally:
                os.close(self.lock)
            self._check(made, wanted)
            for base in made:
                settle(base)
            with open(f"{self.folder}/{_PROOF}", "wb") as file:
                file.write(_proof(made, wanted))
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.folder)
        except BaseException:
            sweep(self.objects)
            raise
        return made

    def run(self, roots: Iterable[bytes]) -> None:
        objects, wanted = self.objects, set(roots)
        objects.reload()
        made = self._prepared(wanted)
        if made is None:
            made = self.prepare(wanted)
        old = [pack.base for pack in objects.packs()]
        shown = [new_name(objects.pack_folder) for _ in made]
        for base, target in zip(made, shown, strict=True):
            show(base, target)
        sync_folder(objects.pack_folder)
        for name in _BESIDE:
            _remove(f"{objects.folder}/{name}")
        for base in old:
            _must_be_there(shown)
            for suffix in SUFFIXES:
                _remove(base + suffix)
        self._remove_others(shown)
        sweep(objects)
        for base in shown:
            _remove(f"{base}.keep")
        sync_folder(objects.pack_folder)
        objects.close()  # what is gone is not to be read from an open file either

    def _size(self) -> int:
        """What new packs may take. A pack that is also the user's holds more than we need of it, nobody knows how much
        less."""
        size = 0
        for pack in self.objects.packs():
            try:
                st = os.stat(f"{pack.base}.pack")
            except FileNotFoundError:
                continue
            size += 0 if is_linked(st) else st.st_size
        return size

    def _prepared(self, roots: set[bytes]) -> list[str] | None:
        """The packs that were made for these roots, if they are all there."""
        try:
            names = os.listdir(self.folder)
            with open(f"{self.folder}/{_PROOF}", "rb") as file:
                said = file.read()
        except FileNotFoundError:
            return None
        made = [f"{self.folder}/{name[:-4]}" for name in sorted(names) if name.endswith(".idx")]
        return made if are_there(made) and said == _proof(made, sorted(roots)) else None

    def _check(self, made: list[str], roots: list[bytes]) -> None:
        """Before anything goes: everything that is needed is in the new packs."""
        packs = [Pack(base) for base in made]
        try:
            for oid, _, _, _ in between(self.objects, roots, ()):
                if not any(pack.find(oid) is not None for pack in packs):
                    raise Missing(oid)
        finally:
            for pack in packs:
                pack.close()

    def _remove_others(self, shown: list[str]) -> None:
        """Loose objects, and whatever lies in the folder of packs that belongs to none of ours."""
        objects = self.objects
        for first in range(256):
            folder = f"{objects.folder}/{first:02x}"
            if os.path.lexists(folder):
                _must_be_there(shown)
                _remove(folder)
        names = {f"{os.path.basename(base)}{suffix}" for base in shown for suffix in (".pack", ".idx", ".rev", ".keep")}
        for name in os.listdir(objects.pack_folder):
            if name not in names:
                _must_be_there(shown)
                _remove(f"{objects.pack_folder}/{name}")


def refuse_writers(objects: Objects) -> None:
    """A push writes what it sends without the store's lock, and refers to it when it is done: that must not go. And a
    git that has the old packs open would bring back what was in them."""
    _refuse_orphan(objects)
    git = git_at_work(os.path.dirname(objects.folder))
    if git is not None:
        raise Busy(f"somebody's git is at work in this store: {git}", "Nothing was forgotten. Wait for its end.")
    for name in os.listdir(objects.pack_folder):
        if name.endswith(".keep"):
            process = _writer(f"{objects.pack_folder}/{name}")
            if process.partition(" ")[0] != str(os.getpid()) and lives(process):
                raise Busy("a push or a pull is at work on this store", "Nothing was forgotten. Wait for its end.")


def _refuse_orphan(objects: Objects) -> None:
    """The git of a purge that was killed goes on alone, and would leave a pack of all that it saw when it began."""
    if is_at_work(objects, WORK):
        raise Busy(
            "a git that a killed forget started is still at work in this store",
            "Nothing was forgotten. Wait for its end, or end it: it packs into a folder snapstore_purge.",
        )


def _writer(keep: str) -> str:
    """The number of the process whose `.keep` file it is; none for one so old that it may be another's by now."""
    try:
        if time.time() - os.stat(keep).st_mtime > ABANDONED:
            return ""
    except FileNotFoundError:
        return ""
    said = what_it_says(keep) or b""
    return said[len(KEPT_BY) :].decode("latin-1").strip() if said.startswith(KEPT_BY) else ""


def sweep(objects: Objects) -> None:
    """Removes what a purge left that never came to its second part. Call under the lock, and with no change pending.
    While a git still works there it stays: it would be made again."""
    if not is_at_work(objects, WORK):
        _remove(f"{objects.folder}/{WORK}")


def _proof(made: list[str], roots: list[bytes]) -> bytes:
    digest = sha1(b"".join(roots), usedforsecurity=False)
    for base in sorted(made):
        digest.update(f"\n{os.path.basename(base)} {os.stat(base + '.pack').st_size}".encode())
    return digest.hexdigest().encode()


def _must_be_there(shown: list[str]) -> None:
    if not are_there(shown):
        raise Interrupted(
            "somebody took away the new packs of the store while the old ones were being removed",
            "Let no other program change the store's folder; the next command of any kind goes on.",
        )


def _remove(path: str) -> None:
    """A file, a link, or a folder with all in it, such as git's newer indexes: no link is followed."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != ENOTEMPTY:  # else somebody's git has just put something there
            raise
