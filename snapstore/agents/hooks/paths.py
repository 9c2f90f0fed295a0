"""Convert the file paths an agent reports to the form the store expects."""

from __future__ import annotations

import os

from snapstore.errors import Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.api import Session

OUTSIDE = "outside the root"
_MOST_OUTSIDE = 100  # number of paths kept for files that cannot be undone
_LONGEST = 4096


def full_paths(paths: Iterable[str], base: str) -> list[str]:
    """Return each path as a full path, plus the target of each symbolic link.

    A write through a link changes the target.
    """
    found = []
    for path in paths:
        if "\0" not in path:
            full = os.path.join(base, os.path.expanduser(path) if path.startswith("~/") else path)
            found += [full, os.path.realpath(full)] if os.path.islink(full) else [full]
    return found


def sort_paths(session: Session, paths: Iterable[str], base: str) -> tuple[list[str], dict[str, str]]:
    """Split paths into those inside the root and those outside.

    Files outside the root cannot be undone, so the turn lists them.
    """
    inside: list[str] = []
    outside: dict[str, str] = {}
    for path in full_paths(paths, base):
        try:
            session.inside(path)
            inside.append(path)
        except Unsafe:
            if len(outside) < _MOST_OUTSIDE:
                outside[path[:_LONGEST]] = OUTSIDE
    return inside, outside
