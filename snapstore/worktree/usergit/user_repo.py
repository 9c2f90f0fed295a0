"""The location of one of the user's git repositories, as `find_repo` returns it."""

from __future__ import annotations


class UserRepo:
    """One checkout of the user's.

    `git_dir` holds this checkout's HEAD and index. `common_dir` holds refs and objects, which linked worktrees share.
    """

    __slots__ = ("common_dir", "git_dir", "object_format", "partial", "reftable", "top")

    def __init__(self, top: bytes, git_dir: bytes, common_dir: bytes) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.object_format = b"sha1"
        self.partial = False
        self.reftable = False

    @property
    def hash_size(self) -> int:
        return 32 if self.object_format == b"sha256" else 20
