"""Pydantic records: one class per document that `--json`, HTTP or MCP returns.

`NodeRecord.of(node)` and its like build a record from an object of a lower layer.
`base.document(record)` returns the document to print. Fields are added, never renamed.

Pydantic compiles a record when it is first used, so a command pays only for the few records it needs. A process that
serves many commands calls `load_all` once, and its children inherit the compiled records.
"""

from __future__ import annotations

from importlib import import_module

# `web` is missing: only the server of the page needs it.
_MODULES = (
    "agents",
    "base",
    "branches",
    "config",
    "errors",
    "forgetting",
    "keeping",
    "moves",
    "nodes",
    "setup",
    "sharing",
    "status",
)


def load_all() -> None:
    """Import and compile every record that a command can print."""
    from snapstore.surface.records.base import Record

    for name in _MODULES:
        import_module(f"{__name__}.{name}")
    waiting = [Record]
    while waiting:
        record = waiting.pop()
        waiting += record.__subclasses__()
        record.model_rebuild()
