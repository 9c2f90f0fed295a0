"""The base class of records, and helpers for paths, patches and JSON.

A path that is not UTF-8 is text with surrogate escapes, and is repeated in base64. Pydantic's own string type refuses
such text. `Text` therefore only checks that a value is a string, and documents are dumped as Python objects and encoded
as ASCII JSON.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from snapstore.timeline.history.nodes import path_json


class _AnyText:
    """Any string, surrogate escapes included.

    Only pydantic's compiled code checks the type, because a record has a dozen such fields.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        checked = core_schema.json_or_python_schema(core_schema.str_schema(), core_schema.is_instance_schema(str))
        return core_schema.custom_error_schema(checked, "not_text", custom_error_message="Value error, not text")


Text = Annotated[str, _AnyText, WithJsonSchema({"type": "string"})]

Kind = Literal["baseline", "turn", "edits", "revert", "apply", "restore"]
Change = Literal["A", "M", "D", "T"]
FoundBy = Literal["named", "watched", "scanned", "replayed"]


class Record(BaseModel):
    """One document, or a part of one. Unknown fields are kept: a newer program may have added them."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, populate_by_name=True)


class PathRecord(Record):
    path: Text
    path_b64: str | None = Field(default=None, description="present when the path is not UTF-8")


class PlainPathRecord(PathRecord):
    """A path without further fields."""

    @classmethod
    def of(cls, path: bytes) -> Self:
        return cls(**path_json(path))


class PatchFields(TypedDict):
    """The fields of a patch, as `patch_fields` returns them."""

    patch: str
    patch_b64: NotRequired[str]


def patch_fields(lines: Iterable[bytes]) -> PatchFields:
    """Return a patch as text, plus base64 if the patch is not UTF-8.

    Text that is not UTF-8 has surrogate escapes.
    """
    patch = b"".join(lines)
    try:
        return {"patch": patch.decode("utf-8")}
    except UnicodeDecodeError:
        return {"patch": os.fsdecode(patch), "patch_b64": b64encode(patch).decode()}


def path_texts(paths: Iterable[bytes]) -> list[str]:
    """Return paths as text. `paths_b64` repeats those that are not UTF-8."""
    return [os.fsdecode(path) for path in paths]


def paths_b64(paths: Iterable[bytes]) -> dict[str, str]:
    """Return the non-UTF-8 paths in base64, keyed by their text in path lists."""
    named = [path_json(path) for path in paths]
    return {item["path"]: item["path_b64"] for item in named if "path_b64" in item}


def document(record: Record) -> dict[str, Any]:
    """Return a record as the document to print, without unset optional fields."""
    return record.model_dump(exclude_unset=True, by_alias=True)


def json_text(record: Record) -> str:
    """Return a record as ASCII JSON, encoded by pydantic where possible.

    Pydantic is faster than `json`, but fails on text that it cannot escape.
    """
    try:
        text = record.model_dump_json(exclude_unset=True, by_alias=True)
    except (PydanticSerializationError, UnicodeEncodeError):  # a lone surrogate, as in a path that is not UTF-8
        text = ""
    return text if text and text.isascii() else json.dumps(document(record))
