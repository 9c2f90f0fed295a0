"""Patches of what changed, line by line, and counted."""

from __future__ import annotations

from snapstore.timeline.nodes import FileChange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.timeline.history import History


def patched(history: History, changes: list[FileChange]) -> tuple[list[FileChange], list[bytes]]:
    """The changes with their counts, and their patch line by line. Each file is compared once for both."""
    counted: list[FileChange] = []
    lines: list[bytes] = []
    for change in changes:
        added = removed = 0
        binary = inside = False
        sides = history.sides(change)
        if sides is None:
            continue  # on disk only, and gone since
        for line in sides.patch():
            lines.append(line)
            if line.startswith((b"@@", b"diff ")):
                inside = line.startswith(b"@@")
            elif line.startswith(b"Binary files "):
                binary = True
            elif inside:
                added += line.startswith(b"+")
                removed += line.startswith(b"-")
        large = binary and sides.large
        counts = (None, None, not large, large) if binary else (added, removed)
        found = sides.change
        counted.append(FileChange(found.path, found.change, found.old, found.new, *counts))
    return counted, lines
