"""Endpoints for diffs, images, comparisons of two lines, and search."""

from __future__ import annotations

import os
from base64 import b64decode
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from snapstore.errors import Unknown, Usage
from snapstore.git.diff.patch import LARGEST, no_text, patch
from snapstore.git.objects.ids import BLOB, LINK, Entry
from snapstore.git.objects.trees import letter
from snapstore.surface.records.branches import CompareRecord
from snapstore.surface.records.web import DiffSideRecord, PageDiffRecord, SearchRecord
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.compare import Comparison
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange, path_json
from snapstore.timeline.history.patches import patched
from snapstore.timeline.history.search import search
from snapstore.timeline.moves.plan import PathMove
from snapstore.web.answers import refusal
from snapstore.web.project import Project, answer, below

LARGEST_IMAGE = 32 << 20
_TEXT, _BINARY, _LINK = "text", "binary", "link"
DISK = "disk"

# Image formats that hold pixels only. SVG can run scripts and is never shown as an image.
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def routes(project: Project) -> APIRouter:
    api = APIRouter()

    @api.get("/api/sessions/{name}/diff", response_model=PageDiffRecord)
    def diff(
        name: str,
        a: Annotated[str, Query(description="an address")],
        b: Annotated[str, Query(description="an address, or `disk`")] = DISK,
        path: Annotated[str | None, Query(description="one file; without it the list of files")] = None,
        path_b64: Annotated[str | None, Query(description="one file whose name is not UTF-8")] = None,
        was: Annotated[str | None, Query(description="the path that a renamed file had")] = None,
        was_b64: Annotated[str | None, Query(description="the same where it is not UTF-8")] = None,
    ) -> Response:
        wanted, before = _wanted(path, path_b64), _wanted(was, was_b64)
        with project.session(name) as session:
            history = History(session)
            trees = [history.disk() if side == DISK else history.tree(side) for side in (a, b)]
            if wanted is not None:
                change, lines = _one(history, wanted, before, trees)
                return answer(
                    PageDiffRecord.of_one(
                        session.name,
                        a,
                        b,
                        change=change,
                        patch=lines,
                        old=_side(history, before or wanted, change.old),
                        new=_side(history, wanted, change.new),
                    )
                )
            files, _ = patched(history, history.changes(*trees))
            return answer(PageDiffRecord.of_files(session.name, a, b, files))

    @api.get("/api/blobs/{oid}", response_class=Response)
    def blob(oid: str, type: Literal["image"] = "image") -> Response:
        with project.store() as store:
            objects = store.shadow.objects
            raw = bytes.fromhex(oid) if len(oid) == 40 and not set(oid) - set("0123456789abcdef") else b""
            if not raw or not objects.contains(raw):
                raise Unknown(f"there is no blob {oid[:60]!r}", "Read the diff again.")
            kind, size = objects.header(raw)
            data = objects.read(raw)[1] if kind == BLOB and size <= LARGEST_IMAGE else b""
        shown = image_type(data)
        if shown is None:
            return refusal(Usage("not an image that can be shown", "PNG, JPEG, GIF and WebP can."), 415)
        return Response(data, media_type=shown)

    @api.get("/api/sessions/{name}/compare", response_model=CompareRecord)
    def compare(name: str, a: str, b: str) -> Response:
        with project.session(name) as session:
            return answer(CompareRecord.of(Comparison(History(session), a, b)))

    @api.get("/api/sessions/{name}/search", response_model=SearchRecord)
    def find(name: str, q: Annotated[str, Query(min_length=1, max_length=200)]) -> Response:
        with project.session(name) as session:
            return answer(SearchRecord.of(search(view(session), q)))

    return api


def _wanted(path: str | None, path_b64: str | None) -> bytes | None:
    """Return the requested path. A path that is not UTF-8 must be given in base64.

    A URL cannot carry such a path as text.
    """
    if path_b64 is None:
        return below(path) if path is not None else None
    if path is not None:
        raise Usage("a path is given twice", "Give path or path_b64.")
    try:
        return below(os.fsdecode(b64decode(path_b64, validate=True)))
    except ValueError:
        raise Usage("path_b64 is not base64", "Send it as a document gave it.") from None


def _one(history: History, path: bytes, was: bytes | None, trees: list[bytes]) -> tuple[FileChange, list[bytes]]:
    """Return one file of a diff, with its patch."""
    shadow = history.store.shadow
    old, new = (shadow.trees.file(tree, name) for tree, name in zip(trees, (was or path, path), strict=True))
    if old is None and new is None:
        raise Unknown("neither side has this file", "Read the list of files again.", **path_json(path))
    change = FileChange(path, letter((path, old, new)), old, new)
    if was is not None and was != path and old is not None and new is not None:
        change = history.renamed(path, was, old, new)
    lines: list[bytes] = []
    if old != new or change.renamed_from is not None:
        found, lines = patched(history, [change])
        if not found:
            raise Unknown("this file no longer exists", "Read the list of files again.", **path_json(path))
        change = found[0]
    return change, lines


def planned(session: str, history: History, move: PathMove) -> PageDiffRecord:
    """Return what a plan would do to one file, compared with the disk.

    The result of a merge is not stored yet, so it is taken from the plan.
    """
    old, new = (state if isinstance(state, tuple) else None for state in (move.found, move.result))
    change = FileChange(move.path, letter((move.path, old, new)), old, new)
    if move.merged is None or new is None:
        found, lines = patched(history, [change]) if old != new else ([change], [])
        change = found[0] if found else change
        after = _side(history, move.path, new)
    else:
        before = history.store.writer("look", []).read(move.path, LARGEST + 1) or b""
        lines = list(patch(move.path, old, new, before, move.merged))
        after = DiffSideRecord(oid=new[1].hex(), size=len(move.merged), type=_TEXT, stored=False)
    before_it = _side(history, move.path, old)
    return PageDiffRecord.of_one(session, DISK, "", change=change, patch=lines, old=before_it, new=after)


def _side(history: History, path: bytes, entry: Entry | None) -> DiffSideRecord | None:
    if entry is None:
        return None
    objects = history.store.shadow.objects
    stored = objects.contains(entry[1], fresh=False)
    if stored:
        size = objects.header(entry[1])[1]
        data = objects.read(entry[1])[1] if size <= LARGEST_IMAGE else b"\0"
    else:  # on disk only
        there = history.store.writer("look", []).read(path, LARGEST + 1, link=entry[0] == LINK)
        if there is None:
            return None  # deleted since the scan
        data, size = there, len(there)
    kind = _LINK if entry[0] == LINK else image_type(data) or (_BINARY if no_text(data) else _TEXT)
    return DiffSideRecord(oid=entry[1].hex(), size=size, type=kind, stored=stored)


def image_type(data: bytes) -> str | None:
    """Return the type of an image by its first bytes. File names are not trusted."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
