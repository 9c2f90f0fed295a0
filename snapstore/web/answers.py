"""Responses: documents as ASCII JSON, and errors as a status plus a document.

The document of an error is the one that `--json` prints.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import Response

from snapstore.errors import Busy, Conflict, SnapstoreError
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord

# 4xx if another request may succeed, 503 if a person has to fix something first.
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
    """A JSON response in ASCII.

    A path that is not UTF-8 contains lone surrogates, which no other encoding accepts.
    """

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else json.dumps(content, separators=(",", ":")).encode("ascii")


def refusal(error: SnapstoreError, status: int | None = None) -> Document:
    """Respond with an error, and with a hint that fits a page."""
    hint = None
    if isinstance(error, Conflict) and error.details.get("conflicts"):
        hint = "Nothing was written. Choose for each file: keep yours, take the other, or merge."
    elif isinstance(error, Busy) and "--cancel" in error.hint:
        hint = "Wait for the agent to finish, or close the turn with `snapstore turn end`."
    return Document(document(ErrorRecord.of(error, hint=hint)), status or STATUSES.get(error.name, 503))
