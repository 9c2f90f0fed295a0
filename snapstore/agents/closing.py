"""A turn that is open although nobody works on it: the user cut it off, or the agent is gone. No hook tells of that,
and just then a person wants to undo it."""

from __future__ import annotations

from snapstore.agents.events import END, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.timeline.session import Session


def close_interrupted(session: Session) -> bool:
    """Closes the session's open turn if its agent is gone, or its transcript ends with the interruption."""
    turn = session.store.open_turn(session.name)
    id = turn.origin.get("session", "") if turn is not None else ""
    if turn is None or not id:
        return False
    from snapstore.agents.remembering import origin_of, remember
    from snapstore.agents.turns import Hook
    from snapstore.timeline.conversation import Conversations

    gone = Conversations(session.store).is_gone(id)
    if not gone and not remember(turn.agent, origin_of(turn), turn.prompt).interrupted:
        return False
    transcript = turn.origin.get("transcript", "")
    Hook(session.store, Event(END, turn.agent, id, cwd=turn.origin.get("cwd", ""), transcript=transcript)).take()
    return True
