"""The steps of one move in the terminal tree: plan, preview, execute, report.

The rules are those of the timeline. The steps run on threads, and each one opens the store again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from snapstore.agents.fork import next_steps
from snapstore.api import Session, Store
from snapstore.base.text import files_text, first_line, path_text, safe, shorten
from snapstore.errors import Busy, Conflict, SnapstoreError
from snapstore.surface.move_request import MakePlan, MoveRequest, execute, get_ready, plan_move
from snapstore.surface.wording import headline, intent, needs_confirmation, place, turns_text
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import BOTH, FILES, MARKERS, MERGE, REMOVE, WRITE, Plan, Policy, state_text

Opened = Callable[[], AbstractContextManager[Store]]

LONGEST_PROMPT = 60
LONGEST_NAMES = 60


class WantedMove:
    """A requested move: how to plan it, and what to say if there is nothing to do."""

    __slots__ = ("make", "nothing")

    def __init__(self, make: MakePlan, nothing: str = "") -> None:
        self.make = make
        self.nothing = nothing or "Nothing to do: everything is already in that state."


class PlannedMove:
    """A plan as it is shown before it is carried out."""

    __slots__ = ("due", "first", "intent", "place", "plan", "request", "unseen", "wanted")

    def __init__(self, session: Session, wanted: WantedMove, plan: Plan, request: MoveRequest[None]) -> None:
        self.wanted = wanted
        self.plan = plan
        self.request = request
        self.due = needs_confirmation(plan)
        # A person who resolved the conflicts has seen only the conflicting files.
        removed = any(move.action == REMOVE and not move.settled for move in plan.paths)
        self.unseen = removed or plan.exact or len(plan.undone) + len(plan.redone) > 1
        self.intent = intent(session, plan)
        self.place = "".join(place(plan))
        self.first = ""
        if plan.undone and plan.scope == BOTH:
            first = session.store.shadow.commit(plan.undone[-1])
            self.first = f"First undone: turn {first.number('Turn')}, {first_line(first.subject)}".rstrip(", ")

    @property
    def seen(self) -> dict[bytes, str]:
        """The states in which the plan found the files, as shown to the person."""
        return {move.path: state_text(move.found) for move in self.plan.paths}


def preview(opened: Opened, name: str, seen: bytes, wanted: WantedMove, policy: Policy | None = None) -> PlannedMove:
    """Return the plan of a move, given the cursor that the person saw.

    An abandoned open turn is closed first. The closed turn is then the last turn, so a request made before is stale
    (G-08).
    """
    with opened() as store:
        session = store.session(name)
        request = MoveRequest[None](wanted.make, policy or Policy(), expected=seen.hex())
        if get_ready(session, request):
            hint = "Nothing else was done. Look again, then repeat the move."
            raise Conflict("the interrupted turn is now closed, and is the last turn", hint, stale=True)
        found = PlannedMove(session, wanted, plan := plan_move(session, request), request)
        if not plan.nothing_to_do:
            session.preview(plan)  # refuse an impossible move before a person looks at the plan
        return found


def carry_out(opened: Opened, found: PlannedMove) -> MoveReport:
    """Execute the plan completely or not at all."""
    with opened() as store:
        session = store.session(found.plan.session)
        return MoveReport(session, found.wanted, execute(session, found.request, found.plan).moved)


class MoveReport:
    """The result of a move in one line: what happened, the new cursor, how to return."""

    __slots__ = ("moved", "target", "text")

    def __init__(self, session: Session, wanted: WantedMove, moved: Moved) -> None:
        self.target = moved.target
        self.moved = not moved.plan.nothing_to_do
        try:
            self.text = " · ".join(self._parts(session, wanted, moved))
        except (SnapstoreError, OSError) as error:  # the move itself succeeded
            self.text = f"Done, but the result could not be shown: {trouble(error)}"

    def _parts(self, session: Session, wanted: WantedMove, moved: Moved) -> list[str]:
        plan = moved.plan
        if plan.nothing_to_do:
            return [wanted.nothing, *map(safe, plan.notes[:1])]
        parts = [_what(session, plan), f"now at {''.join(place(plan))}"]
        changed = plan.of(WRITE, REMOVE)
        told = f"{files_text(len(changed))} changed" if changed else "no file changed"
        if plan.undone and plan.scope != FILES and plan.messages_removed:
            number = plan.messages_removed
            told += f", {number:,} message{'s' if number > 1 else ''} removed"
        parts.insert(1, told)
        if merged := [path_text(path.path) for path in plan.paths if path.settled in (MERGE, MARKERS)]:
            parts.append(f"merged: {shorten(', '.join(merged), LONGEST_NAMES)}")
        if moved.safety is not None:
            parts.append("what was on disk is saved")
        parts.append(_back(plan))
        parts += [f"note: {safe(note)}" for note in plan.notes[:1]]
        if len(plan.notes) > 1:
            parts.append(f"{len(plan.notes) - 1:,} more notes")
        return [*parts, *_next_step(session, moved)]


def _what(session: Session, plan: Plan) -> str:
    if plan.new_node is not None or plan.undoes or not (plan.undone or plan.redone):
        return headline(session, plan)
    parts = [
        _turns(session, verb, turns) for verb, turns in (("undone", plan.undone), ("redone", plan.redone)) if turns
    ]
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def _turns(session: Session, verb: str, turns: list[bytes]) -> str:
    if len(turns) > 1:
        return f"{verb} {turns_text(len(turns))}"
    commit = session.store.shadow.commit(turns[0])
    prompt = shorten(first_line(commit.subject), LONGEST_PROMPT)
    return f"{verb} turn {commit.number('Turn')}{f' ({prompt})' if prompt else ''}"


def _back(plan: Plan) -> str:
    """Return which key undoes a move.

    A move that resolved conflicts, or that did not follow the line, can only be undone as a whole, with `U`.
    """
    number = len(plan.undone) + len(plan.redone)
    them = "it" if number == 1 else "them"
    if plan.kind == "undo" and not plan.saves:
        return f"{'Ctrl-R' if number == 1 else f':redo {number}'} brings {them} back"
    if plan.kind == "redo" and plan.redone and not plan.saves:
        return f"{'u' if number == 1 else f':undo {number}'} undoes {them}"
    return "U undoes this"


def _next_step(session: Session, moved: Moved) -> list[str]:
    """Return how to continue with the agent's conversation.

    The agent still remembers the undone turns.
    """
    notices, forks, resume = next_steps(session, moved)
    told = [safe(notice) for notice in notices]
    if resume or (forks and (moved.pending_fork or moved.plan.undone)):
        told.append(f"`{resume or 'snapstore fork'}` continues with the agent from here")
    return told


def trouble(error: Exception) -> str:
    """Return an error as text for the status line, with what to do next."""
    if isinstance(error, Busy) and "session" in error.details:
        return f"{sentence(error.message)} Wait for it to end; `:cancel` closes it as interrupted."
    if isinstance(error, SnapstoreError):
        return f"{sentence(error.message)} {safe(error.hint)}".strip()
    return sentence(f"{type(error).__name__}: {error}")


def sentence(text: str) -> str:
    text = safe(text)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def spoken(text: str) -> str:
    """Return a message of the store as a sentence."""
    return sentence(text[:1].upper() + text[1:])
