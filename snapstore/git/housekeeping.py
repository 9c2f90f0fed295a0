"""Keeps the number of packs small: thousands of small ones slow every reader, ours and git's.

When 32 small packs have come together they are copied into one, entry by entry, without inflating anything: a few
milliseconds every 32 turns, and the same again in steps of size. Runs under the store's lock.
"""

from __future__ import annotations

import os

from snapstore.git.packwriter import TEMPORARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.odb import Objects
    from snapstore.git.packs import Pack

FOLD_AT = 32
STEPS = (1 << 20, 1 << 25)  # packs up to a size are folded with their like; larger ones are left alone


def tidy(objects: Objects) -> bool:
    """Folds small packs where there are many. Says whether it did."""
    packs = objects.packs()
    if len(packs) < FOLD_AT:
        return False
    _sweep(objects)
    folded = False
    below = 0
    for limit in STEPS:
        small = [pack for pack in packs if below <= _size(pack) < limit and _ours(pack)]
        if len(small) >= FOLD_AT:
            small = [pack for pack in small if not _has_deltas(pack)]
        if len(small) >= FOLD_AT:
            _fold(objects, small)
            folded = True
        below = limit
    if folded:
        objects.reload()
    return folded


def _fold(objects: Objects, packs: list[Pack]) -> None:
    writer = objects.writer()
    try:
        for pack in packs:
            offsets = sorted((offset, oid) for oid, offset in pack.offsets().items())
            ends = [offset for offset, _ in offsets[1:]] + [pack.size() - 20]
            for (offset, oid), end in zip(offsets, ends, strict=True):
                writer.add_packed(oid, pack.raw(offset, end))
        written = writer.finish()
    except BaseException:
        writer.abandon()
        raise
    for pack in packs:
        if pack.base != written:
            for suffix in (".idx", ".pack"):  # without its index a pack does not count, so that goes first
                os.unlink(pack.base + suffix)


def _size(pack: Pack) -> int:
    try:
        return os.stat(f"{pack.base}.pack").st_size
    except FileNotFoundError:
        return -1


def _ours(pack: Pack) -> bool:
    """Not one that is kept, nor hard-linked from elsewhere."""
    try:
        return os.stat(f"{pack.base}.pack").st_nlink == 1 and not os.path.exists(f"{pack.base}.keep")
    except FileNotFoundError:
        return False


def _has_deltas(pack: Pack) -> bool:
    """Their bases are given by distance: such entries cannot be copied one by one."""
    return any(pack.is_delta(offset) for offset in pack.offsets().values())


def _sweep(objects: Objects) -> None:
    """Removes what a killed writer left: the lock is ours, so no writer of ours is at work."""
    for name in os.listdir(objects.pack_folder):
        path = f"{objects.pack_folder}/{name}"
        try:
            if name.startswith(TEMPORARY) or (name.endswith(".keep") and os.stat(path).st_size == 0):
                os.unlink(path)
        except FileNotFoundError:
            continue
