"""The records that cross a border: what `--json` prints, and programs build on. Fields are added, never renamed.

A path that is not UTF-8 is text with surrogate escapes, and is given again in base64. pydantic's own text type refuses
such text, so `Text` only checks that it is text, and documents are dumped as Python objects and encoded as ASCII JSON.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not text")
    return value


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]

Kind = Literal["baseline", "turn", "edits", "revert", "apply", "restore"]
Change = Literal["A", "M", "D", "T"]
FoundBy = Literal["named", "watched", "scanned", "replayed"]


class Record(BaseModel):
    """What it does not know it keeps: a newer part of the program may have added it."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, populate_by_name=True)


class PathRecord(Record):
    path: Text
    path_b64: str | None = Field(default=None, description="present when the path is not UTF-8")


class ErrorRecord(Record):
    error: str
    message: Text
    hint: Text


R = TypeVar("R", bound=Record)


def dump(kind: type[R], document: dict[str, Any]) -> dict[str, Any]:
    """A document, checked against its record, ready for json.dumps."""
    return kind.model_validate(document).model_dump(exclude_unset=True, by_alias=True)
