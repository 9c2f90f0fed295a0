"""Usage statistics of a store (S1-67): sessions, branches, moves, size and health."""

from __future__ import annotations

from dataclasses import dataclass

from snapstore.api import Store
from snapstore.errors import SnapstoreError
from snapstore.git.ref_names import HEADS
from snapstore.store import log
from snapstore.store.disk_usage import folder_size
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.maintenance.check import Check, Problem

# Moves that leave turns behind.
_REWINDS = ("undo", "goto", "switch", "earlier", "ops undo")


@dataclass(frozen=True, slots=True)
class Health:
    """Known problems. `checked`: whether every reachable object was verified."""

    checked: bool
    problems: list[Problem]
    hook_errors: list[str]


@dataclass(frozen=True, slots=True)
class Stats:
    """Usage statistics of one store."""

    sessions: int
    sessions_rewound: int
    rewound_percent: float
    branches: int
    branches_per_session: float
    moves: int
    moves_taken_back: int
    taken_back_percent: float
    size_bytes: int
    max_store_size: int
    health: Health


def read_stats(store: Store, *, check: bool = False) -> Stats:
    """Compute the statistics of a store.

    With `check`, every reachable object is verified, which is slow.
    """
    sessions = store.sessions()
    operations = list(Operations(store).newest_first())
    moves = [operation for operation in operations if operation.from_ is not None]
    rewound = {operation.session for operation in moves if operation.kind in _REWINDS} & set(sessions)
    undone = Operations.undone_by(operations).keys() & {operation.number for operation in moves}
    branches = sum(len(store.shadow.refs.list(f"{HEADS}{name}/")) for name in sessions)
    return Stats(
        sessions=len(sessions),
        sessions_rewound=len(rewound),
        rewound_percent=round(100 * len(rewound) / len(sessions), 1) if sessions else 0.0,
        branches=branches,
        branches_per_session=round(branches / len(sessions), 2) if sessions else 0.0,
        moves=len(moves),
        moves_taken_back=len(undone),
        taken_back_percent=round(100 * len(undone) / len(moves), 1) if moves else 0.0,
        size_bytes=folder_size(store.folder),
        max_store_size=store.header.max_store_size,
        health=_health(store, check=check),
    )


def _health(store: Store, *, check: bool) -> Health:
    problems: list[Problem] = []
    if check:
        problems = Check(store).run().problems
    else:
        try:
            store.open_turns()
            for name in store.sessions():
                store.documents.session(name)
        except SnapstoreError as error:
            problems.append(Problem("state", error.message, error.name, error))
    return Health(check, problems, log.last(f"{store.folder}/log"))
