"""The location and state of the user's own git repository.

This module only reads and runs no program. It ignores GIT_* variables, because an agent's shell may have set them for
another repository. A broken repository raises no error: unreadable parts are None or absent.
"""

from __future__ import annotations

import hashlib
import os
import stat

from snapstore.worktree.usergit.config import parse_config, read_text, truthy
from snapstore.worktree.usergit.index import IndexUnreadable, entries_digest, read_regular
from snapstore.worktree.usergit.user_repo import UserRepo

MANY_BRANCHES = 1000
SMALL = 1 << 16  # limit for HEAD, a loose ref, a .git file


def find_repo(folder: bytes) -> UserRepo | None:
    """Return the checkout that git would use in `folder`, symlinks resolved.

    Like git, the search stays on one file system.
    """
    try:
        start = here = os.path.realpath(folder)
        device = os.stat(here).st_dev
        while True:
            dot_git = os.path.join(here, b".git")
            kind = _kind(dot_git)
            if kind == stat.S_IFREG:
                # Like git, do not search the folders above a broken .git file.
                git_dir = _follow(dot_git, here)
                common = _common_dir(git_dir) if git_dir else None
                return _describe(start, here, git_dir, common) if git_dir and common else None
            if kind == stat.S_IFDIR and (common := _common_dir(dot_git)):
                return _describe(start, here, dot_git, common)
            if _common_dir(here):
                return None  # a bare repository, or the inside of a .git
            above = os.path.dirname(here)
            if above == here or os.stat(above).st_dev != device:
                return None
            here = above
    except (OSError, ValueError):
        return None


def external_git_dirs(root: bytes) -> list[bytes]:
    """Return git's own folders if the root's `.git` is a link or a file.

    `git init --separate-git-dir`, or a bare repository beside its worktrees, creates such a `.git`. The folders may lie
    below the root.
    """
    dot_git = os.path.join(root, b".git")
    kind = _kind(dot_git)
    git_dir = _follow(dot_git, root) if kind == stat.S_IFREG else os.path.realpath(dot_git)
    common = _common_dir(git_dir) if git_dir and git_dir != dot_git else None
    return [git_dir, common] if git_dir and common else []


def observe(repo: UserRepo, memo: dict[str, object] | None = None) -> tuple[dict[str, object], dict[str, object]]:
    """Return the state of HEAD, branches and index as JSON, and a memo.

    Pass the memo to the next call.
    """
    # Read loose refs before packed ones: git packs a ref first and removes the loose file afterwards.
    refs = _Refs(repo)
    head: bytes | None = None
    commit: bytes | None = None
    if not repo.reftable:
        head = _head(repo.git_dir)
        commit = refs.resolve(head) if head else None
        if head and not head.startswith(b"refs/"):
            head = commit
    branches = refs.branches()
    index, memo = _index_digest(repo, memo or {})
    seen: dict[str, object] = {
        "head": _text(head),
        "head_commit": _text(commit),
        "index": index,
        "branches": branches,
    }
    if len(branches) > MANY_BRANCHES:
        listed = "\0".join(f"{name} {branches[name]}" for name in sorted(branches))
        digest = hashlib.sha1(listed.encode("utf-8", "surrogateescape"), usedforsecurity=False)
        seen["branches"] = {}
        seen["branches_digest"] = digest.hexdigest()
    return seen, memo


def compare(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """Return what moved between two observations; {} if nothing moved."""
    moved: dict[str, object] = {}
    for name in ("head", "head_commit", "branches_digest"):
        if before.get(name) != after.get(name):
            moved[name] = [before.get(name), after.get(name)]
    if before.get("index") != after.get("index"):
        moved["index"] = True
    old, new = before.get("branches"), after.get("branches")
    # If either side exceeds the limit, there are no names: the digest alone shows that something moved.
    if isinstance(old, dict) and isinstance(new, dict) and "branches_digest" not in moved:
        names = sorted(set(old) | set(new))
        changed = {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}
        if changed:
            moved["branches"] = changed
    return moved


class _Refs:
    """Branches from the files of refs/heads and the lines of packed-refs, read once."""

    __slots__ = ("_loose", "_packed", "_repo")

    def __init__(self, repo: UserRepo) -> None:
        self._repo = repo
        self._loose: dict[bytes, bytes] = {}
        self._packed = b""
        if not repo.reftable:
            self._walk(b"refs/heads")
            self._packed = read_text(os.path.join(repo.common_dir, b"packed-refs")) or b""

    def _walk(self, folder: bytes) -> None:
        try:
            with os.scandir(os.path.join(self._repo.common_dir, folder)) as entries:
                for entry in entries:
                    name = folder + b"/" + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        self._walk(name)
                    elif not name.endswith(b".lock"):
                        self._loose[name] = _small(entry.path) or b""
        except (OSError, RecursionError):
            pass

    def resolve(self, name: bytes) -> bytes | None:
        """Return the commit that HEAD, a ref or an id stands for."""
        for _ in range(6):
            if len(name) == 2 * self._repo.hash_size and not name.strip(b"0123456789abcdefABCDEF"):
                return name.lower()
            parts = name.split(b"/")
            if parts[0] != b"refs" or any(not part or part[:1] == b"." for part in parts):
                return None
            found = self._loose.get(name) or _small(os.path.join(self._repo.common_dir, name))
            if not found:
                line = self._packed.find(b" " + name + b"\n")
                found = self._packed[self._packed.rfind(b"\n", 0, line) + 1 : line] if line > 0 else b""
            name = found[4:].strip() if found.startswith(b"ref:") else found
        return None

    def branches(self) -> dict[str, str]:
        heads = dict(self._loose)
        packed = self._packed
        at = packed.find(b" refs/heads/")
        while at >= 0:
            end = packed.find(b"\n", at)
            end = end if end >= 0 else len(packed)
            heads.setdefault(packed[at + 1 : end], packed[packed.rfind(b"\n", 0, at) + 1 : at])
            at = packed.find(b" refs/heads/", end)
        found: dict[str, str] = {}
        for name in sorted(heads):
            target = heads[name]
            commit = self.resolve(target[4:].strip() if target.startswith(b"ref:") else target or name)
            if commit:
                short = name[len(b"refs/heads/") :]
                found[short.decode("utf-8", "surrogateescape")] = commit.decode()
        return found


def _index_digest(repo: UserRepo, memo: dict[str, object]) -> tuple[str | None, dict[str, object]]:
    path = os.path.join(repo.git_dir, b"index")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            seen = os.fstat(fd)
            trailer = os.pread(fd, repo.hash_size, max(seen.st_size - repo.hash_size, 0))
        finally:
            os.close(fd)
        stamp: list[object] = [seen.st_mtime_ns, seen.st_size, seen.st_ino, trailer.hex()]
        known = memo.get("digest")
        if memo.get("stamp") == stamp and isinstance(known, str):
            return known, memo
        digest = entries_digest(path, repo.hash_size).hex()
    except (OSError, IndexUnreadable):
        return None, {}
    return digest, {"stamp": stamp, "digest": digest}


def _describe(start: bytes, here: bytes, git_dir: bytes, common: bytes) -> UserRepo | None:
    """Return the repository as its own configuration describes it.

    As in git, the format does not come from included files.
    """
    values = dict(parse_config(read_text(os.path.join(common, b"config")) or b"")[0])
    own = git_dir == common
    if truthy(values.get("extensions.worktreeconfig", "")):
        values.update(parse_config(read_text(os.path.join(git_dir, b"config.worktree")) or b"")[0])
        own = True
    repo = UserRepo(here, git_dir, common)
    # Linked worktrees of a bare repository are not bare: git ignores core.bare and core.worktree of the shared file.
    if own:
        if truthy(values.get("core.bare", "")):
            return None
        if "core.worktree" in values:
            elsewhere = values["core.worktree"].encode("utf-8", "surrogateescape")
            repo.top = os.path.realpath(os.path.join(git_dir, elsewhere))
            if start != repo.top and not start.startswith(os.path.join(repo.top, b"")):
                return None
    repo.object_format = values.get("extensions.objectformat", "sha1").lower().encode()
    repo.reftable = values.get("extensions.refstorage", "files").lower().startswith("reftable")
    repo.partial = "extensions.partialclone" in values or any(
        key.startswith("remote.") and key.endswith(".promisor") and truthy(value) for key, value in values.items()
    )
    return repo if repo.object_format in (b"sha1", b"sha256") else None


def _common_dir(git_dir: bytes) -> bytes | None:
    """Return the folder of `git_dir`'s objects and refs, or None if not a git folder."""
    if not _head(git_dir):
        return None
    shared = _small(os.path.join(git_dir, b"commondir"))
    common = os.path.realpath(os.path.join(git_dir, shared)) if shared else git_dir
    whole = all(os.access(os.path.join(common, part), os.X_OK) for part in (b"objects", b"refs"))
    return common if whole else None


def _head(git_dir: bytes) -> bytes | None:
    """Return the content of HEAD: a ref's name or an id."""
    path = os.path.join(git_dir, b"HEAD")
    try:
        target = os.readlink(path)  # old versions of git made HEAD a link
    except OSError:
        target = b""
    if target:
        return target if target.startswith(b"refs/") else None
    text = _small(path) or b""
    if text.startswith(b"ref:"):
        target = text[4:].strip()
        return target if target.startswith(b"refs/") else None
    return text if len(text) in (40, 64) and not text.strip(b"0123456789abcdefABCDEF") else None


def _follow(dot_git: bytes, folder: bytes) -> bytes | None:
    text = _small(dot_git) or b""
    target = text.removeprefix(b"gitdir: ")
    return os.path.realpath(os.path.join(folder, target)) if target != text and target else None


def _kind(path: bytes) -> int:
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        return 0


def _small(path: bytes) -> bytes | None:
    try:
        return read_regular(path, SMALL)[0].rstrip(b"\r\n \t")
    except (OSError, ValueError):
        return None


def _text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "surrogateescape") if value is not None else None
