"""The setting `never_capture`: patterns of files that are never captured, in `.gitignore` syntax.

This setting is stronger than an ignore rule: an ignored file is captured if an agent names the file or git tracks it,
but a file that matches `never_capture` is not. Trees keep such a file as it was last captured, if ever, so that no
later edit of the file counts as a change.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from snapstore.worktree.ignore.rules import RuleBook


class NeverCapture:
    """The `never_capture` patterns of one store; falsy if there are none."""

    __slots__ = ("_book", "text")

    def __init__(self, patterns: Iterable[str] = (), text: bytes = b"") -> None:
        self.text = text or b"\n".join(os.fsencode(pattern) for pattern in patterns)
        self._book = RuleBook(b"", [self.text]) if self.text else None

    def __bool__(self) -> bool:
        return self._book is not None

    def matches(self, path: bytes, is_dir: bool = False) -> bool:
        """Return whether a path relative to the root, or a folder above it, matches."""
        return self._book is not None and self._book.ignored(path, is_dir)


def never_capture_of(coverage: Mapping[str, object] | None) -> NeverCapture:
    """Return the patterns that were in force at the last scan."""
    text = coverage.get("never") if coverage else None
    return NeverCapture(text=text) if isinstance(text, bytes) else NeverCapture()


def pattern_of(path: bytes) -> str:
    """Return the pattern that matches exactly one path and everything below it."""
    text = "".join(f"\\{c}" if c in "\\*?[" else c for c in os.fsdecode(path))
    return f"/{text[:-1]}\\ " if text.endswith(" ") else f"/{text}"
