"""What people made in the store with git: work trees, a detached HEAD.

They may: the store is an ordinary repository. Nothing here is of our making, so nothing of it is ours to lose.
"""

from __future__ import annotations

import os
import shlex
import stat

from snapstore.errors import Busy
from snapstore.git.reflog import files_below
from snapstore.worktree.usergit.index import IndexUnreadable, read_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST = 1 << 20


def work_trees(git_dir: str) -> list[str]:
    """The folders that git keeps in the store for work trees, also for those that are gone."""
    try:
        return sorted(entry.path for entry in os.scandir(f"{git_dir}/worktrees") if entry.is_dir())
    except FileNotFoundError:
        return []


def heads(git_dir: str) -> set[bytes]:
    """What HEAD and its like say, of work trees too."""
    found: set[bytes] = set()
    for folder in (git_dir, *work_trees(git_dir)):
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue  # a work tree that was removed just now
        for name in names:
            if name.endswith("HEAD"):
                found.update(_ids_in(f"{folder}/{name}"))
    return found


def staged(git_dir: str) -> set[bytes]:
    """What is in git's index, of work trees too, and in the refs that each of those has for itself."""
    found: set[bytes] = set()
    for folder in (git_dir, *work_trees(git_dir)):
        path = f"{folder}/index"
        if os.path.isfile(path):
            try:
                found.update(head[40:60] for head in read_index(os.fsencode(path)).entries.values())
            except (IndexUnreadable, FileNotFoundError):
                continue  # nor can git go on with it; or it was removed just now
    for folder in work_trees(git_dir):
        for path in files_below(f"{folder}/refs"):
            found.update(_ids_in(path))
    return found


def _ids_in(path: str) -> list[bytes]:
    """The ids in a small file. None where it went away just now: somebody removed a work tree, and with it what this
    held. Whatever else is called so is none of git's, and nobody waits at it."""
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
            continue  # it names a ref
        if len(oid) == 20:
            yield oid


def refuse_work_trees(git_dir: str) -> None:
    """Raises Busy where somebody works in the store with git. Of what is staged, of a rebase half done and of reflogs
    only the ids are known there: whoever makes history anew takes the objects from under it."""
    program = f"git --git-dir {shlex.quote(git_dir)} worktree"
    for folder in work_trees(git_dir):
        path = _place(folder)
        if os.path.exists(path):
            raise Busy(
                f"git has a work tree of this store in {path}, and what is staged or only there would be lost",
                f"Nothing was forgotten. Commit there what is to stay, give it a branch (`git switch -c NAME`), then "
                f"`{program} remove {shlex.quote(path)}`.",
                work_tree=path,
            )
        raise Busy(
            f"git keeps what belonged to a work tree in {path}, which is gone",
            f"Nothing was forgotten. `{program} prune` removes that.",
            work_tree=path,
        )
    if os.path.lexists(f"{git_dir}/index"):
        raise Busy(
            f"somebody staged files in the store with git ({git_dir}/index), and they would be lost",
            "Nothing was forgotten. Commit what is to stay, then remove that file.",
        )


def _place(folder: str) -> str:
    """Where a work tree is, by what git keeps of it; its name where that cannot be read."""
    try:
        with open(f"{folder}/gitdir", "rb") as file:
            said = os.fsdecode(file.read().rstrip(b"\n"))
    except OSError:
        said = ""
    return os.path.dirname(os.path.normpath(os.path.join(folder, said))) if said else os.path.basename(folder)
