"""Undo for coding agents: every turn is a commit in a shadow git repository.

    from snapstore import Store
    store = Store.open(".", create=True)
    with store.session("s1").turn("Add a login function") as turn:
        ...            # edit files; turn.touch(path) if you know them, else it scans

Names are loaded on first use: `import snapstore` alone costs nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

_PLACES = {"Store": "snapstore.store.handle", "Session": "snapstore.timeline.record.session"}
_PLACES["Turn"] = _PLACES["Session"]
_PLACES.update(
    Plan="snapstore.timeline.moves.plan",
    Policy="snapstore.timeline.moves.plan",
    Moved="snapstore.timeline.moves.execute",
)
_PLACES["TurnSnapshot"] = "snapstore.timeline.history.snapshots"
_ERRORS = [
    "SnapstoreError",
    "Failed",
    "Usage",
    "Conflict",
    "Busy",
    "Interrupted",
    "NoStore",
    "Corrupt",
    "Unsafe",
    "Unknown",
    "Remote",
    "Secret",
]
_PLACES.update(dict.fromkeys(_ERRORS, "snapstore.errors"))

__all__ = ["Moved", "Plan", "Policy", "Session", "Store", "Turn", "TurnSnapshot", *_ERRORS]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.errors import *  # noqa: F403
    from snapstore.store.handle import Store
    from snapstore.timeline.history.snapshots import TurnSnapshot
    from snapstore.timeline.moves.execute import Moved
    from snapstore.timeline.moves.plan import Plan, Policy
    from snapstore.timeline.record.session import Session, Turn


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'snapstore' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
