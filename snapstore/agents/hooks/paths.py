"""The files that an agent names, as the store wants them."""

from __future__ import annotations

import os

from snapstore.errors import Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.api import Session

OUTSIDE = "outside the root"
_MOST_OUTSIDE = 100  # names kept of files that cannot be taken back
_LONGEST = 4096


def full_paths(paths: Iterable[str], base: str) -> list[str]:
    """Each with the folders above it; of a link also the file that is written through it."""
    found = []
    for path in paths:
        if "\0" not in path:
            full = os.path.join(base, os.path.expanduser(path) if path.startswith("~/") else path)
            found += [full, os.path.realpath(full)] if os.path.islink(full) else [full]
    return found


def sort_paths(session: Session, paths: Iterable[str], base: str) -> tuple[list[str], dict[str, str]]:
    """Files of the root, and others. Those cannot be taken back, and the turn says so."""
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
