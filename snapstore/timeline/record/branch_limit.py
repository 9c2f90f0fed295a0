"""Limit the branches per session (C4): warn, then archive the oldest.

The number of nodes is never limited, and no turn is refused. An archived branch is complete, and one command restores
it.
"""

from __future__ import annotations

from snapstore.base.text import timestamp
from snapstore.git.ref_names import HEADS, archive_ref, branch_ref
from snapstore.store.handle import StoreHandle
from snapstore.timeline.history.branch import checkpoints_on
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.operations import Operation, Operations, RefMove

_AT_ONCE = 5  # branches to archive per turn: after the limit was lowered, each turn stays quick


def archive_oldest(
    store: StoreHandle, session: str, files: dict[str, bytes | None], *, keep: str
) -> tuple[list[RefMove], list[str]]:
    """Return the ref moves that archive the oldest branches beyond the limit, and messages.

    The operation's record is added to `files`. The branch just left (`keep`) and branches with a checkpoint of their
    own are never archived.
    """
    limit = store.header.max_branches
    foreign = store.foreign().refs  # branches of other machines are neither counted nor moved
    heads = store.shadow.refs.list(f"{HEADS}{session}/")
    listed = {name: tip for name, tip in heads.items() if name not in foreign}
    count = len(listed) + 1
    crowded = is_crowded(store, count)
    if not limit or (count <= limit and not crowded):
        return [], []
    gone = _oldest(store, session, keep, min(count - limit, _AT_ONCE))
    if not gone:
        return [], [warning(session, count, limit)] if crowded else []
    moves: list[RefMove] = []
    for name in gone:
        ref, tip = branch_ref(session, name), listed[branch_ref(session, name)]
        moves += [(archive_ref(session, name), None, tip), (ref, tip, None)]
    names = ", ".join(gone)
    operation = Operation(
        number=Operations(store).next_number(),
        session=session,
        kind="branch archive",
        at=timestamp(store.clock()),
        what=f"archive of {names}: more than {limit} branches",
        arguments=gone,
        refs=moves,
    )
    while operation.document()[0] in files:  # a move that makes a node has added its own operation already
        operation.number += 1
    name, files[name] = operation.document()
    back = f"`snapstore ops undo {operation.number}` undoes that"
    return moves, [f"session {session} has more than {limit} branches, so {names} was archived; {back}"]


def _oldest(store: StoreHandle, session: str, keep: str, number: int) -> list[str]:
    if number <= 0:
        return []
    graph = Graph(store, session)
    names = sorted(graph.branches, key=lambda name: graph.node(graph.branches[name]).seq)
    found: list[str] = []
    for name in names:
        if name != keep and name not in graph.archived and not graph.owner_of(name) and not checkpoints_on(graph, name):
            found.append(name)
            if len(found) == number:
                break
    return found


def is_crowded(store: StoreHandle, count: int) -> bool:
    """Return whether `count` branches exceed the warning threshold."""
    return 0 < store.header.warn_branches <= count and store.header.max_branches > 0


def warning(session: str, count: int, limit: int) -> str:
    return (
        f"session {session} lists {count} branches; above {limit} the oldest are archived "
        "(`snapstore branches`, `snapstore branch delete --older 30d`)"
    )
