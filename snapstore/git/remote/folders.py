"""Rules for pushing to a repository in a local folder, and making it durable.

Such a folder may come from anybody (an unpacked archive), so programs named by its config or hooks are not run. No
server ensures that a push is still there after a power cut, so snapstore does (test_powercut.py).
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
# The folder's config cannot override settings given on the command line.
_COMMON = ("core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "core.fsmonitor=false")
_DURABLE = ("core.fsync=all", "core.fsyncMethod=fsync", "core.fsyncObjectFiles=true")
_ONE_PACK = ("receive.unpackLimit=1", "transfer.unpackLimit=1")
_PARTS = ("", "objects", "refs", "config", "HEAD")
_UNUSUAL = ("commondir", "reftable", "config.worktree", "shallow")
_SPECIAL = (b"extensions", b"include", b"hiderefs", b"worktree")
_LOOSE, _PACKS = 26, 100  # in one of 256 folders; files, two or three per pack
_DEAD = 10.0  # seconds; git holds a lock for milliseconds


def service(name: str, path: str) -> str:
    """Return the command that serves a folder without running its programs.

    `name` is `upload-pack` or `receive-pack`. The command serves no other folder: the user's `insteadOf` may lead git
    to one that was not checked.
    """
    settings = list(_COMMON)
    if name == "receive-pack":
        settings += [*_DURABLE, *_ONE_PACK, f"receive.autogc={'true' if _needs_upkeep(path) else 'false'}"]
    options = " ".join(f"-c {setting}" for setting in settings)
    other = "echo \"fatal: transport 'folder $1' not allowed\" >&2; exit 1"
    serve = f'test "$1" = {shlex.quote(path)} || {{ {other}; }}; exec git {options} {name} "$1"'
    return f"export GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1; serve() {{ {serve}; }}; serve"


def refuse_missing(path: str, *, push: bool) -> None:
    """Raise Remote if the folder does not exist."""
    if not os.path.isdir(path):
        hint = "Make a repository there with `git init --bare`, or correct" if push else "Correct"
        raise Remote(f"{path} is not a folder", f"{hint} the address.")


def plain_refs(path: str) -> dict[str, bytes] | None:
    """Return the refs of a plain bare repository, or None if git must be asked.

    Plain means as `git init` makes it. Not asking git saves three processes, a fifth of a push of one turn
    (scripts/bench share).
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
        return None  # git may be able to read it


def head(path: str) -> str:
    """Return the ref that the folder's HEAD points to, or an empty string.

    The ref itself need not exist.
    """
    return _symbolic_target(f"{path}/HEAD") or ""


def refuse_in_use(path: str) -> None:
    """Raise Unsafe for a repository that is in use, Remote for one with hooks.

    Turns do not belong among a person's own branches, and a store may change only under its own lock.
    """
    hint = "Use a repository of its own: `git init --bare FOLDER`."
    if os.path.lexists(f"{path}/.git") or _says_checkout(path):
        raise Unsafe(f"{path} is a checkout", hint)
    guard = next((name for name in _GUARDS if os.access(f"{path}/hooks/{name}", os.X_OK)), None)
    if guard is not None:  # running it could do anything; skipping it would defeat its purpose
        raise Remote(
            f"{path} has a {guard} hook, and hooks of a folder are not run",
            "Push through a server (ssh, https, git daemon), or remove the hook.",
        )
    if os.path.exists(f"{os.path.dirname(path)}/state/format") and os.path.basename(path) == "store.git":
        raise Unsafe(f"{path} is a store that is in use", hint)


def redirected_refs(path: str, refs: Iterable[str]) -> dict[str, str]:
    """Return the refs that are links or symbolic refs, with the reason.

    git would follow such a ref.
    """
    found: dict[str, str] = {}
    for ref in refs:
        parts = ref.split("/")
        if any(os.path.islink(f"{path}/{'/'.join(parts[:depth])}") for depth in range(1, len(parts) + 1)):
            found[ref] = "a link is in the way"
        elif (target := _symbolic_target(f"{path}/{ref}")) is not None:
            found[ref] = f"there it is a symbolic ref to {target}"
    return found


def _symbolic_target(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            text = file.read(1024)
    except OSError:
        return None
    return one_line(text[5:].decode("utf-8", "replace")) if text.startswith(b"ref: ") else None


def sync(path: str, moved: Moves) -> None:
    """Make a push durable: git syncs files, but not the folders that name them."""
    found = {"objects/pack", *(os.path.dirname(name) for name in moved)}
    found |= folders_of(name for name, (old, _) in moved.items() if old is None)  # its folders may be new
    if any(new is None for _, new in moved.values()):
        found.add(".")  # the folder of packed-refs
    for folder in sorted(found):
        try:
            sync_folder(f"{path}/{folder}")
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed by a git that packed the last ref in it


def clear_dead_locks(path: str) -> bool:
    """Remove ref locks that a killed git left; return whether there were any."""
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
    """Return whether a push may start `git gc --auto` there.

    gc may start if it would find something to do (by git's own estimate; otherwise two processes are saved), and if the
    config makes gc run no program but git.
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
