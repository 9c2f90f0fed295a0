"""A person at a shell as an agent: one session for all shells, unless two run commands at once."""

from __future__ import annotations

import os

from snapstore.agents.hooks.events import Event
from snapstore.api import Store

PERSON = "shell"  # the agent that is a person; also the session of all shells


def persons_session(store: Store, event: Event) -> str:
    """All shells share a session, unless a command still runs in another one."""
    turn = store.open_turn(PERSON)
    owner = turn.origin.get("session", "") if turn is not None else ""
    if not owner or owner == event.session_id or not _is_alive(owner):
        return PERSON
    return event.short_name


def exit_status(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


def _is_alive(shell: str) -> bool:
    """Whether the shell with that id (`shell-PID-TIME`) is still there."""
    parts = shell.split("-")
    try:
        os.kill(int(parts[1]), 0)
    except (IndexError, ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True
