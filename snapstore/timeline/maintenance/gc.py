"""Collect garbage: put all needed objects into one pack and remove leftovers."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from snapstore.base.files import remove_if_there
from snapstore.errors import SnapstoreError
from snapstore.git.maintenance import fold, pack_builder, purge
from snapstore.git.maintenance.repack import Packing, Repack, Result
from snapstore.git.objects.ids import Missing
from snapstore.git.objects.pack import PackRemoved
from snapstore.git.objects.reachability import whole
from snapstore.git.program import environment, refuse_planted
from snapstore.git.ref_names import PRUNED
from snapstore.git.remote import incoming
from snapstore.store.handle import StoreHandle, failed
from snapstore.timeline.maintenance import manual_git
from snapstore.timeline.maintenance.prune import expire
from snapstore.timeline.record import create_store

_LOGGED_FOR = 86400  # seconds to keep the reflog of records, which exists only for `git fsck`
_TRIES = 3
_LOCKED_FOR = 60  # seconds; git holds a ref's lock for milliseconds


class Collected:
    """What a gc did, or would do with `dry_run`."""

    __slots__ = ("by", "dry_run", "expired", "leftovers", "packed")

    def __init__(self, *, by: str, dry_run: bool) -> None:
        self.packed = Result()
        self.by = by  # "git" or "snapstore"
        self.leftovers = 0  # files of killed processes
        self.expired = 0  # pruned branches that can no longer be restored
        self.dry_run = dry_run


def collect(
    store: StoreHandle,
    *,
    grace: int | None = None,
    pruned_grace: int | None = None,
    dry_run: bool = False,
    git: str | None = None,
    threads: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Collected:
    """Pack the store and remove unreachable objects older than `grace` seconds.

    `grace` defaults to the setting, and the age of an object is the age of its file. `git` is the program that packs:
    by default the installed one, "" for none. `pruned_grace` is how many seconds pruned branches can be restored, by
    default `grace`.
    """
    grace = store.header.gc_grace if grace is None else grace
    program = shutil.which("git") if git is None else git
    way: Packing = pack_builder.without_git
    if program:
        refuse_planted(store.shadow.git_dir)  # git is about to read the store's configuration
        way = pack_builder.with_git(program, environment(store.shadow.git_dir), threads=threads)
    done = Collected(by="git" if program else "snapstore", dry_run=dry_run)
    pruned_grace = grace if pruned_grace is None else pruned_grace

    def again() -> Repack:
        return Repack(store.shadow.objects, older_than=time.time() - grace, packing=way, progress=progress)

    try:
        for tries_left in reversed(range(_TRIES)):
            try:
                done.packed = _collected(store, again(), done, pruned_grace, careful=tries_left < _TRIES - 1)
                break
            except (Missing, PackRemoved, pack_builder.NotPacked):
                # A user's git may just have removed an object that only a hint led to (see `roots`), or moved objects
                # between packs while the git we started was reading them. Nothing was changed.
                if not tries_left:
                    raise
    except OSError as error:
        raise failed(error) from error
    except SnapstoreError as error:
        if done.expired:
            what = "1 pruned branch" if done.expired == 1 else f"{done.expired:,} pruned branches"
            error.hint += f" One step is done: {what} had expired and can no longer be restored."
        raise
    return done


def _collected(store: StoreHandle, repack: Repack, done: Collected, pruned_grace: float, *, careful: bool) -> Result:
    with repack as work:
        # Turns wait while the lock is held. So the slow part runs before, and its result is verified under the lock.
        known = roots(store, careful=careful)
        with store.changing():
            fold.refuse_links(store.shadow.objects)
            if not done.dry_run:
                done.leftovers += sweep(store)
                if store.shadow.refs.list(PRUNED):
                    work.must_fit()
                done.expired += expire(store, pruned_grace)
                store.shadow.refs.forget_logged(int(time.time()) - _LOGGED_FOR)
            known = roots(store, known, careful=careful)
            work.survey(known)
        work.build()
        if not done.dry_run:
            with store.changing():
                work.install(roots(store, known, careful=careful))
        return work.result


def roots(store: StoreHandle, known: Collection[bytes] = frozenset(), *, careful: bool = False) -> set[bytes]:
    """Return the objects that refs and hints refer to.

    Call under the lock for a reliable answer: an interrupted change is finished then, so the journal refers to nothing.
    Objects in `known` are not looked up again.

    Hints are the tree of the stat cache, reflogs and open turns. Refs usually reach the same objects. An object that
    only a hint reaches may be removed by a user's git at any moment. With `careful`, a hint counts only if everything
    it reaches is present.
    """
    refs = store.shadow.refs
    store.shadow.objects.refresh()
    found = set(refs.list("refs/").values())
    maybe = manual_git.heads(store.shadow.git_dir) | manual_git.staged(store.shadow.git_dir)
    maybe |= {oid for rows in refs.logged().values() for _, old, new in rows for oid in (old, new)}
    store.cache.load()
    if store.cache.coverage is not None:
        maybe.add(store.cache.tree)
    for name in store.documents.sessions_with_open_turns():
        turn = store.documents.open_turn(name)
        if turn is not None:
            maybe.update(_named_in([turn.before, *turn.captured_by_others]))
    # A hint whose object is gone is normal: reflogs outlive objects.
    contains = store.shadow.objects.contains
    if careful:
        return found | whole(store.shadow.objects, maybe - found)
    return found | {oid for oid in maybe if oid in known or contains(oid, fresh=False)}


def _named_in(items: Iterable[Any]) -> Iterable[bytes]:
    for item in items:
        if isinstance(item, list):
            yield from (bytes.fromhex(entry.partition(" ")[2]) for _, entry in item if entry is not None)
        else:
            yield bytes.fromhex(item)


def sweep(store: StoreHandle) -> int:
    """Remove what killed processes left; call under the lock. Return the file count."""
    now = time.time()
    count = fold.sweep(store.shadow.objects, now)
    incoming.sweep(store.shadow.objects)
    purge.sweep(store.shadow.objects)
    for top in (store.folder, f"{store.shadow.git_dir}/refs"):
        for folder, folders, names in os.walk(top):
            if folder == store.folder:
                folders[:] = [name for name in folders if name not in ("store.git", "log")]
            for name in names:
                path = f"{folder}/{name}"
                if name.endswith(".new") or (name.endswith(".lock") and _age(path, now) > _LOCKED_FOR):
                    count += remove_if_there(path)
    for name in ("HEAD.lock", "packed-refs.lock"):
        path = f"{store.shadow.git_dir}/{name}"
        if _age(path, now) > _LOCKED_FOR:
            count += remove_if_there(path)
    try:
        create_store.sweep(store.home)
    except OSError:
        pass  # perhaps owned by somebody else
    return count


def _age(path: str, now: float) -> float:
    try:
        return now - os.stat(path).st_mtime
    except FileNotFoundError:
        return 0.0
