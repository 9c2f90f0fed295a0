"""Remove every object that is not reachable from given roots.

All reachable objects are written to new packs, and everything else is removed. Borrowed and kept packs are removed too,
since they hold whatever the user's own repository holds. No gc of git or dulwich does that (test_forget_byhand.py).

A purge has two parts. `prepare` writes the new packs, in a folder that nobody reads. Everything that can fail, such as
a full disk or a damaged object, fails there, and nothing has changed. `run` makes the new packs visible and removes the
rest. `run` can be interrupted anywhere and repeated.

A `git repack` may be running at the same time. Whatever that process writes is removed, so the new packs must survive:
they have names that no git has seen, so no running git removes them, and they have `.keep` files from before they are
visible until the end, so no git that starts meanwhile removes them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from errno import ENOTEMPTY
from hashlib import sha1

from snapstore.base.files import sync_folder
from snapstore.base.locks import is_alive, lock_work_folder
from snapstore.errors import Busy, Interrupted
from snapstore.git.maintenance.fold import ABANDONED, is_in_use, must_have_room, refuse_links
from snapstore.git.maintenance.repack import SUFFIXES, Packing, all_exist, show, sync_pack
from snapstore.git.maintenance.running_git import git_at_work
from snapstore.git.objects.ids import Missing
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import is_linked, read_small_file
from snapstore.git.objects.pack_writer import KEPT_BY, new_name
from snapstore.git.objects.reachability import new_objects
from snapstore.git.objects.store import Objects

WORK = "snapstore_purge"
_PROOF = "proof"  # this file tells for which roots the packs next to it are complete
_BESIDE = ("pack/multi-pack-index", "info/commit-graph", "info/commit-graphs", "info/packs")


class Purge:
    """One purge of one store. Call under the store's lock."""

    def __init__(self, objects: Objects, packing: Packing, progress: Callable[[int], None] | None = None) -> None:
        self.objects = objects
        self.folder = f"{objects.folder}/{WORK}"
        self.kept: list[Pack] = []
        self.progress = progress
        self.lock = -1
        self._packing = packing

    def must_be_possible(self) -> None:
        """Raise what `prepare` would raise, as far as known before writing."""
        refuse_links(self.objects)
        _refuse_orphan(self.objects)
        must_have_room(self.objects.folder, self._size())

    def prepare(self, roots: Iterable[bytes]) -> list[str]:
        """Write packs of everything reachable from the roots, and return their paths.

        On failure, nothing is left behind.
        """
        wanted = sorted(set(roots))
        refuse_links(self.objects)
        _refuse_orphan(self.objects)
        sweep(self.objects)
        os.mkdir(self.folder, 0o700)
        try:
            must_have_room(self.folder, self._size())
            # A git that this process starts inherits the lock: if that git outlives this process, the folder stays
            # locked.
            self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                lock_work_folder(self.lock)
                made = self._packing(self, wanted, True)  # type: ignore[arg-type]
            finally:
                os.close(self.lock)
            self._check(made, wanted)
            for base in made:
                sync_pack(base)
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
        # Every object that a ref reaches is in these packs. The user wants the rest removed, and `refuse_writers` has
        # made sure that no push, pull or git process needs it.
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
        objects.close()  # removed objects must not be readable through an open file either

    def _size(self) -> int:
        """Return an estimate of the size of the new packs.

        A pack shared with the user's repository counts as zero: the store needs an unknown part of such a pack.
        """
        size = 0
        for pack in self.objects.packs():
            try:
                st = os.stat(f"{pack.base}.pack")
            except FileNotFoundError:
                continue
            size += 0 if is_linked(st) else st.st_size
        return size

    def _prepared(self, roots: set[bytes]) -> list[str] | None:
        """Return the packs prepared for these roots, or None if any is missing."""
        try:
            names = os.listdir(self.folder)
            with open(f"{self.folder}/{_PROOF}", "rb") as file:
                said = file.read()
        except FileNotFoundError:
            return None
        made = [f"{self.folder}/{name[:-4]}" for name in sorted(names) if name.endswith(".idx")]
        return made if all_exist(made) and said == _proof(made, sorted(roots)) else None

    def _check(self, made: list[str], roots: list[bytes]) -> None:
        """Raise Missing if the new packs lack a reachable object."""
        packs = [Pack(base) for base in made]
        try:
            for oid, _, _, _ in new_objects(self.objects, roots, ()):
                if not any(pack.find(oid) is not None for pack in packs):
                    raise Missing(oid)
        finally:
            for pack in packs:
                pack.close()

    def _remove_others(self, shown: list[str]) -> None:
        """Remove loose objects, and all files in the pack folder except the new packs."""
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
    """Raise Busy if a push, a pull or a git process uses the store.

    A push writes objects without the store's lock, and creates refs to them at the end: those objects must not be
    removed. A git process that has the old packs open would bring back their content.
    """
    _refuse_orphan(objects)
    git = git_at_work(os.path.dirname(objects.folder))
    if git is not None:
        raise Busy(f"another git is at work in this store: {git}", "Nothing was forgotten. Wait until it ends.")
    for name in os.listdir(objects.pack_folder):
        if name.endswith(".keep"):
            process = _writer(f"{objects.pack_folder}/{name}")
            if process.partition(" ")[0] != str(os.getpid()) and is_alive(process):
                raise Busy("a push or a pull is at work on this store", "Nothing was forgotten. Wait until it ends.")


def _refuse_orphan(objects: Objects) -> None:
    """Raise Busy if a git process of a killed purge is still running.

    Such a process would leave a pack of everything that existed when the process began.
    """
    if is_in_use(objects, WORK):
        raise Busy(
            "a git process of an earlier `snapstore forget`, which was killed, is still at work in this store",
            "Nothing was forgotten. Wait until that process ends, then run this again.",
        )


def _writer(keep: str) -> str:
    """Return the process named in a `.keep` file, or an empty string.

    The result is empty if the file is so old that the number may belong to another process by now.
    """
    try:
        if time.time() - os.stat(keep).st_mtime > ABANDONED:
            return ""
    except FileNotFoundError:
        return ""
    said = read_small_file(keep) or b""
    return said[len(KEPT_BY) :].decode("latin-1").strip() if said.startswith(KEPT_BY) else ""


def sweep(objects: Objects) -> None:
    """Remove what an interrupted `prepare` left.

    Call under the lock, with no pending change. The folder stays while a git process works in it, since that process
    would create it again.
    """
    if not is_in_use(objects, WORK):
        _remove(f"{objects.folder}/{WORK}")


def _proof(made: list[str], roots: list[bytes]) -> bytes:
    digest = sha1(b"".join(roots), usedforsecurity=False)
    for base in sorted(made):
        digest.update(f"\n{os.path.basename(base)} {os.stat(base + '.pack').st_size}".encode())
    return digest.hexdigest().encode()


def _must_be_there(shown: list[str]) -> None:
    if not all_exist(shown):
        raise Interrupted(
            "another program removed the store's new packs while snapstore removed the old ones",
            "Keep other programs out of the store's folder; the next snapstore command continues.",
        )


def _remove(path: str) -> None:
    """Remove a file, a link or a whole folder. Links are not followed.

    git's newer indexes are folders.
    """
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != ENOTEMPTY:  # otherwise another git has just added something
            raise
