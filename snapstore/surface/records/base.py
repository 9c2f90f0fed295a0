"""The parts that all records share: their base class, paths, patches, and the way to a document.

A path that is not UTF-8 is text with surrogate escapes, and is given again in base64. pydantic's own text type refuses
such text, so `Text` only checks that it is text, and documents are dumped as Python objects and encoded as ASCII JSON.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from snapstore.timeline.history.nodes import path_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NotRequired, Self


class _AnyText:
    """Text of any kind. Checked by pydantic's compiled code alone: a record has a dozen such fields."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        checked = core_schema.json_or_python_schema(core_schema.str_schema(), core_schema.is_instance_schema(str))
        return core_schema.custom_error_schema(checked, "not_text", custom_error_message="Value error, not text")


Text = Annotated[str, _AnyText, WithJsonSchema({"type": "string"})]

Kind = Literal["baseline", "turn", "edits", "revert", "apply", "restore"]
Change = Literal["A", "M", "D", "T"]
FoundBy = Literal["named", "watched", "scanned", "replayed"]


class Record(BaseModel):
    """One document, or a part of one. A field that it does not know is kept: a newer program may have added it."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, populate_by_name=True)


class PathRecord(Record):
    path: Text
    path_b64: str | None = Field(default=None, description="present when the path is not UTF-8")


class PlainPathRecord(PathRecord):
    """A path, and nothing said about it."""

    @classmethod
    def of(cls, path: bytes) -> Self:
        return cls(**path_json(path))


class PatchFields(TypedDict):
    """The fields of a patch, as `patch_fields` makes them."""

    patch: str
    patch_b64: NotRequired[str]


def patch_fields(lines: Iterable[bytes]) -> PatchFields:
    """Return a patch as text; one that is not UTF-8 with surrogate escapes, and again in base64."""
    patch = b"".join(lines)
    try:
        return {"patch": patch.decode("utf-8")}
    except UnicodeDecodeError:
        return {"patch": os.fsdecode(patch), "patch_b64": b64encode(patch).decode()}


def path_texts(paths: Iterable[bytes]) -> list[str]:
    """Return paths as text, for a list that gives those that are not UTF-8 again in `paths_b64`."""
    return [os.fsdecode(path) for path in paths]


def paths_b64(paths: Iterable[bytes]) -> dict[str, str]:
    """Return the paths that are not UTF-8 in base64, by the text that stands for them in lists."""
    named = [path_json(path) for path in paths]
    return {item["path"]: item["path_b64"] for item in named if "path_b64" in item}


def document(record: Record) -> dict[str, Any]:
    """Return a record as the document that is printed. Optional fields that were not set are left out."""
    return record.model_dump(exclude_unset=True, by_alias=True)


def json_text(record: Record) -> str:
    """Return a record as ASCII JSON, quickly: pydantic encodes it, unless it holds text that pydantic cannot escape."""
    try:
        text = record.model_dump_json(exclude_unset=True, by_alias=True)
    except (PydanticSerializationError, UnicodeEncodeError):  # half a character, as in a path that is not UTF-8
        text = ""
    return text if text and text.isascii() else json.dumps(document(record))
