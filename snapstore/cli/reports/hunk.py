"""Print one hunk of a plan."""

from __future__ import annotations

from snapstore.cli.output import CYAN, GREEN, RED, Output, safe
from snapstore.timeline.moves.hunks import Hunk

_COLOURS = {b"-": RED, b"+": GREEN}


def show_hunk(out: Output, hunk: Hunk) -> None:
    """Print a hunk as in a patch, or what becomes of a file without lines to show."""
    lines = hunk.patch()
    if not lines:
        out.line(f"  {_whole(hunk)}", CYAN)
        return
    new = sum(line[:1] != b"-" for line in lines)
    out.line(f"@@ -{hunk.start + 1},{hunk.end - hunk.start} +{hunk.start + 1},{new} @@", CYAN)
    for line in lines:
        out.line(safe(line.decode("utf-8", "replace").rstrip("\n").expandtabs(8)), *_styles(line))


def _styles(line: bytes) -> tuple[str, ...]:
    return (_COLOURS[line[:1]],) if line[:1] in _COLOURS else ()


def _whole(hunk: Hunk) -> str:
    if hunk.move.result is None:
        return "the whole file is removed"
    return "the whole file is created" if hunk.move.found is None else "the whole file is replaced"
