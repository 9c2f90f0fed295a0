"""The policy that decides whether a path may be captured or written, and if not, why.

Everything that captures or writes asks this policy: hooks and commands, scans, moves, edits of one file, imports.
Ignore rules and `max_file_size` are not part of the policy. They only tell a scan which unnamed files to leave out; a
file that an agent names is captured all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from snapstore.base.paths import LONGEST_PATH, has_unsafe_part
from snapstore.worktree.ignore.never_capture import NeverCapture

UNSAFE = "not a path that may be written"
STORE = "a file of snapstore's own"
OTHERS = "a file that only another program writes"
NEVER = "never captured, as never_capture says"
EXCLUDED = (OTHERS, NEVER)


class CapturePolicy:
    """The policy for the paths of one root.

    `store` is the folder of the stores if it lies below the root, as when the root is the home folder (G-09). `others`
    are patterns of files that only other programs write, and `never_capture` those of the setting of that name. A `!`
    pattern in one list cannot re-include what the other list excludes.
    """

    def __init__(
        self,
        root: bytes,
        *,
        store: bytes | None = None,
        others: Sequence[str] = (),
        never_capture: Sequence[str] = (),
    ) -> None:
        self.store = store
        self.never_capture = list(never_capture)
        self._room = LONGEST_PATH - len(root.rstrip(b"/")) - 1
        self._others = NeverCapture(others)
        self._never = NeverCapture(never_capture)
        self.text = b"\n".join(patterns.text for patterns in (self._others, self._never) if patterns)

    def why_not(self, path: bytes, is_dir: bool = False) -> str | None:
        """Return why a path may be neither captured nor written, None if it may be both."""
        if self.is_unsafe(path):
            return STORE if self.is_store(path) else UNSAFE
        return self.excluded(path, is_dir)

    def is_unsafe(self, path: bytes) -> bool:
        """Return whether a path leads out of the root, into `.git` or into the stores."""
        return has_unsafe_part(path) or len(path) > self._room or self.is_store(path)

    def is_store(self, path: bytes) -> bool:
        """Return whether a path is the folder of the stores or lies below it."""
        return self.store is not None and (path + b"/").startswith(self.store + b"/")

    @property
    def excludes(self) -> bool:
        """Return whether there are any patterns."""
        return bool(self.text)

    def excluded(self, path: bytes, is_dir: bool = False) -> str | None:
        """Return why a safe path is never captured, or None if it may be captured.

        Excluded files stay unchanged, on disk and in the trees that hold them.
        """
        if self._others and self._others.matches(path, is_dir):
            return OTHERS
        return NEVER if self._never and self._never.matches(path, is_dir) else None

    def is_others(self, path: bytes) -> bool:
        """Return whether only another program writes a file, which need not be reported."""
        return self._others.matches(path)

    def is_never_captured(self, path: bytes) -> bool:
        """Return whether the setting `never_capture` names a file."""
        return self._never.matches(path)
