"""Build the `Redactor` for files that are being forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from snapstore.git.objects.ids import BLOB, GITLINK
from snapstore.git.ref_names import CURSORS
from snapstore.store.handle import StoreHandle
from snapstore.timeline.forget.drop import DropPaths
from snapstore.timeline.forget.path_selection import PathSelection
from snapstore.timeline.record.fragments import LARGEST, FragmentCollector
from snapstore.timeline.record.redact import Redactor

_MOST_KEPT = 1 << 25  # bytes of kept files to read: a line that they contain too is not redacted


def redactor_for(store: StoreHandle, selection: PathSelection, change: DropPaths) -> tuple[Redactor, list[bytes]]:
    """Return the redactor, and the files with too much content to search for all of it.

    A file may be recognized by its last path part alone, unless a folder is being forgotten.
    """
    alone = [path for path in change.paths if not selection.matches(path.rpartition(b"/")[0] or b"/", True)]
    pieces, objects = FragmentCollector(), store.shadow.objects
    for blob, path in reversed(change.blobs.items()):
        pieces.take(path, objects.header(blob)[1], lambda blob=blob: objects.read_kind(blob, BLOB))  # type: ignore[misc]
    pieces.spare(_kept_contents(store, change))
    return Redactor(store.root, selection.matches, selection.spelled(), pieces.all, alone), sorted(pieces.left)


def _kept_contents(store: StoreHandle, change: DropPaths) -> Iterator[bytes]:
    """Yield the contents of current files that are kept, up to a limit."""
    shadow = store.shadow
    seen = set(change.blobs)
    room = _MOST_KEPT
    for commit in dict.fromkeys(shadow.refs.list(CURSORS).values()):
        for _, (mode, blob) in shadow.trees.walk(shadow.commit(commit).tree):
            if mode == GITLINK or blob in seen:
                continue
            seen.add(blob)
            size = shadow.objects.header(blob)[1]
            if size <= LARGEST:
                room -= size
                if room < 0:
                    return
                yield shadow.objects.read_kind(blob, BLOB)
