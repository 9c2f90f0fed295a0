"""Import what the warm process needs, before it serves requests."""

from __future__ import annotations

from importlib import import_module

from snapstore.agents.known.registry import AGENTS, PERSON
from snapstore.api import Store
from snapstore.base import own_command
from snapstore.cli.app import command_modules
from snapstore.errors import SnapstoreError

_NEEDED_LATER = (  # modules that commands and hooks import inside functions
    "agents.hooks.turns",
    "cli.hook",
    "share.secrets.scanner",
    "timeline.history.history",
    "timeline.record.transaction",
    "worktree.ignore.other_programs",
)
_WITH_A_SCREEN = ("tui", "ui", "mcp")  # these run in their own process and need large libraries


def is_wanted() -> bool:
    """Return whether the current folder's store allows leaving a warm process."""
    try:
        with Store.open(".", recover=False) as store:
            return store.header.daemon
    except (SnapstoreError, OSError):
        return True


def start_command() -> list[str]:
    """Return the command that starts a warm process in a clean interpreter.

    A clean interpreter is not affected by this process's environment.
    """
    return [*(own_command.checked_command() or own_command.own_command()), "daemon", "run"]


def load() -> None:
    """Import every command and agent with what they need, and use them once."""
    # Imported here because a hook that calls `is_wanted` must load neither click nor pydantic.
    from snapstore.cli.warm.rehearsal import rehearse
    from snapstore.surface.records import load_all

    for name, place in command_modules().items():
        if name not in _WITH_A_SCREEN:
            import_module(place)
    load_all()
    for agent in (*AGENTS, PERSON):
        import_module(f"snapstore.agents.known.{agent}")
    for module in _NEEDED_LATER:
        import_module(f"snapstore.{module}")
    rehearse()
