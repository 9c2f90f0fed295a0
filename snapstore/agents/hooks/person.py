"""Treat a person at a shell as an agent.

All shells share one session, unless two of them run commands at the same time.
"""

from __future__ import annotations

import os

from snapstore.agents.events.event import Event
from snapstore.agents.known.registry import PERSON
from snapstore.api import Store


def shell_session(store: Store, event: Event) -> str:
    """Return the session that all shells share, or this shell's own if it is busy.

    The shared session is busy while a command still runs in another shell.
    """
    turn = store.open_turn(PERSON)
    owner = turn.origin.get("session", "") if turn is not None else ""
    if not owner or owner == event.session_id or not _is_alive(owner):
        return PERSON
    return event.short_name


def exit_status(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


def _is_alive(shell: str) -> bool:
    """Return whether the shell with this id (`shell-PID-TIME`) still runs."""
    parts = shell.split("-")
    try:
        os.kill(int(parts[1]), 0)
    except (IndexError, ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True
