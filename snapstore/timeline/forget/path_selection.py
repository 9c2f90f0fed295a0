"""The paths to forget, by name and by pattern."""

from __future__ import annotations

import os
from collections.abc import Iterable

from snapstore.base.text import quote
from snapstore.errors import Usage
from snapstore.worktree.ignore.never_capture import NeverCapture, pattern_of


class PathSelection:
    """Files and folders given by name, and patterns."""

    def __init__(self, names: Iterable[bytes], patterns: Iterable[str]) -> None:
        self.names = list(names)
        self._exact = set(self.names)
        self._patterns = list(patterns)
        self._never = NeverCapture(self._patterns)

    def matches(self, path: bytes, is_dir: bool = False) -> bool:
        if self._exact:
            at = len(path)
            while at > 0:
                if path[:at] in self._exact:
                    return True
                at = path.rfind(b"/", 0, at)
        return self._never.matches(path, is_dir)

    def spelled(self) -> list[str]:
        """Return the selection as patterns for `never_capture`."""
        return [*(pattern_of(name) for name in self.names), *self._patterns]

    def new_patterns(self, known: list[str]) -> list[str]:
        """Return the patterns to add to `never_capture`.

        Refuse an unprintable name, because `never_capture` consists of lines of text.
        """
        for name in self.names:
            if not os.fsdecode(name).isprintable():
                raise Usage(
                    f"{quote(name)} cannot be written into never_capture, so the next turn would record it again",
                    "Forget its folder or a pattern, rename the file, or remove the file and add `--recapture`.",
                )
        return [pattern for pattern in dict.fromkeys(self.spelled()) if pattern not in known]

    def __str__(self) -> str:
        return " or ".join([*(quote(name) for name in self.names), *self._patterns])
