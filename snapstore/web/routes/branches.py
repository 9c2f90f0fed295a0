"""Endpoints for branches, checkpoints and forks of a conversation.

Every change carries the cursor that the page saw (C15).
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Response

from snapstore.agents.capabilities import NONE, capability
from snapstore.agents.fork import ConversationFork
from snapstore.api import Session
from snapstore.errors import Unknown
from snapstore.store.conversations import Conversations
from snapstore.surface.move_request import MoveRequest, carry_out
from snapstore.surface.records.branches import ChangeRecord
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.web import CheckpointRequest, DeleteRequest, Expecting, ForkRequest, RenameRequest
from snapstore.timeline.history.addresses import resolve
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.operations import Operation
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.stale import changing
from snapstore.web.project import Project, answer

Change = Callable[[Session], Operation | None]


def routes(project: Project) -> APIRouter:
    api = APIRouter(responses={409: {"model": ErrorRecord}, 404: {"model": ErrorRecord}, 423: {"model": ErrorRecord}})

    def change(name: str, expected: str, what: str, made: Change) -> Response:
        with project.session(name) as session:
            operation = changing(session, expected, lambda: made(session))
            said = what if operation is not None else "There was nothing to do."
            return answer(ChangeRecord.of(session, operation, said))

    # Declared before the routes with a branch name: a branch may have any name, and `delete` here is no branch.
    @api.post("/api/sessions/{name}/branches/delete", response_model=ChangeRecord)
    def delete_all(name: str, request: DeleteRequest) -> Response:
        what = f"Deleted {len(request.names)} branches."
        return change(name, request.expected, what, lambda session: Branches(session).delete_all(request.names))

    @api.post("/api/sessions/{name}/branches/{branch}/rename", response_model=ChangeRecord)
    def rename(name: str, branch: str, request: RenameRequest) -> Response:
        what = f"Branch {branch} is now called {request.to}."
        return change(name, request.expected, what, lambda session: Branches(session).rename(branch, request.to))

    @api.post("/api/sessions/{name}/branches/{branch}/archive", response_model=ChangeRecord)
    def archive(name: str, branch: str, request: Expecting) -> Response:
        what = f"Branch {branch} is archived; nothing of it is lost."
        return change(name, request.expected, what, lambda session: Branches(session).archive(branch))

    @api.post("/api/sessions/{name}/branches/{branch}/unarchive", response_model=ChangeRecord)
    def unarchive(name: str, branch: str, request: Expecting) -> Response:
        what = f"Branch {branch} is listed again."
        return change(name, request.expected, what, lambda session: Branches(session).unarchive(branch))

    @api.post("/api/sessions/{name}/branches/{branch}/promote", response_model=ChangeRecord)
    def promote(name: str, branch: str, request: Expecting) -> Response:
        what = f"Branch {branch} is now main."
        return change(name, request.expected, what, lambda session: Branches(session).promote(branch))

    @api.post("/api/sessions/{name}/branches/{branch}/delete", response_model=ChangeRecord)
    def delete(name: str, branch: str, request: Expecting) -> Response:
        what = f"Deleted branch {branch}."
        return change(name, request.expected, what, lambda session: Branches(session).delete(branch))

    @api.post("/api/sessions/{name}/checkpoints", response_model=ChangeRecord)
    def checkpoint(name: str, request: CheckpointRequest) -> Response:
        def made(session: Session) -> Operation | None:
            oid = resolve(view(session), request.address)
            return Branches(session).checkpoint(request.name, oid, force=request.force)

        return change(name, request.expected, f"Checkpoint {request.name} is set.", made)

    @api.post("/api/sessions/{name}/checkpoints/{checkpoint}/delete", response_model=ChangeRecord)
    def delete_checkpoint(name: str, checkpoint: str, request: Expecting) -> Response:
        what = f"Deleted checkpoint {checkpoint}."
        return change(name, request.expected, what, lambda session: Branches(session).delete_checkpoint(checkpoint))

    @api.post("/api/sessions/{name}/fork", response_model=MoveRecord)
    def fork(name: str, request: ForkRequest) -> Response:
        with project.moving(name) as session:
            refuse_unforkable(session)
            made = move_and_fork(session, request.address, request.expected, request.title, request.compacted)
            return answer(made)

    return api


def refuse_unforkable(session: Session) -> None:
    """Raise if the conversation cannot be forked, before anything moves."""
    state = Conversations(session.store).state(session.name)
    if state is None:
        hint = "`snapstore connect` lets agents report theirs. The files can still go there."
        raise Unknown(f"session {session.name} belongs to no agent's conversation", hint, session=session.name)
    able = capability(state.agent)
    if able.forks == NONE:
        raise Unknown(able.notice, "The files can still go there, without the conversation.")


def move_and_fork(
    session: Session, address: str, expected: str | None, title: str | None = None, compacted: bool = False
) -> MoveRecord:
    """Go to a node and fork the conversation there."""
    outcome = carry_out(
        session,
        MoveRequest(
            lambda session, how: session.plan_goto(address, **how),
            expected=expected,
            then=lambda session: ConversationFork(session, title=title, compacted=compacted).run(),
        ),
    )
    return MoveRecord.of(outcome.moved).with_fork(outcome.after)
