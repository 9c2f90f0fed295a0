"""The pydantic records: one description of each document that `--json` prints, HTTP answers or MCP gives.

A record is built once, from an object of the timeline, by its own constructor (`NodeRecord.of(node)`), and
`base.document(record)` is what is printed. Fields are added, never renamed.

pydantic compiles a record when it is first used, so a command pays for the few that it needs. A process that serves
many commands calls `load_all` once, and its children pay nothing.
"""

from __future__ import annotations

from importlib import import_module

# `web` is missing: only the page's own server needs it.
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
