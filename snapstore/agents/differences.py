"""What would change in files of agents, as a patch."""

from __future__ import annotations

import os
from difflib import diff_bytes, unified_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.agents.placing import Change


def unified(changes: Iterable[Change]) -> list[bytes]:
    """Line by line, as `diff -u` and `patch` have it."""
    lines: list[bytes] = []
    for change in changes:
        name = os.fsencode(change.found.path)
        old = os.devnull.encode() if change.found.data is None else name
        new = os.devnull.encode() if change.after is None else name
        lines.append(b"diff -u %s %s\n" % (old, new))
        before, after = (data.splitlines(keepends=True) for data in (change.found.data or b"", change.after or b""))
        for line in diff_bytes(unified_diff, before, after, old, new):
            lines.append(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n")
    return lines
