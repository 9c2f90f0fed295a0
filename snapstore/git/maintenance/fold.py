"""Keep the number of packs small: thousands of packs slow down every reader.

Once 32 small packs exist, their entries are copied into one pack without inflating anything. Folding takes a few
milliseconds every 32 turns, and the same again for each size step. A gc by git takes half a second, and dulwich has
only a whole gc (test_git_packs.py). Runs under the store's lock.
"""

from __future__ import annotations

import os

from snapstore.base import locks
from snapstore.base.files import remove_if_there
from snapstore.base.locks import is_alive
from snapstore.errors import Failed, Unsafe
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_files import is_linked, read_small_file, remove_packs
from snapstore.git.objects.pack_writer import KEPT_BY, TEMPORARY
from snapstore.git.objects.store import Objects

FOLD_AT = 32
ABANDONED = 3600  # seconds; no program writes a pack for so long without touching the file
WORK = "snapstore_gc"  # the folder next to `pack` in which gc works; locked while gc runs
SPARE = 1 << 22  # bytes of free disk space to leave for turns that run meanwhile
STEPS = (1 << 20, 1 << 25)  # packs below each size are folded together; larger ones are left alone


def tidy(objects: Objects) -> bool:
    """Fold small packs if there are many, and return whether any were folded."""
    packs = objects.packs()
    if len(packs) < FOLD_AT or is_in_use(objects):  # a running gc merges the packs itself, and still reads them
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


def is_in_use(objects: Objects, folder: str = WORK) -> bool:
    """Return whether a gc or a purge, or its git process, uses the work folder."""
    try:
        fd = os.open(f"{objects.folder}/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return locks.is_in_use(fd)
    finally:
        os.close(fd)


def refuse_links(objects: Objects) -> None:
    """Raise Unsafe if a folder of the object store is a symbolic link.

    Files behind such a link are not snapstore's to remove.
    """
    for folder in ("", "/info", "/info/commit-graphs", "/pack", *(f"/{first:02x}" for first in range(256))):
        if os.path.islink(objects.folder + folder):
            raise Unsafe(
                f"{objects.folder}{folder} is a link, and files in its target would be removed",
                "Nothing was changed. snapstore did not make this link: replace it by a folder, then run this again.",
            )


def must_have_room(folder: str, size: int) -> None:
    """Raise Failed if `size` more bytes would fill the disk.

    New packs are written next to the old ones. A turn that ends while half a pack fills the disk is lost.
    """
    st = os.statvfs(folder)
    free = st.f_bavail * st.f_frsize
    if st.f_blocks and free < size + SPARE:
        need, has = (f"{number / 1e6:,.0f} MB" for number in (size + SPARE, free))
        raise Failed(
            f"packing may need {need} for a while, but only {has} are free on the disk",
            "Nothing was changed. Free some space on the disk, then run this again.",
        )


def _fold(objects: Objects, packs: list[Pack]) -> None:
    writer = objects.writer()
    try:
        for pack in packs:
            writer.add_pack(pack)
        written = writer.finish(keep=True)  # else a git process could remove the new pack before the old ones go
    except BaseException:
        writer.abandon()
        raise
    try:
        remove_packs(objects.pack_folder, packs)
    finally:
        remove_if_there(f"{written}.keep")


def _size(pack: Pack) -> int:
    try:
        return os.stat(f"{pack.base}.pack").st_size
    except FileNotFoundError:
        return -1


def _ours(pack: Pack) -> bool:
    """Return whether a pack is neither kept nor hard-linked from elsewhere."""
    try:
        return not is_linked(os.stat(f"{pack.base}.pack")) and not os.path.exists(f"{pack.base}.keep")
    except FileNotFoundError:
        return False


def _sweep(objects: Objects) -> int:
    """Remove files that killed pack writers left, and return their number.

    The lock does not exclude all living writers: a push writes the objects to send without the lock. Of a visible pack
    only the `.keep` file is removed. An interrupted change is finished before this, under the same lock, so refs
    already reach every needed object of the pack.
    """
    count = 0
    for name in os.listdir(objects.pack_folder):
        path = f"{objects.pack_folder}/{name}"
        if name.startswith(TEMPORARY):
            left = not is_alive(name[len(TEMPORARY) :].partition("_")[0])
        else:
            left = name.endswith(".keep") and _is_left(path)
        if left:
            remove_if_there(path)
            count += 1
    return count


def _is_left(keep: str) -> bool:
    """Return whether a `.keep` file was written by a snapstore process that died.

    A person's `.keep` files and those of borrowed packs do not count. snapstore does not sync its `.keep` files: after
    a power cut, one may be empty or hold zeros of the right length.
    """
    text = read_small_file(keep)
    if text is None:
        return False
    text = text.strip(b"\0")
    return not text or (text.startswith(KEPT_BY) and not is_alive(text[len(KEPT_BY) :].decode("latin-1").strip()))


def sweep(objects: Objects, now: float) -> int:
    """Remove everything that killed processes and power cuts left.

    Besides the leftovers of snapstore's writers, these are temporary files of a killed git, packs that lost their index
    to a killed gc, and indexes that lost their pack to a power cut. A file that another program may be writing is
    removed only if it is old. Returns the number of files. Call under the lock.
    """
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
    """List a folder of loose objects, which `git prune` removes once it is empty."""
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
