"""The whole tree as it was at a node: the one move that takes back edits too."""

from __future__ import annotations

from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import paths_in, read_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.timeline.history.graph import Graph
    from snapstore.timeline.moves.plan import PathStep
    from snapstore.timeline.record.session import RecordingSession


def exact_steps(
    session: RecordingSession, graph: Graph, target: bytes, between: Iterable[bytes]
) -> tuple[bytes, list[PathStep], set[bytes]]:
    """The tree of the disk, what it takes to make it that of the target, and the files that are not removed: those that
    came into view later, and may have been there all along."""
    disk, unknown = History(session).look_at_disk()
    trees, wanted = session.store.shadow.trees, graph.node(target).tree
    steps = list(trees.diff(disk, wanted))
    kept: set[bytes] = set()
    if any(new is None for _, _, new in steps):
        records = [read_node(session.store.shadow, oid, files=False).record for oid in between]
        seen = unknown.union(*(paths_in(record, "first_seen") for record in records))
        gone = [path for path, _, new in steps if new is None and path in seen]
        # A file in the place of its folder: then it was not there.
        kept = {path for path in gone if not any(trees.file(wanted, folder) for folder in trees.missing(wanted, path))}
        steps = [step for step in steps if step[0] not in kept]
    return disk, steps, kept
