"""Endpoints that preview or execute the same moves as the command line."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from snapstore.api import Session
from snapstore.errors import Unknown, Usage
from snapstore.surface.move_request import MoveRequest, carry_out, plan_move, preview_move
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.web import MergeRecord, MergeRequest, PageDiffRecord
from snapstore.surface.records.web import MoveRequest as MoveBody
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import path_json
from snapstore.timeline.moves.plan import FORCE, MARKERS, MERGE, SKIP, Plan, Policy
from snapstore.timeline.moves.three_way import three_way
from snapstore.web.project import Project, answer, below
from snapstore.web.routes.diff import planned

_TRAVELS = ("undo", "redo", "goto", "switch")
_COUNTED = ("undo", "redo")


def routes(project: Project) -> APIRouter:
    api = APIRouter(responses={409: {"model": ErrorRecord}, 404: {"model": ErrorRecord}, 423: {"model": ErrorRecord}})

    @api.post("/api/sessions/{name}/preview", response_model=MoveRecord)
    def preview(name: str, request: MoveBody) -> Response:
        with project.moving(name, counted=False) as session:
            return answer(MoveRecord.of(preview_move(session, asked(request)), preview=True))

    @api.post("/api/sessions/{name}/preview/diff", response_model=PageDiffRecord)
    def preview_diff(name: str, request: MergeRequest) -> Response:
        """Return the diff of one file of a preview: from the disk to the result of the move."""
        path = below(request.path)
        with project.session(name) as session:
            found = next((move for move in plan_move(session, asked(request)).paths if move.path == path), None)
            if found is None:
                raise Unknown(
                    "this file is not part of the move", "A preview lists the files that are.", **path_json(path)
                )
            return answer(planned(name, History(session), found))

    @api.post("/api/sessions/{name}/move", response_model=MoveRecord)
    def move(name: str, request: MoveBody) -> Response:
        if request.expected is None:
            raise Usage("the field `expected` is missing", "Send the cursor that the tree gave as `expected`.")
        with project.moving(name) as session:
            return answer(MoveRecord.of(carry_out(session, asked(request)).moved))

    @api.post("/api/sessions/{name}/merge", response_model=MergeRecord)
    def merge(name: str, request: MergeRequest) -> Response:
        path = below(request.path)
        with project.session(name) as session:
            return answer(MergeRecord.of(path, three_way(session, plan_move(session, asked(request)), path)))

    return api


def asked(request: MoveBody) -> MoveRequest[None]:
    """Return the request of a page as the request that all surfaces share."""
    _fits(request)
    return MoveRequest(
        lambda session, how: _made(session, request, how),
        Policy(request.on_conflict, each={below(path): way for way, paths in _ways(request) for path in paths}),
        {"scope": request.scope, "exact": request.exact} if request.move in _TRAVELS else {},
        expected=request.expected,
        to=request.to,
        branch=request.branch,
        seen={below(path): found for path, found in request.seen.items()},
    )


def _made(session: Session, request: MoveBody, how: dict[str, Any]) -> Plan:
    address = request.address or ""
    if request.move == "undo":
        return session.plan_undo(request.count or 1, **how)
    if request.move == "redo":
        return session.plan_redo(None if request.all else request.count or 1, **how)
    if request.move == "goto":
        return session.plan_goto(address, **how)
    if request.move == "switch":
        return session.plan_switch(address, **how)
    if request.move == "revert":
        return session.plan_revert(address, **how)
    if request.move == "apply":
        return session.plan_apply(address, **how)
    return session.plan_restore(address, [below(path) for path in request.paths], **how)


def _fits(request: MoveBody) -> None:
    """Raise Usage if a field has no meaning for the move.

    If such a field were ignored, the move would not be the one that the person wanted.
    """
    wrong = [
        name
        for name, given, moves in (
            ("count", request.count is not None, _COUNTED),
            ("all", request.all, ("redo",)),
            ("paths", bool(request.paths), ("restore",)),
            ("scope", request.scope != "both", _TRAVELS),
            ("exact", request.exact, _TRAVELS),
        )
        if given and request.move not in moves
    ]
    if wrong:
        raise Usage(f"{request.move} takes no {wrong[0]}", "Leave it out.")
    if (request.move in _COUNTED) == bool(request.address):
        word = "takes no" if request.address else "needs an"
        raise Usage(f"{request.move} {word} address", "Undo and redo take a count, other moves an address.")
    if request.move == "restore" and not request.paths:
        raise Usage("which files?", "Name them in `paths`.")
    if request.exact and request.scope == "conversation":
        raise Usage("exact concerns files, which this scope leaves alone", "Choose one of them.")
    ways: dict[str, str] = {}
    for way, paths in _ways(request):
        for path in paths:
            if ways.setdefault(path, way) != way:
                raise Usage(f"two ways are chosen for {path!r}", "Choose one of them.")


def _ways(request: MoveBody) -> list[tuple[str, list[str]]]:
    return [(SKIP, request.ours), (FORCE, request.theirs), (MERGE, request.merge), (MARKERS, request.markers)]
