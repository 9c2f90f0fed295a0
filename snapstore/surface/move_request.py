"""Plan and execute a move in the same way for every surface.

The command line, the terminal tree, the page and the MCP server differ only in how they ask a person and how they
report. The steps between are shared (test_move_parity.py). An interrupted turn is closed first. A request based on an
outdated view is refused as stale. A file that changed after the person saw it is not touched. A move whose follow-up
fails is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from snapstore.agents.hooks.interrupted import close_interrupted
from snapstore.api import Session
from snapstore.errors import Failed, SnapstoreError, Usage
from snapstore.timeline.moves.hunks import Hunk, keep_only
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import REFUSE, Plan, Policy
from snapstore.timeline.moves.stale import changed_since_seen, expect, stale

MakePlan = Callable[[Session, dict[str, Any]], Plan]
T = TypeVar("T")


@dataclass(frozen=True)
class MoveRequest(Generic[T]):
    """A requested move, and what the person saw when requesting it."""

    make: MakePlan  # called with the session and the options, including the policy
    policy: Policy = field(default_factory=Policy)
    options: Mapping[str, Any] = field(default_factory=dict)  # scope and exact, for moves that take them
    expected: str | None = None  # the cursor that the person saw
    to: str | None = None  # the target commit that a preview showed
    branch: str | None = None  # the target branch that a preview showed
    seen: Mapping[bytes, str] = field(default_factory=dict)  # the states of files that the person saw
    hunks: Collection[str | Hunk] | None = None  # only these, given by id or as edited; None: the whole plan
    close_turn: bool = False  # close the open turn, even if an agent is working on it
    then: Callable[[Session], T] | None = None  # runs after the move; if it fails, the move is undone


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """A finished move, and what its follow-up returned."""

    moved: Moved
    after: T | None


def get_ready(session: Session, request: MoveRequest[Any] | None = None) -> bool:
    """Close the open turn if it was interrupted or if the request asks for it.

    Return whether an interrupted turn was closed. It is then the last turn, so earlier views are stale (G-08).
    """
    if request is not None and request.close_turn:
        session.close_open_turn()
        return False
    return session.store.open_turn(session.name) is not None and close_interrupted(session)


def plan_move(session: Session, request: MoveRequest[Any]) -> Plan:
    """Return the plan for a request, or refuse a request that is stale.

    A plan stores the cursor that it starts from, and a move refuses a stale plan. Comparing the plan's cursor with the
    one that the person saw is therefore enough.
    """
    expect(session, request.expected)
    plan = _make_plan(session, request, request.policy)
    other = changed_since_seen(plan, request.seen)
    if other:
        policy = Policy(request.policy.default, each={**request.policy.each, **dict.fromkeys(other, REFUSE)})
        plan = _make_plan(session, request, policy)
    # Another branch may have the same commit as its tip, and a branch name may refer to another line by now.
    if (
        request.expected not in (None, plan.start.hex())
        or request.to not in (None, plan.target.hex())
        or request.branch not in (None, plan.branch)
    ):
        raise stale(plan.start.hex())
    for path in sorted(request.policy.each.keys() - {move.path for move in plan.paths}):
        # Most likely a typing error, so it is not ignored.
        shown = path.decode("utf-8", "replace") or "the whole folder"
        raise Usage(f"{shown!r} is not part of this move", "A preview lists the files that are.")
    return plan if request.hunks is None else keep_only(session, plan, request.hunks)


def _make_plan(session: Session, request: MoveRequest[Any], policy: Policy) -> Plan:
    return request.make(session, {**request.options, "policy": policy})


def execute(session: Session, request: MoveRequest[T], plan: Plan) -> Outcome[T]:
    """Execute a plan, and run the request's follow-up."""
    moved = session.move(plan)
    if request.then is None:
        return Outcome(moved, None)
    try:
        return Outcome(moved, request.then(session))
    except (SnapstoreError, OSError) as error:
        _undo_move(session, moved, error)
        raise


def carry_out(session: Session, request: MoveRequest[T]) -> Outcome[T]:
    """Close an interrupted turn, plan and execute."""
    get_ready(session, request)
    return execute(session, request, plan_move(session, request))


def preview_move(session: Session, request: MoveRequest[Any]) -> Moved:
    """Return what a move would do. Raises what the move itself would raise."""
    return session.preview(plan_move(session, request))


def not_reported(move: str, why: str | None, look: str) -> Failed:
    """Return the error for a move that succeeded but could not be reported."""
    return Failed(f"{move} succeeded, but its result could not be shown: {why}", f"Do not repeat it: {look}.")


def _undo_move(session: Session, moved: Moved, error: SnapstoreError | OSError) -> None:
    """Undo a move whose follow-up failed, so that nothing is left half done."""
    if moved.operation is None:
        return
    try:
        session.move(session.plan_ops_undo(moved.operation))
    except (SnapstoreError, OSError):
        if isinstance(error, SnapstoreError):
            back = f"The move itself was done: `snapstore ops undo {moved.operation}` undoes it."
            error.hint = back if error.hint.startswith("Nothing was") else f"{error.hint} {back}"
