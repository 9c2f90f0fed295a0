"""Endpoints of earlier products on top of our moves.

The endpoints are the undo-state and file operations of S0, the rewind_session of S1, and the undo and revert of S2.
Requests that would change the file of a conversation are refused (C1).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response

from snapstore.api import Session
from snapstore.errors import Conflict, Unknown, Usage
from snapstore.store.conversations import Conversations
from snapstore.surface.move_request import MoveRequest, carry_out
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.seeds import (
    DeleteFileRequest,
    EditRequest,
    FileRequest,
    RevertRequest,
    RewindRequest,
    UndoneRecord,
    UndoRequest,
    UndoStateRecord,
    UndoStateRequest,
    VerifiedRecord,
    VerifyRequest,
    WriteFileRequest,
)
from snapstore.timeline.history.addresses import resolve
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.nodes import read_node
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.moves.file_edit import FileEdit
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import Plan
from snapstore.timeline.moves.stale import expect
from snapstore.web.answers import refusal
from snapstore.web.project import Project, answer
from snapstore.web.routes.branches import move_and_fork


def routes(project: Project) -> APIRouter:
    api = APIRouter(responses={409: {"model": ErrorRecord}, 404: {"model": ErrorRecord}, 423: {"model": ErrorRecord}})

    @api.get("/api/undo-state/{id}", response_model=UndoStateRecord)
    def state(id: str) -> Response:
        with project.session(id) as session:
            return answer(UndoStateRecord.of(session, id))

    @api.post("/api/undo-state/{id}", response_model=UndoStateRecord)
    def save_state(id: str, request: UndoStateRequest) -> Response:
        """Refuse a state that differs from the store's; nothing else is ever saved."""
        with project.session(id) as session:
            found = UndoStateRecord.of(session, id)
            state = document(found)
            asked = request.model_dump(exclude_unset=True)
            if any(asked[name] != state[name] for name in asked):
                raise Conflict(
                    "the store has another state", "Nothing was saved. Move with /move.", stale=True, state=state
                )
            return answer(found)

    def change(request: FileRequest, plan: Callable[[FileEdit], Plan]) -> Response:
        with project.moving(request.sessionId) as session:
            moved = _carried_out(session, lambda: plan(_file(session, request.filePath)), request.expected)
            return answer(MoveRecord.of(moved))

    @api.post("/api/undo/apply-edit", response_model=MoveRecord)
    def apply_edit(request: EditRequest) -> Response:
        old, new = _bytes(request.oldString), _bytes(request.newString)
        if request.reverse:
            old, new = new, old
        if not old:
            raise Usage("there is no text to replace", "Use write-file for a whole file.")
        return change(request, lambda file: file.edit(old, new, every=request.replaceAll))

    @api.post("/api/undo/write-file", response_model=MoveRecord)
    def write_file(request: WriteFileRequest) -> Response:
        data = _bytes(request.content)
        return change(request, lambda file: file.write(data))

    @api.post("/api/undo/delete-file", response_model=MoveRecord)
    def delete_file(request: DeleteFileRequest) -> Response:
        content = _bytes(request.content) if request.content is not None else None
        return change(request, lambda file: file.remove(content))

    @api.post("/api/undo/verify-file", response_model=VerifiedRecord)
    def verify_file(request: VerifyRequest) -> Response:
        if (request.content is None) == (request.contains is None):
            raise Usage("give either `content` or `contains`", "Give one of the two.")
        with project.store() as store:
            found = _file(store.session(), request.filePath).content()
        if request.content is not None:
            fits = found == _bytes(request.content)
        else:
            fits = found is not None and _bytes(request.contains or "") in found
        return answer(VerifiedRecord(filePath=request.filePath, exists=found is not None, matches=fits))

    @api.patch("/api/sessions/{folder}/{file}", include_in_schema=False)
    def truncate(folder: str, file: str) -> Response:
        why = "an agent's conversation is never truncated: only the agent writes that file"
        hint = "Go to the turn and fork there: POST /api/sessions/{session}/fork. The undone lines stay readable."
        answer = refusal(Usage(why, hint, fork="/api/sessions/{session}/fork"), 405)
        answer.headers["allow"] = "GET, POST"
        return answer

    @api.post("/session/{id}/undo", response_model=UndoneRecord)
    def undo(id: str, request: UndoRequest) -> Response:
        """Undo turns. At least one remains, unless `allow_first` is set (C3)."""
        with project.moving(id) as session:
            expect(session, request.expected)
            graph = view(session)
            turns = sum(node.turn is not None for node in graph.upwards(graph.cursor))
            count = min(request.count, turns if request.allow_first else turns - 1)
            if count < 1:
                return answer(UndoneRecord.nothing())
            return _told(session, lambda: session.plan_undo(count), request.expected)

    @api.post("/session/{id}/revert", response_model=UndoneRecord)
    def revert(id: str, request: RevertRequest) -> Response:
        """Go to before a message, or before the last turn."""
        with project.moving(id) as session:
            expect(session, request.expected)
            graph = view(session)
            before = [node for node in graph.upwards(graph.cursor) if node.turn is not None]
            if request.messageID is None:
                count = 1
            else:
                shadow = session.store.shadow
                found = (
                    at for at, node in enumerate(before, 1) if _has(read_node(shadow, node.oid), request.messageID)
                )
                count = next(found, 0)
                if not count:
                    raise Unknown(
                        "there is no such message on this line", "The tree has the turns.", messageID=request.messageID
                    )
            if not before:
                return answer(UndoneRecord.nothing())
            return _told(session, lambda: session.plan_undo(count), request.expected)

    @api.post("/session/{id}/unrevert", response_model=UndoneRecord)
    def unrevert(id: str, request: RevertRequest) -> Response:
        """Go back to where the session was before its last undo, with files (C25)."""
        with project.moving(id) as session:
            expect(session, request.expected)
            before = _before_last(session)
            if before is None:
                return _told(session, lambda: session.plan_redo(None), request.expected)
            return _told(session, lambda: session.plan_goto(before), request.expected)

    @api.post("/api/events", response_model=MoveRecord)
    def message(request: RewindRequest) -> Response:
        """Rewind files and conversation to a turn, in a new agent session (S1-26)."""
        with project.moving(request.sessionId) as session:
            address = str(request.rewindToTurn)
            try:
                resolve(view(session), address)
            except Unknown as error:
                raise Usage(error.message, error.hint, turn=request.rewindToTurn) from None
            if Conversations(session.store).state(session.name) is None:  # a person at a shell: only files are restored
                moved = _carried_out(session, lambda: session.plan_goto(address), request.expected)
                return answer(MoveRecord.of(moved).with_fork(None))
            return answer(move_and_fork(session, address, request.expected))

    return api


def _carried_out(session: Session, plan: Callable[[], Plan], expected: str | None) -> Moved:
    """Execute a move without options: any conflict refuses it."""
    return carry_out(session, MoveRequest[None](lambda _session, _how: plan(), expected=expected)).moved


def _told(session: Session, plan: Callable[[], Plan], expected: str | None) -> Response:
    return answer(UndoneRecord.of(_carried_out(session, plan, expected)))


def _before_last(session: Session) -> str | None:
    """Return the cursor before the session's last operation.

    Return None unless that operation moved back along the session's line.
    """
    graph = view(session)
    own = (found for found in Operations(session.store).newest_first() if found.session == session.name)
    last = next(own, None)
    if last is None or not last.from_ or not last.to or last.to["commit"] != graph.cursor.hex():
        return None
    left, entered = graph.path(graph.cursor, bytes.fromhex(last.from_["commit"]))
    return str(last.from_["commit"]) if entered and not left else None


def _has(node: Any, message: str) -> bool:
    about = node.record.get("conversation")
    ids = (about.get("message_id"), about.get("prompt_id")) if isinstance(about, dict) else ()
    return message in (node.commit, *ids)


def _file(session: Session, path: str) -> FileEdit:
    """Return a file that an agent names by a relative or an absolute path.

    A path outside the root is refused.
    """
    try:
        full = os.path.join(session.store.root, os.fsencode(path))
    except UnicodeEncodeError:
        raise Usage("not a path", "Name a file of the project.") from None
    if b"\0" in full:
        raise Usage("not a path", "Name a file of the project.")
    return FileEdit(session, session.inside(full))


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Usage("not valid text: it has a lone surrogate", "Send the text as UTF-8.") from None
