"""Answers: documents as ASCII JSON, and refusals of the family as a status and the document `--json` prints."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Response

from snapstore.errors import Busy, Conflict, SnapstoreError
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord

# What a page can do about it decides: ask otherwise (4xx), or tell the person to mend something first (503).
STATUSES = {
    "usage": 400,
    "unsafe": 403,
    "secret": 403,
    "unknown": 404,
    "no-store": 404,
    "conflict": 409,
    "busy": 423,
    "remote": 502,
    "interrupted": 503,
    "corrupt": 503,
    "failed": 503,
}


class Document(Response):
    """ASCII only: a path that is not UTF-8 holds lone surrogates, which no encoding would let through."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else json.dumps(content, separators=(",", ":")).encode("ascii")


def refusal(error: SnapstoreError, status: int | None = None) -> Document:
    """Answer with an error, and a hint that fits a page."""
    hint = None
    if isinstance(error, Conflict) and error.details.get("conflicts"):
        hint = "Nothing was written. Choose for each file: keep yours, take the other, or merge."
    elif isinstance(error, Busy) and "--cancel" in error.hint:
        hint = "Wait for the agent to finish, or close the turn with `snapstore turn end`."
    return Document(document(ErrorRecord.of(error, hint=hint)), status or STATUSES.get(error.name, 503))
