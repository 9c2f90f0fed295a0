"""Print what a move did, would do, or could not do.

The report claims nothing that did not happen (G-23).
"""

from __future__ import annotations

from collections.abc import Iterable

from snapstore.agents.fork import next_steps
from snapstore.api import Session
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.output import BOLD, DIM, GREEN, LISTED, RED, YELLOW, Output, first_line, path_text, safe, shorten
from snapstore.cli.paths import from_here
from snapstore.cli.reports import conflicts
from snapstore.cli.reports.hunk import show_hunk
from snapstore.surface import wording
from snapstore.surface.wording import (
    RESOLVED,
    action_word,
    by_urgency,
    headline,
    intent,
    remark,
    subject,
)
from snapstore.timeline.moves.hunks import Hunk
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import CONFLICT, FILES, KEPT, REMOVE, SKIPPED, WRITE, PathMove, Plan


def tell(out: Output, session: Session, move: MoveDescription, done: Moved) -> None:
    """Print the report of a finished move."""
    plan = done.plan
    if plan.nothing_to_do:
        if move.nothing:
            out.line(move.nothing)
        _notes(out, plan)
        return
    out.line(f"{out.paint('✓', GREEN)} {headline(session, plan)}")
    _names(out, "Files reverted" if move.reverts else "Files changed", plan.of(WRITE, REMOVE))
    _names(out, "Removed", plan.of(REMOVE))
    for way, title in RESOLVED.items():
        _names(out, title, [path.path for path in plan.paths if path.settled == way])
    _names(out, "Already in that state", [path.path for path in plan.paths if path.action == KEPT and not path.settled])
    if plan.turns_undone and plan.scope != FILES:
        out.line(f"  Messages removed: {plan.messages_removed}")
    _notes(out, plan)
    out.line(f"Now {place(out, session, plan)}")
    if plan.prompt:
        out.line(f"Undone prompt: {_one_line(out, plan.prompt, 16)}")
    if plan.scope != FILES and move.then is None:
        _next_step(out, session, done)
    _ways_back(out, session, done)


def _next_step(out: Output, session: Session, done: Moved) -> None:
    """Print how to continue with an agent whose conversation holds undone turns."""
    other = "" if session.store.active_session() == session.name else f" --session {session.name}"
    notices, forks, resume = next_steps(session, done)
    for notice in notices:
        out.line(f"Note: {safe(notice)}", YELLOW)
    if resume or (forks and (done.pending_fork or done.plan.undone)):
        command = resume or f"{out.program} fork{other}"
        out.line(f"Continue with the agent from here: `{command}`", DIM)


def place(out: Output, session: Session, plan: Plan) -> str:
    """Return the target of a plan: `at turn 3 on main: Add a login function`."""
    number, rest = wording.place(plan)
    text = f"at {out.paint(number, BOLD)}{rest}"
    if not number or plan.new_node is not None:
        return text
    prompt = _one_line(out, subject(session, plan.target), 20 + len(plan.branch))
    return f"{text}: {prompt}" if prompt else text


def _ways_back(out: Output, session: Session, done: Moved) -> None:
    """Print how to undo the move, as commands ready to type."""
    plan, store = done.plan, session.store
    # Without --session these commands would act on the session last active.
    other = "" if store.active_session() == session.name else f" --session {session.name}"
    if done.safety is not None:
        settled = [path.path for path in plan.paths if path.settled and path.action in (WRITE, REMOVE)]
        saved = settled or plan.of(WRITE, REMOVE)
        names = " ".join(from_here(store.root, path) for path in saved[:LISTED])
        more = f" … and {len(saved) - LISTED:,} more" if len(saved) > LISTED else ""
        command = f"{out.program} restore{other} {done.safety.hex()[:12]} -- {names}"
        if saved:  # if every file was skipped, there is nothing to restore
            out.line(f"What was on disk is saved. Get it back: `{command}`{more}", YELLOW)
    ways = []
    undone = len(plan.turns_undone)
    if undone and not plan.turns_redone and plan.scope != FILES and plan.target != plan.start:
        ways.append(f"Redo: `{out.program} redo{other}{f' {undone}' if undone > 1 else ''}`")
    if done.operation is not None:
        ways.append(f"Undo this move: `{out.program} ops undo{other} {done.operation}`")
    if ways:
        out.line(" · ".join(ways), DIM)


def would(out: Output, session: Session, move: MoveDescription, plan: Plan, hunks: list[Hunk] | None = None) -> None:
    """Print the preview of a move, with its hunks if they are given."""
    if plan.nothing_to_do:
        out.line(move.nothing)
    else:
        out.line(f"Would {intent(session, plan)} and end {place(out, session, plan)}")
        for row in rows(out, plan.paths, None):
            out.line(row)
        for hunk in hunks or ():
            out.line(f"hunk {hunk.id} of {path_text(hunk.path)}", BOLD)
            show_hunk(out, hunk)
        if plan.turns_undone and plan.scope != FILES:
            out.line(f"  Messages removed: {plan.messages_removed}")
    _notes(out, plan)
    if plan.conflicts:
        conflicts.explain(out, move, plan.conflicts)
        out.line("Nothing is written while there are conflicts. To resolve them:", YELLOW)
        conflicts.choices(out, move, plan.conflicts)
    out.line("Nothing was changed.", DIM)


def rows(out: Output, paths: Iterable[PathMove], limit: int | None) -> list[str]:
    """Return rows like `  remove    new.txt`, the most important first."""
    ordered = by_urgency(paths)
    shown = ordered if limit is None else ordered[:limit]
    found = [f"  {_action(out, path)}{path_text(path.path)}" for path in shown]
    remarks = [remark(path) for path in shown]
    found = [f"{row}  {out.paint(text, DIM)}" if text else row for row, text in zip(found, remarks, strict=True)]
    if len(shown) < len(ordered):
        found.append(out.paint(f"  … and {len(ordered) - len(shown):,} more", DIM))
    return found


_COLOURS = {CONFLICT: RED, REMOVE: RED, SKIPPED: YELLOW, KEPT: DIM}


def _action(out: Output, path: PathMove) -> str:
    return out.paint(f"{action_word(path):<11}", YELLOW if path.settled else _COLOURS.get(path.action, GREEN))


def _names(out: Output, title: str, paths: list[bytes]) -> None:
    if paths:
        names = ", ".join(path_text(path) for path in paths[:LISTED])
        more = f", … and {len(paths) - LISTED:,} more" if len(paths) > LISTED else ""
        out.line(f"  {title}: {names}{more}")


def _notes(out: Output, plan: Plan) -> None:
    for note in plan.notes[:LISTED]:
        out.line(f"Note: {safe(note)}", YELLOW)
    if len(plan.notes) > LISTED:
        out.line(f"Note: … and {len(plan.notes) - LISTED:,} more (--json has them all)", YELLOW)


def _one_line(out: Output, prompt: str, taken: int) -> str:
    text = first_line(prompt)
    return shorten(text, max(out.size()[0] - taken, 20)) if out.terminal else text
