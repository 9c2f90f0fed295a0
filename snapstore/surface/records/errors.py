"""The record of a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapstore.surface.records.base import Record, Text

if TYPE_CHECKING:
    from typing import Self

    from snapstore.errors import SnapstoreError


class ErrorRecord(Record):
    """An error, with whatever details it has beside these fields."""

    error: str
    message: Text
    hint: Text

    @classmethod
    def of(cls, error: SnapstoreError, *, hint: str | None = None) -> Self:
        """Describe an error. `hint` replaces the error's own, for a reader who can do something else about it."""
        details = {name: _described(name, value) for name, value in error.details.items()}
        return cls(error=error.name, message=error.message, hint=error.hint if hint is None else hint, **details)


def _described(name: str, value: Any) -> Any:
    """Describe the objects that two kinds of errors carry: the conflicts of a move, the findings of a push.

    Imported here because almost no error has them, and an error may be told when little else works any more."""
    if name == "conflicts":
        from snapstore.surface.records.moves import ConflictRecord

        return [ConflictRecord.of(move) for move in value]
    if name == "findings":
        from snapstore.surface.records.sharing import FindingRecord

        return [FindingRecord.of(finding) for finding in value]
    return value
