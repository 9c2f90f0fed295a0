"""Patches of changes, with line counts."""

from __future__ import annotations

from snapstore.git.diff.patch_lines import counts
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange


def patched(history: History, changes: list[FileChange]) -> tuple[list[FileChange], list[bytes]]:
    """Return the changes with line counts, and their patch as lines.

    Each file is compared once for both.
    """
    counted: list[FileChange] = []
    lines: list[bytes] = []
    for change in changes:
        sides = history.sides(change)
        if sides is None:
            continue  # on disk only, and gone since
        patch = list(sides.patch())
        lines += patch
        found = counts(patch)
        counted.append(sides.change.compared(found, large=found is None and sides.large, a=sides.old, b=sides.new))
    return counted, lines
