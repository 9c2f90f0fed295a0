"""The question before a move that deserves one: more than one turn, a file removed, a conflict settled (C13)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.output import BOLD, DIM, LISTED, first_line, safe
from snapstore.cli.reports.move import rows
from snapstore.surface.wording import deserves_a_look
from snapstore.timeline.moves.plan import BOTH, CONVERSATION, REMOVE, WRITE, Plan

if TYPE_CHECKING:
    from snapstore.cli.move_request import Move


def agreed(context: Context, session: Session, move: Move, plan: Plan) -> bool:
    """Whether to go on. Where no person sits, nobody is asked."""
    err = context.err if context.err.terminal else context.out  # a person may have sent one of them elsewhere
    if not (err.terminal and sys.stdin.isatty()) or not deserves_a_look(plan):
        return True
    session.preview(plan)  # what would be refused anyway is refused before anybody is asked
    err.line(move.ask(plan), BOLD)
    if plan.undone and plan.scope == BOTH:
        first = session.store.shadow.commit(plan.undone[-1])
        err.line(f"First undone: turn {first.number('Turn')}, {first_line(first.subject)}".rstrip(", "), DIM)
    if plan.scope != CONVERSATION:
        for row in rows(err, [path for path in plan.paths if path.action in (WRITE, REMOVE) or path.settled], LISTED):
            err.line(row)
    for note in plan.notes:
        err.line(safe(note), DIM)
    err.ask("Go on? [y/N] ")
    answer = sys.stdin.buffer.readline()
    if not answer.endswith(b"\n"):
        err.line()
    return answer.strip().lower() in (b"y", b"yes")
