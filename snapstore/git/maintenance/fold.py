"""Keeps the number of packs small: thousands of small ones slow every reader, ours and git's.

When 32 small packs have come together they are copied into one, entry by entry, without inflating anything: a few
milliseconds every 32 turns, and the same again in steps of size. Runs under the store's lock.
"""

from __future__ import annotations

import fcntl
import os

from snapstore.base.locks import lives
from snapstore.errors import Failed, Unsafe
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import is_linked, remove_packs, what_it_says
from snapstore.git.objects.pack_writer import KEPT_BY, TEMPORARY
from snapstore.git.objects.pack_writer import remove as _remove
from snapstore.git.objects.store import Objects

FOLD_AT = 32
ABANDONED = 3600  # seconds; no program writes at a pack for so long without touching it
WORK = "snapstore_gc"  # the folder beside the packs in which a gc works, locked while it does
SPARE = 1 << 22  # bytes on the disk that turns may need meanwhile
STEPS = (1 << 20, 1 << 25)  # packs up to a size are folded with their like; larger ones are left alone


def tidy(objects: Objects) -> bool:
    """Folds small packs where there are many. Says whether it did."""
    packs = objects.packs()
    if len(packs) < FOLD_AT or is_at_work(objects):  # it puts them together itself, and reads them still
        return False
    _sweep(objects)
    folded = False
    below = 0
    for limit in STEPS:
        small = [pack for pack in packs if below <= _size(pack) < limit and _ours(pack)]
        if len(small) >= FOLD_AT:
            small = [pack for pack in small if not pack.has_deltas()]
        if len(small) >= FOLD_AT:
            _fold(objects, small)
            folded = True
        below = limit
    if folded:
        objects.reload()
    return folded


def is_at_work(objects: Objects, folder: str = WORK) -> bool:
    """Whether somebody holds the lock on a folder beside the packs, of which a git that was started there has a part:
    a gc."""
    try:
        fd = os.open(f"{objects.folder}/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def refuse_links(objects: Objects) -> None:
    """Raises Unsafe where a folder of the object store is a link: what lies behind it is not ours to empty."""
    for folder in ("", "/info", "/info/commit-graphs", "/pack", *(f"/{first:02x}" for first in range(256))):
        if os.path.islink(objects.folder + folder):
            raise Unsafe(
                f"{objects.folder}{folder} is a link, and what it leads to would be emptied",
                "It is not of our making: put a folder in its place. Nothing was changed.",
            )


def must_have_room(folder: str, size: int) -> None:
    """Raises Failed where so much more would fill the disk. New packs are made beside the old ones; a turn that ends
    on a disk full of half a pack is lost."""
    st = os.statvfs(folder)
    free = st.f_bavail * st.f_frsize
    if st.f_blocks and free < size + SPARE:
        need, has = (f"{number / 1e6:,.0f} MB" for number in (size + SPARE, free))
        raise Failed(
            f"packing may take {need} for a while, and the disk has {has}",
            "Nothing was changed. Make room on the disk, then run it again.",
        )


def _fold(objects: Objects, packs: list[Pack]) -> None:
    writer = objects.writer()
    try:
        for pack in packs:
            writer.add_pack(pack)
        written = writer.finish(keep=True)  # or a git of somebody's could take it, before the old ones go
    except BaseException:
        writer.abandon()
        raise
    try:
        remove_packs(objects.pack_folder, packs)
    finally:
        _remove(f"{written}.keep")


def _size(pack: Pack) -> int:
    try:
        return os.stat(f"{pack.base}.pack").st_size
    except FileNotFoundError:
        return -1


def _ours(pack: Pack) -> bool:
    """Not one that is kept, nor hard-linked from elsewhere."""
    try:
        return not is_linked(os.stat(f"{pack.base}.pack")) and not os.path.exists(f"{pack.base}.keep")
    except FileNotFoundError:
        return False


def _sweep(objects: Objects) -> int:
    """Removes what killed writers of packs left. A living one may be at work though the lock is ours: a push writes
    what it sends without it. Says how much that was. Of a visible pack only the `.keep` goes: a change that was cut
    short is finished before this, under the same lock, so refs hold what is needed of the pack."""
    count = 0
    for name in os.listdir(objects.pack_folder):
        path = f"{objects.pack_folder}/{name}"
        if name.startswith(TEMPORARY):
            left = not lives(name[len(TEMPORARY) :].partition("_")[0])
        else:
            left = name.endswith(".keep") and _is_left(path)
        if left:
            _remove(path)
            count += 1
    return count


def _is_left(keep: str) -> bool:
    """Whether a `.keep` file is one of ours whose process has died. A person's, or what was borrowed, is not. Ours are
    not synced: after a power cut one may be empty, or have its size and hold zeros."""
    said = what_it_says(keep)
    if said is None:
        return False
    said = said.strip(b"\0")
    return not said or (said.startswith(KEPT_BY) and not lives(said[len(KEPT_BY) :].decode("latin-1").strip()))


def sweep(objects: Objects, now: float) -> int:
    """The same, and what a killed git left, packs that lost their index to a killed gc, and indexes that lost their
    pack to a power cut. As to files that another program may be writing, only old ones. Call under the lock; gives the
    number of files."""
    count = _sweep(objects)
    names = set(os.listdir(objects.pack_folder))
    for name in names:
        stem, _, ending = name.rpartition(".")
        orphan = ending in ("pack", "rev", "bitmap", "keep", "mtimes") and f"{stem}.idx" not in names
        orphan = orphan or (ending == "idx" and f"{stem}.pack" not in names)
        if orphan or name.startswith(("tmp_", ".tmp-")):
            count += _remove_old(f"{objects.pack_folder}/{name}", now)
    with os.scandir(objects.folder) as found:
        folders = [entry.path for entry in found if len(entry.name) == 2 and entry.is_dir(follow_symlinks=False)]
    for folder in folders:
        for name in _names_in(folder):
            if name.startswith("tmp_"):
                count += _remove_old(f"{folder}/{name}", now)
    return count


def _names_in(folder: str) -> list[str]:
    """List a folder of loose objects. A `git prune` by hand removes it when it is empty."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _remove_old(path: str, now: float) -> bool:
    try:
        if now - os.stat(path).st_mtime < ABANDONED:
            return False
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
