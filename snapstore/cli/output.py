"""Terminal output: safe text, sparse colour, one JSON document.

Prompts, paths and messages are untrusted. Their control characters, escape sequences and direction marks must not reach
a terminal: use `safe` for text and `path_text` for paths.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from snapstore.base.text import ago as ago
from snapstore.base.text import and_more
from snapstore.base.text import date_text as date_text
from snapstore.base.text import duration_text as duration_text
from snapstore.base.text import files_text as files_text
from snapstore.base.text import first_line as first_line
from snapstore.base.text import path_text as path_text
from snapstore.base.text import safe as safe
from snapstore.base.text import safe_lines as safe_lines
from snapstore.base.text import seconds_of as seconds_of
from snapstore.base.text import shorten as shorten
from snapstore.base.text import size_text as size_text
from snapstore.errors import Failed
from snapstore.surface.describe import change_text
from snapstore.timeline.history.nodes import FileChange

DIM, RED, GREEN, YELLOW, CYAN, BOLD = "2", "31", "32", "33", "36", "1"
LISTED = 12  # paths named before "… and N more"


# Replacements for terminals that can show only ASCII.
_PLAIN = str.maketrans({"✓": "*", "·": "-", "…": "...", "–": "-", "⑂": "Y", "◆": "*", "→": "->", "│": "|"})


UNWRITTEN = "the output could not be written: "


class OutputFailed(Failed):
    """Standard output could not be written, so the user did not see the result.

    The command may or may not have succeeded.
    """

    hint = "The command may have succeeded: check with `snapstore status` before you repeat it."


class Output:
    """Standard output or standard error, coloured on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.program = "snapstore"  # the start of each command printed for the user to type
        self.terminal = stream.isatty()
        self.colour = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if hasattr(stream, "reconfigure"):  # an encoding that lacks a character must not lose the line
            stream.reconfigure(errors="backslashreplace")
        self._plain = not _can_show(stream)

    def paint(self, text: str, *styles: str) -> str:
        return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if self.colour and text and styles else text

    def line(self, text: str = "", *styles: str) -> None:
        painted = self.paint(text, *styles) + "\n"
        with reporting_write_errors():
            self._stream.write(painted.translate(_PLAIN) if self._plain else painted)

    def rest(self, total: int, shown: int = LISTED, *, indent: str = "  ", after: str = "") -> None:
        """Print how many more items there are; `after` says where to see them."""
        if total > shown:
            self.line(indent + and_more(total, shown) + after, DIM)

    def ask(self, text: str) -> None:
        """Print a question and leave the terminal's cursor on its line."""
        with reporting_write_errors():
            self._stream.write(text)
            self._stream.flush()

    def raw(self, data: bytes) -> None:
        with reporting_write_errors():
            self._stream.flush()
            left = memoryview(data)
            while left:  # with PYTHONUNBUFFERED a write may be partial
                left = left[self._stream.buffer.write(left) or 0 :]

    def document(self, data: dict[str, Any]) -> None:
        """Print a JSON document in ASCII.

        A path that is not UTF-8 holds lone surrogates, which no encoding accepts.
        """
        with reporting_write_errors():
            self._stream.write(json.dumps(data, indent=2 if self.terminal else None) + "\n")

    def flush(self) -> None:
        with reporting_write_errors():
            self._stream.flush()

    def size(self) -> tuple[int, int]:
        """Return the terminal's columns and lines."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return size.columns, size.lines


@contextmanager
def reporting_write_errors() -> Iterator[None]:
    """Turn a failed write to a stream into `OutputFailed`.

    Every write uses this context manager, because a failed write does not mean that the command failed.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"{UNWRITTEN}{error.strerror or error}") from error


def _can_show(stream: TextIO) -> bool:
    try:
        "✓·…".encode(stream.encoding or "utf-8")
    except (UnicodeError, LookupError, AttributeError):
        return False
    return True


def file_rows(out: Output, changes: Sequence[FileChange], indent: str, limit: int | None = None) -> Iterable[str]:
    """Yield aligned rows like `M  src/a.py  +3 -1`, with counts where known."""
    shown = changes if limit is None or len(changes) <= limit else changes[:limit]
    names = [change_text(change) for change in shown]
    width = min(max((len(name) for name in names), default=0), 60)
    colours = {"A": GREEN, "D": RED}
    for name, change in zip(names, shown, strict=True):
        counts = "too large to compare" if change.large else "binary" if change.binary else ""
        if change.added is not None and change.removed is not None:
            counts = " ".join(
                out.paint(f"{sign}{number}", colour)
                for sign, number, colour in (("+", change.added, GREEN), ("-", change.removed, RED))
                if number
            )
        letter = out.paint(change.change, colours.get(change.change, YELLOW))
        yield f"{indent}{letter}  {name.ljust(width) + '  ' + counts if counts else name}"
    if len(shown) < len(changes):
        yield out.paint(indent + and_more(len(changes), len(shown)), DIM)
