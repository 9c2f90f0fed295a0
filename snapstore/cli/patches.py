"""Patches for people: safe coloured lines, or into a pipe the exact bytes."""

from __future__ import annotations

from snapstore.cli.output import BOLD, CYAN, GREEN, RED, Output, safe


def print_patch(out: Output, lines: list[bytes]) -> None:
    """Into a pipe the exact bytes, so that `snapstore diff | git apply` works. On a terminal no byte of a file may act
    on it."""
    if not out.terminal:
        for line in lines:
            out.raw(line)
        return
    inside = False
    for line in lines:
        if line.startswith((b"@@", b"diff ")):
            inside = line.startswith(b"@@")
        for part in line.decode("utf-8", "replace").removesuffix("\n").split("\n"):
            styles = {"+": (GREEN,), "-": (RED,), "@": (CYAN,)}.get(part[:1], ()) if inside else (BOLD,)
            out.line(safe(part.expandtabs(8)), *styles)
