"""Compare an event with the open turn: named files, prompt id, time."""

from __future__ import annotations

from snapstore.agents.hooks.paths import OUTSIDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.agents.events.event import Event
    from snapstore.store.state import OpenTurn


def named_files(turn: OpenTurn) -> set[str]:
    """Return the files the turn has named so far.

    Files that a scan left out are not included: they are captured once they are named.
    """
    return {*turn.named, *(path for path, why in turn.left_out.items() if why == OUTSIDE)}


def is_about(turn: OpenTurn, prompt_id: str) -> bool:
    """Return whether a prompt id belongs to an open turn, as far as both are known."""
    own = turn.origin.get("prompt_id")
    return not own or prompt_id in (own, turn.origin.get("also"))


def is_earlier(event: Event, turn: OpenTurn) -> bool:
    """Return whether the agent reports that an event came before the turn's prompt."""
    try:
        begun = float(turn.origin.get("at", ""))
    except ValueError:
        return False
    return 0 < event.at < begun
