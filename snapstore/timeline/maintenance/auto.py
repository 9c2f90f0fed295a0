"""Run maintenance automatically: warn about the size, prune, and gc.

After a change only the sizes of packs are checked, and only if packs were just folded or a limit is set. A background
process does the rest, so that no turn waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Container

from snapstore.base import files
from snapstore.base.text import size_text
from snapstore.errors import Busy, SnapstoreError
from snapstore.git.objects.pack_files import is_kept, is_linked
from snapstore.store.background import start
from snapstore.store.handle import StoreHandle
from snapstore.timeline.history.operations import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.timeline.maintenance.prune import Prunable

# A gc is due when small packs have grown to this many bytes and to half of the largest pack. So the bytes packed again
# over time stay at a few times the bytes recorded.
PAYS_FROM = 16 << 20
MANY_LOOSE = 27  # files in one of the 256 folders of loose objects; the others have about as many
WARN_PERCENT = 80
_INTERVAL = 3600  # seconds between two automatic runs
_MARK = "kept"  # a state file whose age tells when the last run began
_NEARLY_FULL = "nearly-full"  # a state file that exists while the log has the warning
_GRACE_WHEN_FULL = 3600  # seconds of grace for objects while the store is over its limit


class Pruned:
    """Result of a prune: what went, what stayed and why, its operations, bytes freed."""

    __slots__ = ("going", "operations", "size", "staying")

    def __init__(self, going: list[Prunable], staying: list[Prunable], operations: list[Operation], size: int) -> None:
        self.going = going
        self.staying = staying
        self.operations = operations
        self.size = size


def check_size(store: StoreHandle, *, folded: bool) -> None:
    """Warn after a change if the store is nearly full, and start a gc if one is due."""
    sizes = _pack_sizes(store)
    full = bool(store.header.max_store_size) and _warn_if_nearly_full(store, sum(sizes) + _beside_packs(store))
    if (full or (folded and store.header.gc_auto and is_due(store, sizes))) and _interval_is_over(store):
        start(store, "gc", "--auto")


def _warn_if_nearly_full(store: StoreHandle, total: int) -> bool:
    """Warn if the store is nearly full, in the log only once; return whether it is full."""
    limit = store.header.max_store_size
    noted = f"{store.state}/{_NEARLY_FULL}"
    if total * 100 < limit * WARN_PERCENT:
        files.remove(noted)
        return False
    text = warning(store, total)
    store.say(text)
    if not os.path.exists(noted):  # not synced: at worst the log has the warning twice
        os.close(os.open(noted, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        store.log(text)
    return total >= limit


def is_due(store: StoreHandle, sizes: list[int]) -> bool:
    """Return whether a gc is worth it.

    A gc is worth it when small packs have grown to half of the largest pack, or when many objects are loose.
    """
    if sizes and sum(sizes) - max(sizes) >= max(PAYS_FROM, max(sizes) // 2):
        return True
    try:
        return len(os.listdir(f"{store.shadow.objects.folder}/17")) >= MANY_LOOSE
    except OSError:
        return False


def warning(store: StoreHandle, size: int) -> str:
    limit = store.header.max_store_size
    text = f"the store takes {size_text(size)}, {size * 100 // limit} % of max_store_size"
    return (
        f"{text} (`snapstore du` shows what uses the space, `snapstore gc` packs it, `snapstore prune` removes old "
        "branches)"
    )


def run(store: StoreHandle) -> None:
    """Prune what is due, then gc, in the background process.

    Over the size limit, branches that were pruned earlier are deleted at once. Errors are only logged.
    """
    from snapstore.store.disk_usage import folder_size
    from snapstore.timeline.maintenance.gc import collect

    limit = store.header.max_store_size
    try:
        _note_start(store)
        is_full = bool(limit) and folder_size(store.folder) >= limit
        try:
            prune(store, automatic=True)
        except SnapstoreError as error:  # the gc below may still work
            store.log(f"prune: {error}")
        if is_full:
            done = collect(store, grace=min(_GRACE_WHEN_FULL, store.header.gc_grace), pruned_grace=0, threads=1)
            left = folder_size(store.folder)
            if left >= limit and done.packed.waiting:
                store.log(f"{warning(store, left)}; what was just pruned is freed within hours")
            elif left >= limit:
                hint = "raise max_store_size, or delete branches"
                store.log(f"{warning(store, left)}; nothing is left to prune: {hint}")
        elif store.header.gc_auto:
            collect(store, threads=1)
    except Busy:
        pass  # another gc or a long turn is running: the next turn tries again
    except (SnapstoreError, OSError) as error:
        store.log(f"gc: {error}")


def prune(
    store: StoreHandle,
    *,
    older: float | None = None,
    keep: Collection[str] = (),
    safety: bool = False,
    dry_run: bool = False,
    automatic: bool = False,
) -> Pruned:
    """Prune everything that the rules in `timeline.maintenance.prune` allow."""
    from snapstore.store.disk_usage import DiskUse
    from snapstore.timeline.maintenance import prune as rules

    remotes = on_remotes(store)

    def find() -> tuple[list[Prunable], list[Prunable]]:
        return rules.find(store, older=older, keep=keep, on_remotes=remotes, safety=safety)

    going, staying = find()
    if not going:
        return Pruned(going, staying, [], 0)
    use = DiskUse(store).measure(only=[found.ref for found in going])  # slow: not under the lock
    alone = {holder.ref: holder.exclusive for holder in use.holders}
    for found in going:
        found.size = alone.get(found.ref, 0)
    size = use.freed_by([found.ref for found in going])
    if dry_run:
        return Pruned(going, staying, [], size)
    with store.changing():
        still = {(found.ref, found.tip) for found in find()[0]}
        going = [found for found in going if (found.ref, found.tip) in still]
        return Pruned(going, staying, rules.prune(store, going, automatic=automatic), size)


def on_remotes(store: StoreHandle) -> Container[bytes] | None:
    """Return the commits that every remote is known to have, None without remotes."""
    from snapstore.timeline.maintenance.prune import ancestors

    names = (store.documents.optional("remotes.json") or {}).get("remotes") or {}
    found: set[bytes] | None = None
    for name in names:
        pushed = (store.documents.optional(f"shared/{name}.json") or {}).get("pushed") or {}
        has = ancestors(store, [bytes.fromhex(commit) for _, commit in pushed.values()], set())
        found = has if found is None else found & has
    return found


def _pack_sizes(store: StoreHandle) -> list[int]:
    """Return the sizes of the packs that use space of this store's own."""
    sizes: list[int] = []
    for pack in store.shadow.objects.packs():
        try:
            st = os.stat(f"{pack.base}.pack")
        except FileNotFoundError:
            continue
        if not is_linked(st) and not is_kept(pack.base):
            sizes.append(st.st_size)
    return sizes


def _beside_packs(store: StoreHandle) -> int:
    """Return the size of other large files: pack indexes and the stat cache.

    Only files whose size is quick to find are counted.
    """
    size = 0
    for path in (*(f"{pack.base}.idx" for pack in store.shadow.objects.packs()), f"{store.state}/stat"):
        try:
            size += os.stat(path).st_size
        except FileNotFoundError:
            continue
    return size


def _interval_is_over(store: StoreHandle) -> bool:
    try:
        return abs(time.time() - os.stat(f"{store.state}/{_MARK}").st_mtime) > _INTERVAL
    except OSError:
        return True


def _note_start(store: StoreHandle) -> None:
    """Note that a run starts; not synced, since at worst the next run starts sooner."""
    path = f"{store.state}/{_MARK}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.utime(path)
