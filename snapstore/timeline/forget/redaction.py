"""Builds the redaction of all records for files that are being forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from snapstore.git.objects.ids import BLOB, GITLINK
from snapstore.git.ref_names import CURSORS
from snapstore.store.handle import StoreHandle
from snapstore.timeline.forget.drop import DropPaths
from snapstore.timeline.forget.path_selection import PathSelection
from snapstore.timeline.record.fragments import LARGEST, FragmentCollector
from snapstore.timeline.record.redact import Redactor

_MOST_STAYING = 1 << 25  # bytes of kept files that are searched for lines that are no secret


def scrub_of(store: StoreHandle, meant: PathSelection, change: DropPaths) -> tuple[Redactor, list[bytes]]:
    """Return the redaction, and the files whose content it does not fully search for.

    A conversation may name a file by its last path part alone, but not a folder.
    """
    alone = [path for path in change.paths if not meant.matches(path.rpartition(b"/")[0] or b"/", True)]
    pieces, objects = FragmentCollector(), store.shadow.objects
    for blob, path in reversed(change.blobs.items()):
        pieces.take(path, objects.header(blob)[1], lambda blob=blob: objects.read_kind(blob, BLOB))  # type: ignore[misc]
    pieces.spare(_staying(store, change))
    return Redactor(store.root, meant.matches, meant.spelled(), pieces.all, alone), sorted(pieces.left)


def _staying(store: StoreHandle, change: DropPaths) -> Iterator[bytes]:
    """Yield the contents of current files that are kept, up to a limit."""
    shadow = store.shadow
    seen = set(change.blobs)
    room = _MOST_STAYING
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
