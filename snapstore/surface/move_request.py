"""A move as every surface asks for it: one way to get ready, to plan and to carry out.

The command line, the terminal tree, the page and the MCP server differ in how they ask a person and in how they report.
Everything between is here, so that all four behave alike: an interrupted turn is closed first, a request that was made
on an old view is refused as stale, a file that a person did not see in its present state is not touched, and a move
whose follow-up fails is taken back (test_move_parity.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from snapstore.agents.hooks.interrupted import close_interrupted
from snapstore.api import Session
from snapstore.errors import Failed, SnapstoreError, Usage
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import REFUSE, Plan, Policy
from snapstore.timeline.moves.stale import changed_since_seen, expect, stale

MakePlan = Callable[[Session, dict[str, Any]], Plan]
T = TypeVar("T")


@dataclass(frozen=True)
class MoveRequest(Generic[T]):
    """What is asked for, and what the person saw when asking."""

    make: MakePlan  # called with the session and the options, the policy among them
    policy: Policy = field(default_factory=Policy)
    options: Mapping[str, Any] = field(default_factory=dict)  # scope and exact, for moves that take them
    expected: str | None = None  # the cursor that the person saw
    to: str | None = None  # where a preview said that the move leads
    branch: str | None = None  # and on which branch
    seen: Mapping[bytes, str] = field(default_factory=dict)  # the states of files that the person saw
    close_turn: bool = False  # close the open turn, whoever works on it
    then: Callable[[Session], T] | None = None  # what follows the move; if it fails, the move is taken back


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """A finished move, and what its follow-up returned."""

    moved: Moved
    after: T | None


def get_ready(session: Session, request: MoveRequest[Any] | None = None) -> bool:
    """Close the open turn if it was interrupted or if the request asks for it.

    Return whether an interrupted turn was closed. It is the last turn now, so a view from before is stale (G-08).
    """
    if request is not None and request.close_turn:
        session.close_open_turn()
        return False
    return session.store.open_turn(session.name) is not None and close_interrupted(session)


def plan_move(session: Session, request: MoveRequest[Any]) -> Plan:
    """Make the plan that a request describes, or refuse a request that no longer fits.

    A plan knows the cursor that it starts from, and a move refuses a stale plan. Comparing the plan's cursor with the
    one that the person saw is therefore enough.
    """
    expect(session, request.expected)
    plan = _made(session, request, request.policy)
    other = changed_since_seen(plan, request.seen)
    if other:
        policy = Policy(request.policy.default, each={**request.policy.each, **dict.fromkeys(other, REFUSE)})
        plan = _made(session, request, policy)
    # Another branch may have the same commit as its tip, and a branch name may stand for another line by now.
    if (
        request.expected not in (None, plan.start.hex())
        or request.to not in (None, plan.target.hex())
        or request.branch not in (None, plan.branch)
    ):
        raise stale(plan.start.hex())
    for path in sorted(request.policy.each.keys() - {move.path for move in plan.paths}):
        # It is most likely a typing error, so it is not ignored.
        shown = path.decode("utf-8", "replace") or "the whole folder"
        raise Usage(f"{shown!r} has no part in this", "A preview lists the files that have.")
    return plan


def _made(session: Session, request: MoveRequest[Any], policy: Policy) -> Plan:
    return request.make(session, {**request.options, "policy": policy})


def execute(session: Session, request: MoveRequest[T], plan: Plan) -> Outcome[T]:
    """Carry out a plan that was made before, and run what follows it."""
    moved = session.move(plan)
    if request.then is None:
        return Outcome(moved, None)
    try:
        return Outcome(moved, request.then(session))
    except (SnapstoreError, OSError) as error:
        _take_back(session, moved, error)
        raise


def carry_out(session: Session, request: MoveRequest[T]) -> Outcome[T]:
    """Get ready, plan and execute."""
    get_ready(session, request)
    return execute(session, request, plan_move(session, request))


def preview_move(session: Session, request: MoveRequest[Any]) -> Moved:
    """Return what the move would do, or refuse what it would refuse."""
    return session.preview(plan_move(session, request))


def not_reported(what: str, why: str | None, look: str) -> Failed:
    """Return the error for a move that was done, but could not be reported."""
    return Failed(f"{what} was done, but telling about it failed: {why}", f"Do not repeat it: {look}.")


def _take_back(session: Session, moved: Moved, error: SnapstoreError | OSError) -> None:
    """Undo a move whose follow-up failed, so that nothing is left half done."""
    if moved.operation is None:
        return
    try:
        session.move(session.plan_ops_undo(moved.operation))
    except (SnapstoreError, OSError):
        if isinstance(error, SnapstoreError):
            back = f"The files were moved anyway: `snapstore ops undo {moved.operation}` undoes that."
            error.hint = back if error.hint.startswith("Nothing was") else f"{error.hint} {back}"
