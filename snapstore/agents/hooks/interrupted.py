"""Close open turns that nobody works on: interrupted by the user, or agent gone.

No hook reports either case, and an interrupted turn is exactly what a user wants to undo.
"""

from __future__ import annotations

from snapstore.agents.events.event import END, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.api import Session


def is_interrupted(session: Session) -> bool:
    """Return whether the session's open turn was interrupted or its agent is gone.

    An interruption is read from the end of the agent's transcript.
    """
    turn = session.store.open_turn(session.name)
    id = turn.origin.get("session", "") if turn is not None else ""
    if turn is None or not id:
        return False
    from snapstore.agents.hooks.turn_record import origin_of, remember
    from snapstore.store.conversations import Conversations

    gone = Conversations(session.store).is_gone(id)
    return gone or remember(turn.agent, origin_of(turn), turn.prompt).interrupted


def close_interrupted(session: Session) -> bool:
    """Close the open turn if nobody works on it; return whether it was closed."""
    turn = session.store.open_turn(session.name)
    if turn is None or not is_interrupted(session):
        return False
    from snapstore.agents.hooks.turns import Hook

    id, transcript = turn.origin["session"], turn.origin.get("transcript", "")
    Hook(session.store, Event(END, turn.agent, id, cwd=turn.origin.get("cwd", ""), transcript=transcript)).take()
    return True
