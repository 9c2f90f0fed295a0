"""The record of an error."""

from __future__ import annotations

from typing import Any, Self

from snapstore.errors import SnapstoreError
from snapstore.surface.records.base import Record, Text


class ErrorRecord(Record):
    """An error. Some errors have more fields, with their details."""

    error: str
    message: Text
    hint: Text

    @classmethod
    def of(cls, error: SnapstoreError, *, hint: str | None = None) -> Self:
        """Describe an error. `hint` replaces the hint of the error itself.

        A surface passes its own hint if its users cannot follow a hint for the shell.
        """
        details = {name: _described(name, value) for name, value in error.details.items()}
        return cls(error=error.name, message=error.message, hint=error.hint if hint is None else hint, **details)


def _described(name: str, value: Any) -> Any:
    """Return a detail of an error, with conflicts and findings as records.

    The imports are inside the function because few errors have such objects, and because an error may be reported when
    little else works.
    """
    if name == "conflicts":
        from snapstore.surface.records.moves import ConflictRecord

        return [ConflictRecord.of(move) for move in value]
    if name == "findings":
        from snapstore.surface.records.sharing import FindingRecord

        return [FindingRecord.of(finding) for finding in value]
    return value
