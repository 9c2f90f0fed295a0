"""Read the three sides of one conflicting file, for a person to choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from snapstore.errors import Unknown
from snapstore.git.diff.patch import LARGEST, is_binary
from snapstore.git.merge import merge, why_not
from snapstore.git.objects.ids import LINK
from snapstore.timeline.moves.plan import Found, PathMove, Plan
from snapstore.timeline.record.session import RecordingSession


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """The three sides of a conflict and their merge.

    `base` is what the turns left, `mine` is on disk, `theirs` is what the move wants. `merged` has conflict markers
    where both sides changed the same lines; then `clean` is false. A side that is missing or not text is None.
    """

    base: str | None = None
    mine: str | None = None
    theirs: str | None = None
    merged: str | None = None
    clean: bool = False
    why: str | None = None


def three_way(session: RecordingSession, plan: Plan, path: bytes) -> ThreeWay:
    """Read the three sides of one file of a plan and merge them."""
    move = next((move for move in plan.paths if move.path == path), None)
    if move is None:
        raise Unknown(
            f"{path.decode('utf-8', 'replace')!r} is not part of this move", "A preview lists the files that are."
        )
    states = (move.expected, move.found, move.wanted)
    sides = [_data(session, move, state) for state in states]
    links = any(isinstance(state, tuple) and state[0] == LINK for state in states)
    base, mine, theirs = sides
    shown = ThreeWay(_text(base), _text(mine), _text(theirs))
    if mine is None or theirs is None:
        return replace(shown, why="deleted on one side, changed on the other")
    if links:
        return replace(shown, why="a link cannot be merged")
    folder = session.store.state
    clean = merge(base or b"", mine, theirs, folder=folder)
    merged = clean if clean is not None else merge(base or b"", mine, theirs, markers=True, folder=folder)
    why = None if clean is not None else why_not(base or b"", mine, theirs)
    return replace(shown, merged=_text(merged), clean=clean is not None, why=why)


def _data(session: RecordingSession, move: PathMove, state: Found) -> bytes | None:
    if not isinstance(state, tuple):
        return None
    objects = session.store.shadow.objects
    if not objects.contains(state[1], fresh=False):  # the content is on disk only
        return session.store.writer("look", []).read(move.path, LARGEST + 1, link=state[0] == LINK)
    return objects.read(state[1])[1] if objects.header(state[1])[1] <= LARGEST else b"\0"


def _text(data: bytes | None) -> str | None:
    return None if data is None or is_binary(data) else data.decode("utf-8", "replace")
