"""Show the changes to agents' files as a patch."""

from __future__ import annotations

import os
from collections.abc import Iterable

from snapstore.agents.install.safe_files import Change
from snapstore.git.diff.patch import hunks, lines_of


def unified(changes: Iterable[Change]) -> list[bytes]:
    """Return the lines of a unified diff, in the format of `diff -u` and `patch`."""
    lines: list[bytes] = []
    for change in changes:
        name = os.fsencode(change.found.path)
        old = os.devnull.encode() if change.found.data is None else name
        new = os.devnull.encode() if change.after is None else name
        lines.append(b"diff -u %s %s\n" % (old, new))
        found = list(hunks(lines_of(change.found.data or b""), lines_of(change.after or b"")))
        lines += [b"--- %s\n+++ %s\n" % (old, new), *found] if found else []
    return lines
