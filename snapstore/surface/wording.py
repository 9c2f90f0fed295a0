"""The sentences about plans and moves that every surface uses.

No sentence claims anything that did not happen (G-23).
"""

from __future__ import annotations

from collections.abc import Iterable

from snapstore.api import Session
from snapstore.base.text import files_text, safe
from snapstore.base.text import turns_text as turns_text
from snapstore.errors import Usage
from snapstore.timeline.history.operations import Operations
from snapstore.timeline.moves.plan import (
    CONFLICT,
    CONVERSATION,
    FILES,
    FORCE,
    KEPT,
    MARKERS,
    MERGE,
    REMOVE,
    SKIP,
    SKIPPED,
    WRITE,
    PathMove,
    Plan,
    state_text,
)

_ONLY = {FILES: ", files only", CONVERSATION: ", conversation only"}
_PAST = {"Revert": "Reverted", "Apply": "Applied", "Restore": "Restored"}
_URGENCY = {CONFLICT: 0, SKIPPED: 1, REMOVE: 2, WRITE: 3, KEPT: 4}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
RESOLVED = {
    MERGE: "Merged",
    MARKERS: "Merged, with conflict markers",
    FORCE: "Overwritten, your version is saved",
    SKIP: "Skipped, your version is kept",
}
NOT_SAVABLE = "saved first"  # part of the reason why a conflict cannot be resolved by force


def needs_confirmation(plan: Plan) -> bool:
    """Return whether to show the plan to a person before the move (C13).

    That is so if more than one turn is undone or redone, a line is left for another, a file is removed, a conflict is
    resolved other than by a clean merge, or the move is exact.
    """
    turns = len(plan.undone) + len(plan.redone) + (plan.on_line is not None)
    settled = any(path.settled not in ("", MERGE) for path in plan.paths)
    return turns > 1 or bool(plan.of(REMOVE)) or settled or plan.exact


# A move as a whole.


def headline(session: Session, plan: Plan) -> str:
    """Return what a move did, worded as S2-19 requires if turns were undone."""
    if plan.undoes:
        return f"Undone {_operations(session, plan)}"
    if plan.new_node is not None:
        verb, _, rest = plan.new_node.subject.partition(" ")  # Revert turn 3: …
        return f"{_PAST.get(verb, verb)} {safe(rest)}"
    if plan.kind == "discard":
        return f"Discarded what changed in {files_text(len(plan.changing))}"
    parts = [
        f"{verb} {len(turns)} turn(s)"
        for verb, turns in (("undone", plan.turns_undone), ("redone", plan.turns_redone))
        if turns
    ]
    done = " and ".join(parts) + _ONLY.get(plan.scope, "")
    if plan.kind == "switch" and plan.scope != FILES:
        text = f"switched to {safe(plan.branch)}" + (f": {done}" if parts else done)
    elif parts:
        text = done + (f": {_which(session, plan)}" if len(parts) == 1 else "")
    else:
        text = ("restored the whole tree" if plan.exact else "moved, no turn undone or redone") + done
    return text[0].upper() + text[1:]


def _which(session: Session, plan: Plan) -> str:
    """Name the turns that a plan undoes or redoes: `turn 7, Make it blue`, or `turns 3 to 7`."""
    turns = plan.undone[::-1] or plan.redone
    first, last = (session.store.shadow.commit(oid) for oid in (turns[0], turns[-1]))
    if len(turns) > 1:
        return f"turns {first.number('Turn')} to {last.number('Turn')}"
    return f"turn {last.number('Turn')}, {safe(last.subject)}".rstrip(", ")


def intent(session: Session, plan: Plan) -> str:
    """Return what a move is going to do."""
    if plan.undoes:
        return f"undo {_operations(session, plan)}"
    if plan.new_node is not None:
        return safe(plan.new_node.subject[:1].lower() + plan.new_node.subject[1:])
    if plan.kind == "discard":
        return f"discard what changed in {files_text(len(plan.changing))}"
    parts = [
        f"{verb} {turns_text(len(turns))}"
        for verb, turns in (("undo", plan.turns_undone), ("redo", plan.turns_redone))
        if turns
    ]
    idle = "restore the whole tree" if plan.exact else "move, without undoing or redoing a turn"
    return (" and ".join(parts) or idle) + _ONLY.get(plan.scope, "")


def _operations(session: Session, plan: Plan) -> str:
    first = Operations(session.store).get(min(plan.undoes))
    told = f"operation {first.number} ({safe(first.what)})"
    return told if len(plan.undoes) == 1 else f"{told} and {len(plan.undoes) - 1:,} after it"


def place(plan: Plan) -> tuple[str, str]:
    """Return the target of a move in two parts: `turn 3` and ` on main`.

    Before the first turn the first part is empty, because there is no turn number to highlight.
    """
    turn = plan.turn_before if plan.scope == FILES else plan.turn
    if turn == 0:
        return "", f"the start of {safe(plan.branch)}, before the first turn"
    return f"turn {turn}", f" on {safe(plan.branch)}"


def subject(session: Session, oid: bytes) -> str:
    """Return the prompt of the turn at `oid`, or of the last turn before it."""
    shadow = session.store.shadow
    commit = shadow.commit(oid)
    while commit.number("Turn") is None and commit.parents:
        commit = shadow.commit(commit.parents[0])
    return commit.subject


# The files of a move.


def by_urgency(paths: Iterable[PathMove]) -> list[PathMove]:
    """Return the paths sorted, with those that need attention first."""
    return sorted(paths, key=lambda path: (_URGENCY.get(path.action, 3) if not path.settled else 1, path.path))


def action_word(path: PathMove) -> str:
    if path.action == WRITE and path.settled:
        return {FORCE: "overwrite"}.get(path.settled, "merge")
    if path.action == WRITE and path.found is None:
        return "create"
    return {KEPT: "keep", SKIPPED: "skip"}.get(path.action, path.action)


def remark(path: PathMove) -> str:
    if path.action == KEPT and not path.settled:
        return "already in that state"
    if not path.conflicting:
        return ""
    text = f"changed by {path.changed_by}" if path.changed_by else "changed since"
    text += {FORCE: "; saved first", MARKERS: "; with conflict markers"}.get(path.settled, "")
    return safe(text + (f"; {path.why}" if path.why else ""))


def mergeable(move: PathMove) -> bool:
    """Return whether a merge, if need be with markers, can resolve a conflict."""
    if move.why:
        from snapstore.git.merge import SAME_LINES  # imports difflib

        return move.why == SAME_LINES
    return all(state_text(state).startswith(("file", "executable")) for state in (move.found, move.wanted))


def count(text: str | None, what: str = "turns") -> int:
    """Parse a positive number such as `3`. None is 1."""
    if text is None:
        return 1
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) == 0:
        raise Usage(f"{text!r} is not a number of {what}", "Give 1 or more.")
    return int(text)


def count_or_duration(text: str | None) -> dict[str, int]:
    """Parse a number such as `3`, or a duration such as `90s`, `10m`, `2h` or `1d`."""
    if text is None or text[-1:] not in _UNITS:
        try:
            return {"count": count(text)}
        except Usage:
            raise Usage(f"{text!r} is neither a number nor a time", "Give 3 for steps, or 90s, 10m, 2h, 1d.") from None
    number = text[:-1]
    if not (number.isascii() and number.isdecimal()) or len(number) > 9 or int(number) == 0:
        raise Usage(f"{text!r} is not a time", "Give 90s, 10m, 2h or 1d.")
    return {"seconds": int(number) * _UNITS[text[-1]]}
