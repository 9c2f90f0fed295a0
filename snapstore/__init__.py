"""Undo for coding agents: every turn is a commit in a shadow git repository.

    from snapstore import Store
    store = Store.open(".", create=True)
    with store.session("s1").turn("Add a login function") as turn:
        ...            # edit files; call turn.touch(path) for known paths, otherwise the turn scans

Names are loaded on first use: `import snapstore` alone costs nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

_API = ("Moved", "Plan", "Policy", "Session", "Store", "Turn", "TurnSnapshot")
_PLACES = dict.fromkeys(_API, "snapstore.api")
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
    from snapstore.api import Moved, Plan, Policy, Session, Store, Turn, TurnSnapshot
    from snapstore.errors import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'snapstore' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
