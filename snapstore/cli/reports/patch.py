"""Print patches: safe coloured lines on a terminal, the exact bytes elsewhere."""

from __future__ import annotations

from snapstore.cli.output import BOLD, CYAN, GREEN, RED, Output, safe
from snapstore.git.diff.patch_lines import SIGNS, Kind, walk

_STYLES: dict[Kind, tuple[str, ...]] = {"head": (BOLD,), "hunk": (CYAN,), "old": (RED,), "new": (GREEN,)}


def print_patch(out: Output, lines: list[bytes]) -> None:
    """Print a patch.

    A pipe gets the exact bytes, so that `snapstore diff | git apply` works. On a terminal no byte of a file may act as
    a control sequence.
    """
    if not out.terminal:
        out.raw(b"".join(lines))
        return
    for kind, text, *_ in walk(lines):
        shown = SIGNS[kind] + text.decode("utf-8", "replace")
        out.line(safe(shown.expandtabs(8)), *_STYLES.get(kind, ()))
