"""The setting `never_capture`: files never captured, in `.gitignore` syntax.

This setting is stronger than an ignore rule. An ignored file is captured if it is named or tracked, but a file that
matches `never_capture` is not. Such a file stays in the trees as it was last captured, if ever, so that nothing that
happens to the file looks like someone's change.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from snapstore.worktree.ignore.rules import RuleBook


class NeverCapture:
    """The `never_capture` patterns of one store; false if there are none."""

    __slots__ = ("_book", "text")

    def __init__(self, patterns: Iterable[str] = (), text: bytes = b"") -> None:
        self.text = text or b"\n".join(os.fsencode(pattern) for pattern in patterns)
        self._book = RuleBook(b"", [self.text]) if self.text else None

    def __bool__(self) -> bool:
        return self._book is not None

    def matches(self, path: bytes, is_dir: bool = False) -> bool:
        """Return whether a path below the root, or a folder above the path, matches."""
        return self._book is not None and self._book.ignored(path, is_dir)


def never_capture_of(coverage: Mapping[str, object] | None) -> NeverCapture:
    """Return the patterns that the last scan did not capture."""
    text = coverage.get("never") if coverage else None
    return NeverCapture(text=text) if isinstance(text, bytes) else NeverCapture()


def pattern_of(path: bytes) -> str:
    """Return the pattern that matches one path from the root and everything below it."""
    text = "".join(f"\\{c}" if c in "\\*?[" else c for c in os.fsdecode(path))
    return f"/{text[:-1]}\\ " if text.endswith(" ") else f"/{text}"
