"""Shared helpers: the disk and commits as comparable values, ordinary git, child processes, strace.

Nothing here asks snapstore what it stored: trees are read with the git program, and the disk with os.walk.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from snapstore import Session, Store
from snapstore.timeline.maintenance.check import Check
from snapstore.worktree.scan.stat_cache import StatCache

# path -> (mode, bytes): what a tree of git can hold, and nothing else
Files = dict[bytes, tuple[bytes, bytes]]

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="needs strace")
CHANGING_CALLS = (
    "open",
    "write",
    "pwrite",
    "fsync",
    "rename",
    "replace",
    "unlink",
    "mkdir",
    "rmdir",
    "symlink",
    "link",
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


# The two sides that must be equal.


def on_disk(root: Path | str | bytes) -> Files:
    """Return every file and link below a folder, without `.git` folders."""
    found: Files = {}
    top = os.fsencode(root)
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name != b".git" and name not in links]
        for name in names + links:
            if name == b".git":
                continue
            full = os.path.join(folder, name)
            st = os.lstat(full)
            path = full[len(top) + 1 :]
            if stat.S_ISLNK(st.st_mode):
                found[path] = (b"120000", os.readlink(full))
            elif stat.S_ISREG(st.st_mode):
                with open(full, "rb") as file:
                    found[path] = (b"100755" if st.st_mode & 0o100 else b"100644", file.read())
    return found


def in_commit(store: Store | str, commit: str | bytes) -> Files:
    """Return every file of a commit or tree, read with ordinary git."""
    git_dir = store if isinstance(store, str) else store.shadow.git_dir
    name = commit.hex() if isinstance(commit, bytes) else commit
    listing = git(git_dir, "ls-tree", "-r", "-z", "--full-tree", name)
    rows = [row.partition(b"\t") for row in listing.split(b"\0") if row]
    entries = [(path, *head.split(b" ")) for head, _, path in rows]
    contents = blobs(git_dir, [oid for _, _, _, oid in entries])
    return {path: (mode, contents[oid]) for path, mode, _, oid in entries}


def blobs(git_dir: str, ids: list[bytes]) -> dict[bytes, bytes]:
    """Return contents by id, read with one `git cat-file --batch`."""
    unique = list(dict.fromkeys(ids))
    out = git(git_dir, "cat-file", "--batch", feed=b"".join(oid + b"\n" for oid in unique))
    found: dict[bytes, bytes] = {}
    at = 0
    for oid in unique:
        end = out.index(b"\n", at)
        name, kind, size = out[at:end].split(b" ")
        assert (name, kind) == (oid, b"blob"), out[at:end]
        found[oid] = out[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found


def difference(expected: Files, found: Files) -> dict[bytes, tuple[object, object]]:
    """Return only what differs, short enough for a failure message."""
    return {
        path: (_short(expected.get(path)), _short(found.get(path)))
        for path in sorted(expected.keys() | found.keys())
        if expected.get(path) != found.get(path)
    }


def _short(entry: tuple[bytes, bytes] | None) -> object:
    return entry and (entry[0], entry[1] if len(entry[1]) <= 60 else f"{len(entry[1])} bytes")


def assert_equal(store: Store | str, commit: str | bytes, expected: Files) -> None:
    wrong = difference(expected, in_commit(store, commit))
    assert not wrong, f"path: (on disk, in the commit)\n{wrong}"


def tip(store: Store, session: str) -> str:
    return git(store.shadow.git_dir, "rev-parse", f"refs/snapstore/cursor/{session}").decode().strip()


def line(store: Store, session: str) -> list[dict[str, Any]]:
    """Return the session's commits, oldest first, read with `git log` alone."""
    git_dir = store.shadow.git_dir
    shown = "%H%x00%P%x00%an <%ae>%x00%s%x00%B%x00%(trailers:only,unfold)%x00%N%x00%x01"
    out = git(git_dir, "log", "--reverse", "--first-parent", "--notes=turns", f"--format={shown}", tip(store, session))
    found = []
    for text in out.decode("utf-8", "surrogateescape").split("\x01\n"):
        if not text.strip("\n"):
            continue
        commit, parents, author, subject, body, trailers, note, _ = text.split("\0")
        pairs = [row.partition(": ") for row in trailers.splitlines() if row]
        found.append(
            {
                "commit": commit,
                "parents": parents.split(),
                "author": author,
                "subject": subject,
                "body": body,
                "trailers": {key.removeprefix("Snapstore-"): value for key, _, value in pairs},
                "record": with_lines(git_dir, commit, json.loads(note)) if note.strip() else {},
            }
        )
    return found


def kinds(store: Store, session: str) -> list[str]:
    return [commit["trailers"]["Kind"] for commit in line(store, session)]


def touched(store: Store, commit: str | bytes) -> dict[bytes, str]:
    """Return the paths that a commit changed, with git's letters, by `git diff-tree`."""
    name = commit.hex() if isinstance(commit, bytes) else commit
    out = git(store.shadow.git_dir, "diff-tree", "-r", "-z", "--no-renames", "--name-status", "--root", name)
    parts = out.split(b"\0")[1:-1]
    return {path: letter.decode() for letter, path in zip(parts[::2], parts[1::2], strict=True)}


def record(store: Store, commit: str | bytes) -> dict[str, Any]:
    name = commit.hex() if isinstance(commit, bytes) else commit
    git_dir = store.shadow.git_dir
    return with_lines(git_dir, name, json.loads(git(git_dir, "notes", "--ref=turns", "show", name)))


def with_lines(git_dir: str, commit: str, record: dict[str, Any]) -> dict[str, Any]:
    """A record with the raw lines of its conversation, which are a note of their own (M-15), read with git."""
    if "lines" in record:
        return record
    note = git(git_dir, "notes", "--ref=transcripts", "show", commit, may_fail=True)
    text = note.decode("utf-8", "surrogateescape")
    if not text:
        return record
    ends = not record.pop("bare_lines", False)
    return {**record, "lines": [f"{line}\n" if ends else line for line in text.removesuffix("\n").split("\n")]}


def left_out(store: Store, commit: str | bytes) -> dict[str, str]:
    return {item["path"]: item["why"] for item in record(store, commit)["left_out"]}


def all_refs(store: Store | str) -> dict[str, str]:
    git_dir = store if isinstance(store, str) else store.shadow.git_dir
    rows = git(git_dir, "for-each-ref", "--format=%(objectname) %(refname)").decode().splitlines()
    return {name: oid for oid, _, name in (row.partition(" ") for row in rows)}


def assert_whole(store: Store) -> None:
    """Assert that neither snapstore's check nor git's finds a problem."""
    problems = Check(store, read_data=True).run().problems
    assert not problems, problems
    git(store.shadow.git_dir, "fsck", "--strict", "--no-dangling")


def assert_cache_adds_up(store: Store) -> None:
    """Assert that the rows of the stat cache add up to its tree; otherwise a later scan goes wrong."""
    cache = StatCache(store.state)
    cache.load()
    if cache.coverage is None:
        return
    rows = {path: (row[5], row[6].hex()) for path, row in cache.files.items()}
    listing = git(store.shadow.git_dir, "ls-tree", "-r", "-z", cache.tree.hex()).split(b"\0")
    entries = [row.partition(b"\t") for row in listing if row]
    tree = {path: (head.split(b" ")[0], head.split(b" ")[2].decode()) for head, _, path in entries}
    wrong = {path: (tree.get(path), rows.get(path)) for path in tree | rows if tree.get(path) != rows.get(path)}
    assert not wrong, f"path: (in the cache's tree, in its rows)\n{wrong}"


# Ordinary git.


def plain_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C", **(extra or {})}


def git(git_dir: str, *arguments: str, feed: bytes | None = None, may_fail: bool = False) -> bytes:
    """Run ordinary git on a repository given by its git folder."""
    return _git(["--git-dir", git_dir, *arguments], None, feed, may_fail)


def git_in(folder: Path | str, *arguments: str, feed: bytes | None = None, may_fail: bool = False) -> bytes:
    """Run ordinary git in a working tree."""
    return _git(list(arguments), folder, feed, may_fail)


def _git(arguments: list[str], cwd: Path | str | None, feed: bytes | None, may_fail: bool) -> bytes:
    settings = ("user.name=Ada", "user.email=ada@example.com", "protocol.file.allow=always", "init.defaultBranch=main")
    options = [word for setting in settings for word in ("-c", setting)]
    done = subprocess.run(
        ["git", *options, *arguments], cwd=cwd, input=feed, capture_output=True, check=False, env=plain_environment()
    )
    if done.returncode != 0 and not may_fail:
        said = (done.stderr + done.stdout[:2000]).decode(errors="replace")
        raise AssertionError(f"git {' '.join(arguments)} ({done.returncode}): {said}")
    return done.stdout


# Files, in the raw.


def write(path: Path | str | bytes, data: bytes | str = b"", *, executable: bool = False) -> None:
    full = os.fsencode(path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    os.chmod(full, 0o755 if executable else 0o644)


def turn(session: Session, root: Path, prompt: str = "", /, **files: str | None) -> str:
    """Record a turn that writes files (None: deletes) and return its commit; `__` stands for a slash."""
    with session.turn(prompt) as open_turn:
        for name, text in files.items():
            path = root / name.replace("__", "/")
            if text is None:
                path.unlink()
            else:
                write(path, text)
    assert open_turn.commit is not None
    return open_turn.commit.hex()


def remove(path: Path | str | bytes) -> None:
    """Remove a file, a link or a whole folder."""
    full = os.fsencode(path)
    if os.path.isdir(full) and not os.path.islink(full):
        shutil.rmtree(full)
    elif os.path.lexists(full):
        os.unlink(full)


def bit_by_bit(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return every name in a folder with kind, mode, times (not access times) and bytes."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        st = path.lstat()
        data: object = None
        if stat.S_ISREG(st.st_mode):
            data = path.read_bytes()
        elif stat.S_ISLNK(st.st_mode):
            data = os.readlink(path)
        found[str(path.relative_to(folder))] = (st.st_mode, st.st_mtime_ns, st.st_ctime_ns, st.st_ino, data)
    return found


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Return a folder in memory if there is one: hundreds of runs need no disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="snapstore-test-", dir=base))
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Other processes.


def child(
    code: str,
    *arguments: object,
    under: list[str] | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """Run Python code in a separate process and wait for it."""
    return subprocess.run(
        [*(under or []), sys.executable, "-c", code, *(str(argument) for argument in arguments)],
        capture_output=True,
        check=False,
        input=stdin,
        timeout=timeout,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
    )


@contextmanager
def living_child(code: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Run a process that prints a line when it is ready; kill it at the end of the block if it is alive."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *(str(argument) for argument in arguments)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stdin):
            assert pipe is not None
            pipe.close()


def killed_at(nth: int, work: Callable[[], object]) -> bool:
    """Run work in a fork that is killed at its Nth changing call; return whether it got that far."""
    pid = os.fork()
    if pid == 0:
        left = [nth]

        def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
            def struck(*arguments: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **named)

            return struck

        for name in CHANGING_CALLS:
            setattr(os, name, wrap(getattr(os, name)))
        try:
            work()
        except BaseException:
            os._exit(3)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == signal.SIGKILL


def powerless() -> list[str]:
    """Return a command prefix under which file modes count even for root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv to give up root's powers")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]


def all_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def open_files(pid: int) -> list[str]:
    """Return the paths that a process has open; empty if it has ended."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found
