"""Iterate over the lines of a patch, with their kind and line numbers.

The command line, the terminal tree and the web page only render these lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

Kind = Literal["head", "hunk", "same", "old", "new", "note"]

SIGNS: dict[Kind, str] = {"same": " ", "old": "-", "new": "+", "note": "\\ ", "head": "", "hunk": ""}
_KINDS: dict[bytes, Kind] = {b" ": "same", b"-": "old", b"+": "new", b"\\": "note"}
_HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_BINARY = b"Binary files "


class DiffLine(NamedTuple):
    """One line of a patch, without its sign, with its number before and after."""

    kind: Kind
    text: bytes
    old: int | None = None
    new: int | None = None

    @property
    def is_binary_remark(self) -> bool:
        """Return whether this line replaces content that is not shown line by line."""
        return self.kind == "head" and self.text.startswith(_BINARY)


def walk(patch: Iterable[bytes]) -> Iterator[DiffLine]:
    """Yield the lines of a patch. One item of `patch` may hold several lines."""
    old = new = 0
    inside = False
    for piece in patch:
        for line in piece.removesuffix(b"\n").split(b"\n"):
            hunk = _HUNK.match(line) if line.startswith(b"@@") else None
            if hunk:
                inside, old, new = True, int(hunk[1]), int(hunk[2])
                yield DiffLine("hunk", line)
                continue
            kind = _KINDS.get(line[:1]) if inside else None
            if kind is None:
                inside = False
                yield DiffLine("head", line)
            elif kind == "note":
                yield DiffLine(kind, line[2:])
            else:
                yield DiffLine(kind, line[1:], None if kind == "new" else old, None if kind == "old" else new)
                old += kind != "new"
                new += kind != "old"


def counts(patch: Iterable[bytes]) -> tuple[int, int] | None:
    """Return how many lines the patch of one file adds and removes.

    Returns None if the content is not shown line by line. Only the first byte of each item is examined, since
    `patch.patch` yields one changed line per item.
    """
    added = removed = 0
    inside = False
    for piece in patch:
        first = piece[:1]
        if not inside:
            if piece.startswith(_BINARY):
                return None
            inside = first == b"@"
        elif first == b"+":
            added += 1
        elif first == b"-":
            removed += 1
        elif first == b"d":  # the next file, or the same file removed and added again
            inside = False
    return added, removed
