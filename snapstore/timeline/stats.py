"""How a store is used, in numbers (S1-67): how often people go back, how many ways on there are, how it is doing."""

from __future__ import annotations

from snapstore.errors import SnapstoreError
from snapstore.timeline import logbook
from snapstore.timeline.ops import Operations
from snapstore.timeline.status import folder_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.timeline.store import Store

# Moves that leave turns behind.
_REWINDS = ("undo", "goto", "switch", "earlier", "ops undo")


def read_stats(store: Store, *, check: bool = False) -> dict[str, Any]:
    """With `check` every reachable object is looked for, which takes its time."""
    sessions = store.sessions()
    operations = list(Operations(store).newest_first())
    moves = [operation for operation in operations if operation.from_ is not None]
    rewound = {operation.session for operation in moves if operation.kind in _REWINDS} & set(sessions)
    taken_back = Operations.taken_back(operations).keys() & {operation.number for operation in moves}
    branches = sum(len(store.shadow.refs.list(f"refs/heads/{name}/")) for name in sessions)
    return {
        "sessions": len(sessions),
        "sessions_rewound": len(rewound),
        "rewound_percent": round(100 * len(rewound) / len(sessions), 1) if sessions else 0.0,
        "branches": branches,
        "branches_per_session": round(branches / len(sessions), 2) if sessions else 0.0,
        "moves": len(moves),
        "moves_taken_back": len(taken_back),
        "taken_back_percent": round(100 * len(taken_back) / len(moves), 1) if moves else 0.0,
        "size_bytes": folder_size(store.folder),
        "max_store_size": store.header.max_store_size,
        "health": _health(store, check=check),
    }


def _health(store: Store, *, check: bool) -> dict[str, Any]:
    problems: list[dict[str, Any]] = []
    if check:
        from snapstore.timeline.check import Check

        problems = Check(store).run().problems
    else:
        try:
            store.open_turns()
            for name in store.sessions():
                store.documents.session(name)
        except SnapstoreError as error:
            problems.append({"where": "state", "message": error.message})
    return {
        "ok": not problems,
        "checked": check,
        "problems": [{"where": found["where"], "message": found["message"]} for found in problems],
        "hook_errors": logbook.last(f"{store.folder}/log"),
    }
