"""Records of the program itself.

The records cover the version, help, shell scripts, the address of the page and the warm process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from snapstore.surface.records.base import Record, Text

if TYPE_CHECKING:
    from snapstore.daemon.control import Running


class VersionRecord(Record):
    version: str


class HelpRecord(Record):
    command: str
    help: Text


class ScriptRecord(Record):
    """A script for a shell to evaluate."""

    shell: str
    script: Text


class ServerRecord(Record):
    """Where the page is served."""

    url: str
    port: int


class DaemonRecord(Record):
    """The warm process of this user and installation.

    The optional fields are present if it runs, `started_at` and `served` only if it answers.
    """

    running: bool
    version: str
    pid: int | None = None
    socket: Text | None = None
    started_at: float | None = None
    served: int | None = None
    memory_bytes: int | None = None

    @classmethod
    def of(cls, found: Running | None, version: str) -> Self:
        if found is None:
            return cls(running=False, version=version)
        return cls(
            running=True,
            version=version,
            pid=found.pid,
            socket=found.socket,
            started_at=found.started_at,
            served=found.served,
            memory_bytes=found.memory_bytes,
        )


class DaemonStopRecord(Record):
    stopped: bool
