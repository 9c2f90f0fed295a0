"""A turn that is open although nobody works on it: the user cut it off, or the agent is gone. No hook tells of that,
and just then a person wants to undo it."""

from __future__ import annotations

from snapstore.agents.hooks.events import END, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.api import Session


def is_interrupted(session: Session) -> bool:
    """Whether the session has a turn open whose agent is gone, or whose transcript ends with the interruption."""
    turn = session.store.open_turn(session.name)
    id = turn.origin.get("session", "") if turn is not None else ""
    if turn is None or not id:
        return False
    from snapstore.agents.hooks.turn_record import origin_of, remember
    from snapstore.store.conversations import Conversations

    gone = Conversations(session.store).is_gone(id)
    return gone or remember(turn.agent, origin_of(turn), turn.prompt).interrupted


def close_interrupted(session: Session) -> bool:
    """Closes the session's open turn if nobody works on it."""
    turn = session.store.open_turn(session.name)
    if turn is None or not is_interrupted(session):
        return False
    from snapstore.agents.hooks.turns import Hook

    id, transcript = turn.origin["session"], turn.origin.get("transcript", "")
    Hook(session.store, Event(END, turn.agent, id, cwd=turn.origin.get("cwd", ""), transcript=transcript)).take()
    return True
