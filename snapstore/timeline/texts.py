"""Text for one line of a terminal, whoever wrote it.

Prompts, paths and names come from anywhere. None of their control characters, escape sequences or direction marks may
reach a terminal: every surface shows them through `safe`.
"""

from __future__ import annotations

import time


def safe(text: str) -> str:
    """Text for one line of a terminal; what could act on it is shown as a visible mark instead."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _mark(c) for c in text)


def safe_lines(text: str) -> list[str]:
    return [safe(line.expandtabs(4)) for line in text.strip("\r\n").replace("\r\n", "\n").split("\n")]


def first_line(text: str) -> str:
    """A prompt on one line."""
    return next((safe(line.strip()) for line in text.split("\n") if line.strip()), "")


def _mark(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "\u2421"
    return " " if character.isspace() else "\ufffd"


# Text of a certain width.


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in ("W", "F") else 1 for c in text)


def clip(text: str, width: int, more: str = "…") -> str:
    """A text in at most so many columns; what is cut off leaves a mark."""
    if len(text) * 2 <= width or cells(text) <= width:
        return text
    room = width - len(more)
    if room < 0:
        return more[: max(width, 0)]
    kept = text[:room]
    while cells(kept) > room:
        kept = kept[: -max(1, (cells(kept) - room) // 2)]
    return kept.rstrip() + more


# Time.


def duration_text(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"


def age(seconds: float, now: float) -> str:
    """How long ago something was; a day, when that is more than a month ago or still to come."""
    passed = now - seconds
    if abs(passed) < 2:
        return "just now"
    if 0 < passed < 86400 * 30:
        return f"{duration_text(passed)} ago"
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
