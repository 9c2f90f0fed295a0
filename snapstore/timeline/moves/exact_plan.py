"""Plan the steps of an exact move, which restores the whole tree of a node, edits too."""

from __future__ import annotations

from collections.abc import Iterable

from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import paths_in, read_node
from snapstore.timeline.moves.plan import PathStep
from snapstore.timeline.record.session import RecordingSession


def exact_steps(
    session: RecordingSession, graph: Graph, target: bytes, between: Iterable[bytes]
) -> tuple[bytes, list[PathStep], set[bytes]]:
    """Return the disk's tree, the steps to the target's tree, and files to keep.

    A file to keep was first seen after the target was recorded. The file may have existed at the target, so it is not
    removed.
    """
    disk, unknown = History(session).look_at_disk()
    trees, wanted = session.store.shadow.trees, graph.node(target).tree
    steps = list(trees.diff(disk, wanted))
    kept: set[bytes] = set()
    if any(new is None for _, _, new in steps):
        records = [read_node(session.store.shadow, oid, files=False).record for oid in between]
        seen = unknown.union(*(paths_in(record, "first_seen") for record in records))
        gone = [path for path, _, new in steps if new is None and path in seen]
        # If the target has a file where the path needs a folder, the path did not exist at the target.
        kept = {path for path in gone if not any(trees.file(wanted, folder) for folder in trees.missing(wanted, path))}
        steps = [step for step in steps if step[0] not in kept]
    return disk, steps, kept
