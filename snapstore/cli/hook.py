"""`snapstore hook AGENT`: the command an agent runs at every step.

The payload comes on standard input. A hook never disturbs the agent: the status is always 0, standard output holds only
what the agent's rules ask for, and errors go to the log. A status of 2 would block the agent, and any text could end up
in its context.

Modules that could fail to load are imported inside functions, where every exception is caught and logged.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence

from snapstore.agents.events.event import Event
from snapstore.agents.known.registry import AGENTS, PERSON, find
from snapstore.errors import Corrupt, SnapstoreError, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.known.agent import Agent

_LARGEST = 64 << 20  # bytes of a payload: a tool's answer may be long
_PATIENCE = "8"  # seconds to wait for a locked store: a lock is held for milliseconds, or by a process that hangs


def run_hook(words: Sequence[str]) -> int:
    """Handle the payload of an agent's hook and return 0.

    With `--debug` errors are raised.
    """
    os.environ.setdefault("SNAPSTORE_LOCK_TIMEOUT", _PATIENCE)
    agent = words[0] if words else ""
    told: list[str] = []
    try:
        for event in _events(agent):
            said = _handled(event)
            told += [said] if event.agent == agent else []  # another agent may run the hooks of this one
    except (Exception, KeyboardInterrupt) as error:  # the agent must go on: the log and `status` show the error
        _note(agent, error)
        if "--debug" in words:
            raise
    _say(_answer(agent, "\n".join(filter(None, told))))
    return 0


def _say(answer: str) -> None:
    """Write the answer to standard output, unbuffered.

    A failed write (a closed pipe, a full disk) is ignored.
    """
    if answer and sys.stdout is not None:  # if stdout was closed, descriptor 1 may be another file by now
        try:
            os.write(sys.stdout.fileno(), f"{answer}\n".encode())
        except (OSError, ValueError):
            pass


def _answer(agent: str, told: str) -> str:
    try:
        known = find(agent)
    except Exception:  # its module cannot be loaded, which is in the log already
        return ""
    if known is None:
        return ""
    if not told or not known.hooks.tells_at:
        return known.answer
    return json.dumps({"hookSpecificOutput": {"hookEventName": known.hooks.tells_at, "additionalContext": told}})


def _events(agent: str) -> Iterator[Event]:
    known = find(agent)
    if known is None and agent != PERSON:
        raise Unknown(f"no hooks are known for {agent[:80]!r}", f"Known are {', '.join(AGENTS)}.")
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise Corrupt(f"a payload of more than {_LARGEST >> 20} MB")
    if known is None:
        from snapstore.agents.known import shell

        yield from shell.events(data.decode("utf-8", "surrogateescape").split("\0")[:-1])
        return
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"the payload is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise Corrupt("the payload is not an object")
    events = known.events(payload, os.environ)
    _count(known, payload, events)
    yield from events


def _count(known: Agent, payload: dict[str, Any], events: Sequence[Event]) -> None:
    """Count, and log once, what in a payload is not known."""
    from snapstore.agents.events.not_known import note, unknown_in

    what = unknown_in(payload, events, getattr(known.hooks.content, "entries", ()))
    if not what:
        return
    from snapstore.store.locations import home_folder

    if note(home_folder(), known.name, what):
        _note(known.name, Unknown(f"{what} is not known here: a newer version may have it"))


def _handled(event: Event) -> str:
    from snapstore.agents.hooks.turns import handle

    _mark(event.agent)
    try:
        return handle(event)
    except SnapstoreError as error:
        error.message = f"{event.kind} in {event.cwd}: {error.message}"
        raise


def _mark(agent: str) -> None:
    """Record that the agent's hooks just fired, as the mtime of a file.

    The time is only displayed, so the file is not synced.
    """
    from snapstore.store.locations import home_folder

    folder = f"{home_folder()}/fired"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(f"{folder}/{agent}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.utime(f"{folder}/{agent}")
    except OSError:
        pass


def _note(agent: str, error: BaseException) -> None:
    """Write an error to the log in the home folder.

    The log is shared by all stores, and can be written even where no store could be opened.
    """
    text = error.message if isinstance(error, SnapstoreError) else f"{type(error).__name__}: {error}"
    try:
        from snapstore.store import log
        from snapstore.store.locations import home_folder

        log.note(f"{home_folder()}/log", f"hook {agent}: {text}", time.time())
    except (SnapstoreError, ImportError):
        pass  # there is no home folder, or a library is missing that is needed to find it
