"""Patches of what changed, line by line, and counted."""

from __future__ import annotations

from collections import Counter

from snapstore.git.diff_lines import walk
from snapstore.timeline.history import History
from snapstore.timeline.nodes import FileChange


def patched(history: History, changes: list[FileChange]) -> tuple[list[FileChange], list[bytes]]:
    """The changes with their counts, and their patch line by line. Each file is compared once for both."""
    counted: list[FileChange] = []
    lines: list[bytes] = []
    for change in changes:
        sides = history.sides(change)
        if sides is None:
            continue  # on disk only, and gone since
        patch = list(sides.patch())
        lines += patch
        walked = list(walk(patch))
        binary = any(line.is_binary_remark for line in walked)
        kinds = Counter(line.kind for line in walked)
        large = binary and sides.large
        counts = None if binary else (kinds["new"], kinds["old"])
        counted.append(sides.change.compared(counts, large=large, a=sides.old, b=sides.new))
    return counted, lines
