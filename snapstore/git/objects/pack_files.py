"""The files of a pack on disk: whether it is kept, whether somebody else has it too, and how it goes."""

from __future__ import annotations

import os
import stat

from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_writer import remove

BORROWED = "borrowed from the user's repository\n"  # what the `.keep` file of such a pack says


def what_it_says(keep: str) -> bytes | None:
    """What a small file says; None where there is none. Whatever is in its place, nobody waits at it."""
    try:
        fd = os.open(keep, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.read(fd, 4096) if stat.S_ISREG(os.fstat(fd).st_mode) else b"somebody's"
    finally:
        os.close(fd)


def is_linked(st: os.stat_result) -> bool:
    """Whether a file is somebody else's too: it takes no room of its own."""
    return st.st_nlink > 1


def is_kept(base: str) -> bool:
    """Whether a pack is not to be packed again. What was linked from the user's repository is spared that while it is
    still theirs too; once they have let go of it, it takes room of ours, with all their history in it."""
    said = what_it_says(f"{base}.keep")
    return said is not None and said.decode("utf-8", "replace") != BORROWED


def remove_packs(folder: str, packs: list[Pack]) -> None:
    """Removes packs whose objects are all in a new pack that is durable and kept. No git takes that one away, for no
    git has its name on a list, so nobody needs the old ones any more; readers that have one open go on reading."""
    # A list of somebody's `git multi-pack-index` names the packs that are about to go.
    remove(f"{folder}/multi-pack-index")
    for pack in packs:
        for suffix in (".idx", ".rev", ".pack", ".keep"):  # without its index a pack does not count, so that goes first
            remove(pack.base + suffix)
