"""Text that is safe on one line of a terminal: prompts, paths, counts, sizes and times.

Prompts, paths and names come from untrusted sources. None of their control characters, escape sequences or direction
marks may reach a terminal, so every surface passes such text through `safe`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

_FIRST_SECOND = -62_135_596_800  # the year 1; some file systems hold earlier times
_LAST_SECOND = 253_402_300_799  # the year 9999; a commit may claim any time


def safe(text: str) -> str:
    """Return text for one terminal line, with control characters as visible marks."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _mark(c) for c in text)


def safe_lines(text: str) -> list[str]:
    return [safe(line.expandtabs(4)) for line in text.strip("\r\n").replace("\r\n", "\n").split("\n")]


def first_line(text: str) -> str:
    """Return the first non-empty line of a prompt, safe for a terminal."""
    return next((safe(line.strip()) for line in text.split("\n") if line.strip()), "")


def one_line(text: str) -> str:
    """Return text without control characters, escape sequences or direction marks.

    The result is safe in a terminal and in a header.
    """
    kept = "".join(c if c.isprintable() else " " for c in text)
    return kept.encode("utf-8", "replace").decode("utf-8").strip()


def path_text(path: str | bytes) -> str:
    return quote(os.fsencode(path))


def quote(path: bytes) -> str:
    """Return a path on one terminal line, C-quoted as git does where necessary."""
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and not any(c in text for c in '"\\') and text == text.strip() and text:
        return text
    special = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
    out = []
    for byte in path:
        if byte in special:
            out.append("\\" + special[byte])
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def _mark(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "\u2421"
    return " " if character.isspace() else "\ufffd"


# Text width.


def cells(text: str) -> int:
    """Return how many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # the terminal tree draws with rich: measure text the way it is drawn

    return cell_len(text)


def clip(text: str, width: int, more: str = "…") -> str:
    """Return the text in at most `width` columns, with `more` where it was cut."""
    if len(text) * 2 <= width or cells(text) <= width:
        return text
    room = width - len(more)
    if room < 0:
        return more[: max(width, 0)]
    kept = text[:room]
    while cells(kept) > room:
        kept = kept[: -max(1, (cells(kept) - room) // 2)]
    return kept.rstrip() + more


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


# Numbers.


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as "1 branch" or "1,200 branches"."""
    return f"1 {one}" if number == 1 else f"{number:,} {many or one + 's'}"


def files_text(number: int) -> str:
    return counted(number, "file")


def turns_text(number: int) -> str:
    return counted(number, "turn")


def and_more(total: int, shown: int) -> str:
    """Return "… and 12 more", or an empty text if all are shown."""
    return f"… and {total - shown:,} more" if total > shown else ""


def listed(names: Sequence[str], most: int) -> str:
    """Return names in one line, such as "a, b and 12 more"."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def size_text(size: int) -> str:
    if size < 1000:
        return "1 byte" if size == 1 else f"{size} bytes"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


# Time.


def duration_text(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"


def age(seconds: float, now: float) -> str:
    """Return how long ago a moment was; a date after 30 days or if in the future."""
    passed = now - seconds
    if abs(passed) < 2:
        return "just now"
    if 0 < passed < 86400 * 30:
        return f"{duration_text(passed)} ago"
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def ago(stamp: str, now: float) -> str:
    moment = seconds_of(stamp)
    return safe(stamp) if moment is None else age(moment, now)


def date_text(stamp: str) -> str:
    moment = seconds_of(stamp)
    return safe(stamp) if moment is None else time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(moment))


def seconds_of(stamp: str) -> float | None:
    """Return the time of a record's time stamp, or None if the stamp is malformed."""
    from datetime import datetime

    try:
        whole, _, rest = stamp.partition(".")
        moment = datetime.fromisoformat(f"{whole.rstrip('Z')}+00:00").timestamp()
        return moment + float("0." + (rest.rstrip("Z") or "0"))
    except (ValueError, OverflowError):
        return None


def timestamp(seconds: float) -> str:
    """Format a time in UTC, to the millisecond."""
    seconds = min(max(seconds, _FIRST_SECOND), _LAST_SECOND)
    whole = int(seconds // 1)
    year, *rest = time.gmtime(whole)[:6]
    return "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}".format(year, *rest) + f".{int((seconds - whole) * 1000):03d}Z"
