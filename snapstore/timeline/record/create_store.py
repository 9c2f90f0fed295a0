"""Create stores, so that none is ever incomplete.

A store is built under a temporary name with its baseline inside, and then renamed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from snapstore.base import files as durable
from snapstore.base import locks
from snapstore.base.text import size_text
from snapstore.errors import Interrupted, NoStore, SnapstoreError, Unknown, Unsafe
from snapstore.git import repository
from snapstore.git.ref_names import HEADS
from snapstore.store import locations, root_index
from snapstore.store.handle import StoreHandle, failed
from snapstore.store.state import FORMAT, Documents, Header, encode
from snapstore.timeline.record.session import RecordingSession
from snapstore.worktree.usergit import config as gitconfig
from snapstore.worktree.usergit import repository as usergit

_BUILDING = ".building-"
MANY_FILES = 200_000
MANY_BYTES = 5 * 10**9  # of the first snapshot


def create_store(
    home: str,
    root: bytes,
    *,
    anyway: bool = False,
    session: str = "shell",
    say: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
    clock: Callable[[], float] = time.time,
    id: str | None = None,
    begin: Callable[[StoreHandle], None] | None = None,
    **settings: Any,
) -> bytes:
    """Create the store of a root, take its baseline, and return the root.

    `begin` replaces the baseline with other first content; a clone also passes an `id`. A root so large that it may be
    a mistake is reported to `warn`, or else to the log.
    """
    if not anyway:
        locations.refuse_root(home, root)
    folder = locations.store_folder(home, root)
    try:
        durable.make_folders(home)
        sweep(home)
        building = f"{home}/{_BUILDING}{os.urandom(8).hex()}"
        os.mkdir(building, 0o700)
        if os.stat(building).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            os.rmdir(building)
            raise Unsafe(
                f"other users could write to a store in {home}, because its file system ignores permissions",
                "Set SNAPSTORE_HOME to a folder on another file system, or mount this one with umask=077.",
            )
        # Locked before the rename, because `sweep` takes an unlocked `building` file for that of a killed process.
        lock = os.open(f"{building}/starting", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            locks.try_lock(lock)
            os.rename(f"{building}/starting", f"{building}/building")
            for name in ("state", "state/open", "state/sessions", "log"):
                os.mkdir(f"{building}/{name}", 0o700)
            repository.create(f"{building}/store.git", f"{HEADS}{session}/main")
            header = Header(
                format=FORMAT,
                id=id or os.urandom(16).hex(),
                root=os.fsdecode(root),
                root_hash=locations.root_hash(root),
                **settings,
            )
            repo = usergit.find_repo(root)
            who = gitconfig.user_identity(gitconfig.user_config(repo, os.fsencode(os.path.expanduser("~"))))
            if who is not None:
                header.user_name, header.user_email = who
            durable.write(f"{building}/state/format", encode(header))
            if settings:
                from snapstore.store import config

                durable.write(f"{building}/{config.FILE}", config.template(header).encode())
            with StoreHandle(home, root, building, say=say, progress=progress, clock=clock) as store:
                if begin is not None:
                    begin(store)
                else:
                    RecordingSession(store, session).take_baseline()
                    large = _large(store)
                    if large is not None:
                        (warn or store.log)(large)
            os.unlink(f"{building}/building")
            durable.sync_folder(building)
            root_index.mark(home, root)  # first, because a shell does not see a store without a mark
            try:
                os.rename(building, folder)
            except OSError:
                if not os.path.isdir(folder):
                    raise
                shutil.rmtree(building, ignore_errors=True)  # another process created the same store first
            else:
                _make_name_durable(home)
                if say is not None:
                    say(f"watching over {os.fsdecode(root)} from now on")
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        finally:
            os.close(lock)
    except OSError as error:
        raise failed(error) from error
    return root


def _make_name_durable(home: str) -> None:
    """Sync the rename of a new store, or raise Interrupted.

    The store stays in either case, because other processes may use it already.
    """
    try:
        durable.sync_folder(home)
    except OSError as error:
        raise Interrupted(
            f"the store was created, but the disk did not confirm that it is saved: {error.strerror}",
            "The store works. Until the disk is in order and `sync` has run, a power cut may remove it.",
        ) from error


def _large(store: StoreHandle) -> str | None:
    """Return a warning for a root so large that it may be a mistake (G-16).

    Every full scan of such a root is slow.
    """
    from snapstore.store.disk_usage import folder_size

    store.cache.load()
    files, size = len(store.cache.files), folder_size(store.folder)
    if files < MANY_FILES and size < MANY_BYTES:
        return None
    return (
        f"{os.fsdecode(store.root)} is large: {files:,} files, {size_text(size)} in the store. If that is a mistake, "
        "watch over a smaller folder, or list generated files in `.snapstoreignore`"
    )


def adopt_store(home: str, root: bytes, moved_from: str | None = None, *, anyway: bool = False) -> str:
    """Attach the store of a moved root to its new place, and return the previous root.

    Without `moved_from`, take the only store whose root is gone and had the same folder name.
    """
    folder = locations.store_folder(home, root)
    if os.path.isdir(folder):
        hint = f"Nothing was adopted. To adopt another store instead, move {folder} away and run the command again."
        raise NoStore(f"{os.fsdecode(root)} has a store already", hint)
    candidates: list[tuple[str, Header]] = []
    for place, header in _stores(home):
        if header.root_hash == locations.root_hash(root):
            candidates.append((place, header))  # an adoption that was killed halfway
        elif moved_from is not None:
            if os.path.realpath(header.root) == os.path.realpath(moved_from):
                candidates.append((place, header))
        elif not os.path.isdir(header.root) and os.path.basename(header.root) == os.fsdecode(os.path.basename(root)):
            candidates.append((place, header))
    if len(candidates) != 1:
        found = ", ".join(header.root for _, header in candidates) or "none"
        raise Unknown(
            f"cannot tell which store to adopt for {os.fsdecode(root)} (candidates: {found})",
            "Give the previous path: `snapstore init --adopt --from OLD_PATH`.",
        )
    place, header = candidates[0]
    locations.refuse_foreign(place)
    old_root = header.root
    if os.path.isdir(old_root) and not os.path.samefile(old_root, root) and not anyway:
        raise Unsafe(
            f"{old_root} still exists, and would be left without its store",
            "Nothing was adopted. `--adopt` is for a folder that was moved; add `--anyway` if you are sure.",
        )
    header.root, header.root_hash = os.fsdecode(root), locations.root_hash(root)
    # The header first: after a kill in between no root finds the store, and adopting the root again repairs that.
    durable.write(f"{place}/state/format", encode(header))
    root_index.mark(home, root)
    os.rename(place, folder)
    durable.sync_folder(home)
    return old_root


def index_roots(home: str) -> None:
    """Build the index that tells shells which folders have a store, unless it exists."""
    root_index.build(home, (os.fsencode(header.root) for _, header in _stores(home)))


def _stores(home: str) -> Iterator[tuple[str, Header]]:
    for name in sorted(os.listdir(home)) if os.path.isdir(home) else []:
        if name.startswith("."):
            continue
        try:
            yield f"{home}/{name}", Documents(f"{home}/{name}/state").header()
        except (SnapstoreError, OSError):
            continue


def moved_root_hint(home: str, start: str) -> str:
    """Return a hint for a user who may have moved a folder, or "" if no root is gone."""
    gone = [header.root for _, header in _stores(home) if not os.path.isdir(header.root)]
    alike = [root for root in gone if os.path.basename(root) == os.path.basename(os.path.abspath(start))] or gone
    if not alike:
        return ""
    moved_from = shlex.quote(alike[0]) if len(alike) == 1 else "OLD_PATH"
    return f"If it was moved, its turns are still there: `snapstore init --adopt --from {moved_from}`."


def sweep(home: str) -> None:
    """Remove what a killed creation left behind; a live creation holds its lock."""
    for name in os.listdir(home):
        if not name.startswith(_BUILDING):
            continue
        path = f"{home}/{name}"
        try:
            fd = os.open(f"{path}/building", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            if time.time() - os.stat(path).st_mtime > 60:
                shutil.rmtree(path, ignore_errors=True)
            continue
        try:
            if locks.try_lock(fd):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(fd)
