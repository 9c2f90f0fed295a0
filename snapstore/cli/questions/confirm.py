"""Ask for confirmation before a risky move (C13).

A move is risky if it covers more than one turn, removes a file, resolves a conflict or is exact.
"""

from __future__ import annotations

import sys

from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.output import BOLD, DIM, LISTED, Output, first_line, safe
from snapstore.cli.reports.move import rows
from snapstore.surface.wording import needs_confirmation
from snapstore.timeline.moves.plan import BOTH, CONVERSATION, REMOVE, WRITE, Plan


def confirm_move(context: Context, session: Session, move: MoveDescription, plan: Plan) -> bool:
    """Return whether to execute the move.

    Without a terminal the answer is yes and no question is asked.
    """
    err = context.err if context.err.terminal else context.out  # one of the two may be redirected
    if not (err.terminal and sys.stdin.isatty()) or not needs_confirmation(plan):
        return True
    session.preview(plan)  # a move that would be refused is refused before the question
    err.line(move.ask(plan), BOLD)
    if plan.undone and plan.scope == BOTH:
        first = session.store.shadow.commit(plan.undone[-1])
        err.line(f"First undone: turn {first.number('Turn')}, {first_line(first.subject)}".rstrip(", "), DIM)
    if plan.scope != CONVERSATION:
        for row in rows(err, [path for path in plan.paths if path.action in (WRITE, REMOVE) or path.settled], LISTED):
            err.line(row)
    for note in plan.notes:
        err.line(safe(note), DIM)
    return agreed(err, "Continue? [y/N] ")


def agreed(out: Output, question: str) -> bool:
    """Ask a yes-or-no question and return whether the answer is yes."""
    out.ask(question)
    answer = sys.stdin.buffer.readline()
    if not answer.endswith(b"\n"):  # end of input: finish the line of the question
        out.line()
    return answer.strip().lower() in (b"y", b"yes")
