"""Find what users made in the store with git: work trees, a detached HEAD.

The store is an ordinary repository, so users may work in it with git. Snapstore must not lose that work.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable

from snapstore.errors import Busy
from snapstore.git.reflog import files_below
from snapstore.worktree.usergit.index import IndexUnreadable, read_index

_LARGEST = 1 << 20


def work_trees(git_dir: str) -> list[str]:
    """Return git's folders of work trees in the store, removed work trees included."""
    try:
        return sorted(entry.path for entry in os.scandir(f"{git_dir}/worktrees") if entry.is_dir())
    except FileNotFoundError:
        return []


def heads(git_dir: str) -> set[bytes]:
    """Return the ids in HEAD, ORIG_HEAD and the like, of the store and its work trees."""
    found: set[bytes] = set()
    for folder in (git_dir, *work_trees(git_dir)):
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue  # a work tree that was just removed
        for name in names:
            if name.endswith("HEAD"):
                found.update(_ids_in(f"{folder}/{name}"))
    return found


def staged(git_dir: str) -> set[bytes]:
    """Return the ids in the indexes of the store and work trees, and in their refs."""
    found: set[bytes] = set()
    for folder in (git_dir, *work_trees(git_dir)):
        path = f"{folder}/index"
        if os.path.isfile(path):
            try:
                found.update(head[40:60] for head in read_index(os.fsencode(path)).entries.values())
            except (IndexUnreadable, FileNotFoundError):
                continue  # git cannot read it either, or it was just removed
    for folder in work_trees(git_dir):
        for path in files_below(f"{folder}/refs"):
            found.update(_ids_in(path))
    return found


def _ids_in(path: str) -> list[bytes]:
    """Return the ids in a small file; none if the file was just removed.

    Git removes such a file together with its work tree. Anything but a regular file does not come from git, and opening
    it must not block.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return []
        with open(path, "rb") as file:
            return list(_ids(file.read(_LARGEST).splitlines()))
    except FileNotFoundError:
        return []


def _ids(lines: Iterable[bytes]) -> Iterable[bytes]:
    for line in lines:
        try:
            oid = bytes.fromhex(line[:40].decode("ascii"))
        except ValueError:
            continue  # the line names a ref
        if len(oid) == 20:
            yield oid


def refuse_work_trees(git_dir: str) -> None:
    """Raise Busy if somebody works in the store with git.

    Staged files, a rebase in progress and reflogs hold only ids. Rewriting history would remove their objects.
    """
    program = f"git --git-dir {shlex.quote(git_dir)} worktree"
    for folder in work_trees(git_dir):
        path = _place(folder)
        if os.path.exists(path):
            raise Busy(
                f"git has a work tree of this store in {path}; its staged files and commits without a branch would be "
                "lost",
                f"Nothing was forgotten. Commit on a branch there what you want to keep (`git switch -c NAME`), then "
                f"run `{program} remove {shlex.quote(path)}`.",
                work_tree=path,
            )
        raise Busy(
            f"git still has data of the work tree {path}, which no longer exists",
            f"Nothing was forgotten. `{program} prune` removes that data.",
            work_tree=path,
        )
    if os.path.lexists(f"{git_dir}/index"):
        raise Busy(
            f"somebody staged files in the store with git ({git_dir}/index), and they would be lost",
            "Nothing was forgotten. Commit what you want to keep, then remove that file.",
        )


def _place(folder: str) -> str:
    """Return the path of a work tree from git's record, or its name if unreadable."""
    try:
        with open(f"{folder}/gitdir", "rb") as file:
            link = os.fsdecode(file.read().rstrip(b"\n"))
    except OSError:
        link = ""
    return os.path.dirname(os.path.normpath(os.path.join(folder, link))) if link else os.path.basename(folder)
