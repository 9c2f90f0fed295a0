"""Where one of the user's own git repositories is: what `usergit.find_repo` found out."""

from __future__ import annotations


class UserRepo:
    """`git_dir` is this checkout's own (HEAD, index); linked worktrees share `common_dir` (refs, objects)."""

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
