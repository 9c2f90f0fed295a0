"""The files that are never to be taken: `never_capture`, patterns as in `.gitignore`.

Stronger than an ignore rule: an ignored file is taken when it is named or tracked, and one of these is not. It stays in
the trees as it was last taken, if it ever was, so that nothing that happens to it looks like somebody's change.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from snapstore.worktree.ignore.rules import RuleBook


class Never:
    """The patterns of one store. False where there are none."""

    __slots__ = ("_book", "text")

    def __init__(self, patterns: Iterable[str] = (), text: bytes = b"") -> None:
        self.text = text or b"\n".join(os.fsencode(pattern) for pattern in patterns)
        self._book = RuleBook(b"", [self.text]) if self.text else None

    def __bool__(self) -> bool:
        return self._book is not None

    def matches(self, path: bytes, is_dir: bool = False) -> bool:
        """Whether a path below the root, or a folder above it, is one."""
        return self._book is not None and self._book.ignored(path, is_dir)


def never_in(coverage: Mapping[str, object] | None) -> Never:
    """What the last scan was not to take."""
    text = coverage.get("never") if coverage else None
    return Never(text=text) if isinstance(text, bytes) else Never()


def pattern_of(path: bytes) -> str:
    """The pattern that means one path, from the root, and what lies below it."""
    text = "".join(f"\\{c}" if c in "\\*?[" else c for c in os.fsdecode(path))
    return f"/{text[:-1]}\\ " if text.endswith(" ") else f"/{text}"
