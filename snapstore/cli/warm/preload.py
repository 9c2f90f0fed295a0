"""What the warm process loads before it serves: every command, and what the commands need."""

from __future__ import annotations

from importlib import import_module

from snapstore.agents import AGENTS
from snapstore.api import Store
from snapstore.base import own_command
from snapstore.errors import SnapstoreError

_NEEDED_LATER = (  # what commands and hooks import inside functions
    "agents.hooks.turns",
    "cli.hook",
    "share.secrets.scanner",
    "timeline.history.history",
    "timeline.record.transaction",
    "worktree.ignore.other_programs",
)
_WITH_A_SCREEN = ("tui", "ui", "mcp")  # they run in a process of their own, on large libraries


def is_wanted() -> bool:
    """Tell whether the store of the current folder allows a warm process to be left behind."""
    try:
        with Store.open(".", recover=False) as store:
            return store.header.daemon
    except (SnapstoreError, OSError):
        return True


def start_command() -> list[str]:
    """Return the words that start a warm process in an interpreter that this one's environment does not disturb."""
    return [*(own_command.checked_command() or own_command.own_command()), "daemon", "run"]


def load() -> None:
    """Import every command, every agent and what they need, and use them once."""
    # Only here: a hook that asks `is_wanted` loads neither click nor pydantic.
    from snapstore.cli.app import command_modules
    from snapstore.cli.warm.rehearsal import rehearse
    from snapstore.surface.records import load_all

    for name, place in command_modules().items():
        if name not in _WITH_A_SCREEN:
            import_module(place)
    load_all()
    for agent in (*AGENTS, "shell"):
        import_module(f"snapstore.agents.known.{agent}")
    for module in _NEEDED_LATER:
        import_module(f"snapstore.{module}")
    rehearse()
