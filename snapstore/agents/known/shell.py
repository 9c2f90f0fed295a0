"""Hooks of a person's shell: `shell-init` sends words, each terminated by NUL."""

from __future__ import annotations

from snapstore.agents.events.event import PROMPT, STOP, Event
from snapstore.agents.known.registry import PERSON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def events(words: list[str]) -> list[Event]:
    """Return the events of one message from the shell.

    The message is `prompt ID TURN FOLDER COMMAND` before a command, and `stop ID TURN FOLDER STATUS` after it.
    """
    if len(words) != 5 or words[0] not in (PROMPT, STOP):
        return []
    kind, shell, turn, folder, said = words
    common: dict[str, Any] = {"agent": PERSON, "session_id": shell, "cwd": folder, "prompt_id": turn}
    if kind == PROMPT:
        return [Event(PROMPT, prompt=said, **common)]
    return [Event(STOP, status="done", reply=said, **common)]
