"""Making a store: beside its place, with its first snapshot inside, then renamed into it. None is ever half made."""

from __future__ import annotations

import os
import shlex
import shutil
import time

from snapstore.base import files as durable
from snapstore.base import platform
from snapstore.errors import Interrupted, NoStore, SnapstoreError, Unknown, Unsafe
from snapstore.git import repository
from snapstore.store import locations, root_index
from snapstore.store.state import FORMAT, Documents, Header, encode
from snapstore.worktree.usergit import config as gitconfig
from snapstore.worktree.usergit import repository as usergit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from snapstore.store.handle import StoreHandle

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
    """Makes the store of a root and takes its baseline, or with `begin` whatever it is to begin with (a clone has an
    `id` too). Gives the root. A root so large that it may not be meant is told to `warn`, or else stands in the log."""
    from snapstore.store.handle import StoreHandle, failed
    from snapstore.timeline.record.session import RecordingSession

    if not anyway:
        locations.refuse_root(home, root)
    folder = locations.store_folder(home, root)
    try:
        durable.make_folders(home)
        sweep(home)
        building = f"{home}/{_BUILDING}{os.urandom(8).hex()}"
        os.mkdir(building, 0o700)
        # Locked before it has its name: another creation takes an unlocked `building` for a dead one's.
        lock = os.open(f"{building}/starting", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            platform.try_lock(lock)
            os.rename(f"{building}/starting", f"{building}/building")
            for name in ("state", "state/open", "state/sessions", "log"):
                os.mkdir(f"{building}/{name}", 0o700)
            repository.create(f"{building}/store.git", f"refs/heads/{session}/main")
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
            root_index.mark(home, root)  # first: a store without a mark would not be seen by a shell
            try:
                os.rename(building, folder)
            except OSError:
                if not os.path.isdir(folder):
                    raise
                shutil.rmtree(building, ignore_errors=True)  # another process was quicker; its store serves as well
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
    """The new store has its name, so others may use it already: it cannot be taken back."""
    try:
        durable.sync_folder(home)
    except OSError as error:
        raise Interrupted(
            f"the store is made, but the disk did not confirm that it is saved: {error.strerror}",
            "The store works. Until the disk is in order and `sync` has run, a power cut may take it away.",
        ) from error


def _large(store: StoreHandle) -> str | None:
    """What is so large that every look at the whole of it takes its time, and that nobody may have meant (G-16)."""
    from snapstore.base.text import size_text
    from snapstore.store.disk_usage import folder_size

    store.cache.load()
    files, size = len(store.cache.files), folder_size(store.folder)
    if files < MANY_FILES and size < MANY_BYTES:
        return None
    return (
        f"{os.fsdecode(store.root)} is large: {files:,} files, {size_text(size)} in the store. Was it meant? "
        "`.snapstoreignore` leaves out what tools make again; a smaller folder can be watched over instead"
    )


def adopt_store(home: str, root: bytes, former: str | None = None, *, anyway: bool = False) -> str:
    """Re-attaches the store of a root that moved here. Gives the former root.

    Without a name, the one store whose root is gone and had the same folder name is taken.
    """
    folder = locations.store_folder(home, root)
    if os.path.isdir(folder):
        hint = f"Nothing needs adopting here. If a former one is meant, move {folder} away, then run this again."
        raise NoStore(f"{os.fsdecode(root)} has a store of its own", hint)
    candidates: list[tuple[str, Header]] = []
    for place, header in _stores(home):
        if header.root_hash == locations.root_hash(root):
            candidates.append((place, header))  # an adoption that was killed half way
        elif former is not None:
            if os.path.realpath(header.root) == os.path.realpath(former):
                candidates.append((place, header))
        elif not os.path.isdir(header.root) and os.path.basename(header.root) == os.fsdecode(os.path.basename(root)):
            candidates.append((place, header))
    if len(candidates) != 1:
        found = ", ".join(header.root for _, header in candidates) or "none"
        raise Unknown(
            f"cannot tell which store to adopt for {os.fsdecode(root)} (candidates: {found})",
            "Say where the root was: `snapstore init --adopt --from OLD_PATH`.",
        )
    place, header = candidates[0]
    locations.refuse_foreign(place)
    old_root = header.root
    if os.path.isdir(old_root) and not os.path.samefile(old_root, root) and not anyway:
        raise Unsafe(
            f"{old_root} is still there: its store would be taken away from it",
            "Adopt only where a root moved; say `--anyway` if you mean it.",
        )
    header.root, header.root_hash = os.fsdecode(root), locations.root_hash(root)
    # The header first: a kill in between leaves a store that no root finds, and adopting it again mends that.
    durable.write(f"{place}/state/format", encode(header))
    root_index.mark(home, root)
    os.rename(place, folder)
    durable.sync_folder(home)
    return old_root


def index_roots(home: str) -> None:
    """Make the index that tells shells which folders have a store, unless there is one."""
    root_index.build(home, (os.fsencode(header.root) for _, header in _stores(home)))


def _stores(home: str) -> Iterator[tuple[str, Header]]:
    for name in sorted(os.listdir(home)) if os.path.isdir(home) else []:
        if name.startswith("."):
            continue
        try:
            yield f"{home}/{name}", Documents(f"{home}/{name}/state").header()
        except (SnapstoreError, OSError):
            continue


def if_moved(home: str, start: str) -> str:
    """What who has moved a folder must hear of, before making another store there; empty where no root is gone."""
    gone = [header.root for _, header in _stores(home) if not os.path.isdir(header.root)]
    alike = [root for root in gone if os.path.basename(root) == os.path.basename(os.path.abspath(start))] or gone
    if not alike:
        return ""
    former = shlex.quote(alike[0]) if len(alike) == 1 else "OLD_PATH"
    return f"If it was moved, its turns are still there: `snapstore init --adopt --from {former}`."


def sweep(home: str) -> None:
    """Removes what a killed creation left behind; a living one holds its lock."""
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
            if platform.try_lock(fd):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(fd)
