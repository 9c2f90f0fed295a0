"""Names that must not be captured or written. What they are is known to git/, which refuses them at the door too."""

from __future__ import annotations

from snapstore.git.names import GIT_BEGINNINGS, is_git, unsafe_parts

__all__ = ["GIT_BEGINNINGS", "is_git", "unsafe_parts"]
