"""The files of a pack on disk: read `.keep`, detect hard links, remove packs."""

from __future__ import annotations

import os
import stat

from snapstore.base.files import remove_if_there
from snapstore.git.objects.pack import Pack

BORROWED = "borrowed from the user's repository\n"  # the content of the `.keep` file of such a pack


def read_small_file(keep: str) -> bytes | None:
    """Return the content of a small file, or None if the file does not exist.

    The call never blocks, even if the path is a fifo.
    """
    try:
        fd = os.open(keep, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.read(fd, 4096) if stat.S_ISREG(os.fstat(fd).st_mode) else b"somebody's"
    finally:
        os.close(fd)


def is_linked(st: os.stat_result) -> bool:
    """Return whether a file is hard-linked elsewhere and so takes no extra space."""
    return st.st_nlink > 1


def is_kept(base: str) -> bool:
    """Return whether a pack must not be repacked.

    A pack linked from the user's repository is not repacked while the user's repository still has the pack. After the
    user's repository has dropped the pack, the pack takes up space of the store, with all of the user's history in it.
    """
    said = read_small_file(f"{base}.keep")
    return said is not None and said.decode("utf-8", "replace") != BORROWED


def remove_packs(folder: str, packs: list[Pack]) -> None:
    """Remove packs whose objects are all in a new pack that is durable and kept.

    No git process removes the new pack, because no git process has listed its name. So nobody needs the old packs any
    more. A reader that has an old pack open can continue reading.
    """
    # A multi-pack-index made by `git multi-pack-index` names the packs that are about to be removed.
    remove_if_there(f"{folder}/multi-pack-index")
    for pack in packs:
        for suffix in (".idx", ".rev", ".pack", ".keep"):  # the index first: a pack without an index does not count
            remove_if_there(pack.base + suffix)
