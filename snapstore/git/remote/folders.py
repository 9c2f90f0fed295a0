"""Repositories in folders of this machine: whom a push must not disturb, and what makes it last.

Such a folder may be anybody's (an unpacked archive): what its configuration or hooks would run is not run. And nobody
but us sees to it that what a push reported is still there after a power cut (test_powercut.py).
"""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Iterable

from snapstore.base.files import sync_folder
from snapstore.base.text import one_line
from snapstore.errors import Remote, SnapstoreError, Unsafe
from snapstore.git.maintenance.running_git import git_at_work
from snapstore.git.refs import Refs, folders_of
from snapstore.git.remote.connection import Moves, is_ref

_GUARDS = ("pre-receive", "update", "proc-receive", "reference-transaction")
# A folder's configuration cannot override what is given on the command line.
_COMMON = ("core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "core.fsmonitor=false")
_DURABLE = ("core.fsync=all", "core.fsyncMethod=fsync", "core.fsyncObjectFiles=true")
_ONE_PACK = ("receive.unpackLimit=1", "transfer.unpackLimit=1")
_PARTS = ("", "objects", "refs", "config", "HEAD")
_UNUSUAL = ("commondir", "reftable", "config.worktree", "shallow")
_SPECIAL = (b"extensions", b"include", b"hiderefs", b"worktree")
_LOOSE, _PACKS = 26, 100  # in one of 256 folders; files, two or three per pack
_DEAD = 10.0  # seconds; git holds a lock for milliseconds


def service(name: str, path: str) -> str:
    """Return the command that serves a folder: `upload-pack` or `receive-pack`, with nothing of the folder's run.

    It serves no other folder: the user's `insteadOf` may lead git to one that nobody has looked at.
    """
    settings = list(_COMMON)
    if name == "receive-pack":
        settings += [*_DURABLE, *_ONE_PACK, f"receive.autogc={'true' if _needs_upkeep(path) else 'false'}"]
    options = " ".join(f"-c {setting}" for setting in settings)
    other = "echo \"fatal: transport 'folder $1' not allowed\" >&2; exit 1"
    serve = f'test "$1" = {shlex.quote(path)} || {{ {other}; }}; exec git {options} {name} "$1"'
    return f"export GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1; serve() {{ {serve}; }}; serve"


def refuse_missing(path: str, *, push: bool) -> None:
    """Raise Remote where there is no folder at all."""
    if not os.path.isdir(path):
        hint = "Make a repository there with `git init --bare`, or correct" if push else "Correct"
        raise Remote(f"{path} is not a folder", f"{hint} the address.")


def plain_refs(path: str) -> dict[str, bytes] | None:
    """Return the refs of a folder that is a bare repository as `git init` makes it; None where git must be asked.

    Three processes less: a fifth of a push of one turn (scripts/bench share).
    """
    try:
        for name in _PARTS:
            st = os.lstat(f"{path}/{name}")
            if st.st_uid != os.geteuid() or stat.S_ISLNK(st.st_mode):
                return None
        if any(os.path.lexists(f"{path}/{name}") for name in _UNUSUAL):
            return None
        with open(f"{path}/config", "rb") as file:
            text = file.read(1 << 16).lower()
        if any(word in text for word in _SPECIAL):
            return None
        return {name: oid for name, oid in Refs(path).list("refs/").items() if is_ref(name)}
    except (SnapstoreError, OSError):
        return None  # git may know what to make of it


def head(path: str) -> str:
    """Return the ref that the folder's HEAD stands for, whether that exists or not; empty where it stands for none."""
    return _stands_for(f"{path}/HEAD") or ""


def refuse_in_use(path: str) -> None:
    """Raise Unsafe for a repository that somebody works in, Remote for one that hooks guard.

    Turns do not belong among a person's own branches, and what a store holds changes under its own lock only.
    """
    hint = "Use a repository of its own: `git init --bare FOLDER`."
    if os.path.lexists(f"{path}/.git") or _says_checkout(path):
        raise Unsafe(f"{path} is a checkout", hint)
    guard = next((name for name in _GUARDS if os.access(f"{path}/hooks/{name}", os.X_OK)), None)
    if guard is not None:  # run, it could do anything; passed by, it guards nothing
        raise Remote(
            f"{path} has a {guard} hook, and hooks of a folder are not run",
            "Push to it by way of a server (ssh, https, git daemon), or take the hook away.",
        )
    if os.path.exists(f"{os.path.dirname(path)}/state/format") and os.path.basename(path) == "store.git":
        raise Unsafe(f"{path} is a store that is in use", hint)


def in_the_way(path: str, refs: Iterable[str]) -> dict[str, str]:
    """Return the refs that lead elsewhere in the folder, with what they are: git would follow them."""
    found: dict[str, str] = {}
    for ref in refs:
        parts = ref.split("/")
        if any(os.path.islink(f"{path}/{'/'.join(parts[:depth])}") for depth in range(1, len(parts) + 1)):
            found[ref] = "a link is in the way"
        elif (target := _stands_for(f"{path}/{ref}")) is not None:
            found[ref] = f"there it stands for another ref, {target}"
    return found


def _stands_for(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            text = file.read(1024)
    except OSError:
        return None
    return one_line(text[5:].decode("utf-8", "replace")) if text.startswith(b"ref: ") else None


def sync(path: str, moved: Moves) -> None:
    """Make durable what a push has moved: git syncs files, but not the folders that name them."""
    found = {"objects/pack", *(os.path.dirname(name) for name in moved)}
    found |= folders_of(name for name, (old, _) in moved.items() if old is None)  # its folders may be new
    if any(new is None for _, new in moved.values()):
        found.add(".")  # where packed-refs is
    for folder in sorted(found):
        try:
            sync_folder(f"{path}/{folder}")
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed by a git that packed the last ref in it


def clear_dead_locks(path: str) -> bool:
    """Remove lock files of refs that a killed git left; say whether there were any."""
    found = [f"{path}/packed-refs.lock", f"{path}/HEAD.lock"]
    for folder, _, names in os.walk(f"{path}/refs"):
        found += [f"{folder}/{name}" for name in names if name.endswith(".lock")]
    dead = [lock for lock in found if _is_dead(lock)]
    if not dead or git_at_work(path) is not None:
        return False
    for lock in dead:
        os.unlink(lock)
    return True


def _is_dead(lock: str) -> bool:
    try:
        return time.time() - os.stat(lock).st_mtime > _DEAD
    except FileNotFoundError:
        return False


def _says_checkout(path: str) -> bool:
    try:
        with open(f"{path}/config", "rb") as file:
            lines = file.read(1 << 16).lower().split(b"\n")
    except OSError:
        return False
    return any(line.replace(b" ", b"").strip() == b"bare=false" for line in lines)


def _needs_upkeep(path: str) -> bool:
    """Whether a push may start `git gc --auto` there.

    It may where gc would find something to do (by git's own estimate; two processes less where not), and where the
    configuration makes it run no program but git.
    """
    try:
        loose = os.listdir(f"{path}/objects/17") if os.path.isdir(f"{path}/objects/17") else []
        packs = os.listdir(f"{path}/objects/pack")
        if len(loose) <= _LOOSE and len(packs) <= _PACKS:
            return False
        with open(f"{path}/config", "rb") as file:
            text = file.read(1 << 20).lower()
    except OSError:
        return False
    return b"hook" not in text and b"[include" not in text
