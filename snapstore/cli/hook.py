"""`snapstore hook AGENT`: what an agent runs at every step, with a payload on standard input.

It never disturbs the agent: status 0 whatever happens, nothing on standard output but what the agent's rules ask for,
errors to the log. A status of 2 would block the agent, and any text could end up in its context.

What could fail to load is imported inside functions, where every exception is caught and logged.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module

from snapstore.agents import AGENTS, ANSWERS
from snapstore.agents.hooks.events import Event
from snapstore.errors import Corrupt, SnapstoreError, Unknown

_LARGEST = 64 << 20  # bytes of a payload: a tool's answer may be long
_PATIENCE = "8"  # seconds that an agent waits for a store in use: it is held for milliseconds, or by one that hangs


def run_hook(words: Sequence[str]) -> int:
    """Handle what an agent's hook sends, and return 0. With `--debug` errors are raised."""
    os.environ.setdefault("SNAPSTORE_LOCK_TIMEOUT", _PATIENCE)
    agent = words[0] if words else ""
    told: list[str] = []
    try:
        told = [_handled(event) for event in _events(agent)]
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, the agent goes on: the log and `status` tell
        _note(agent, error)
        if "--debug" in words:
            raise
    _say(_answer(agent, "\n".join(filter(None, told)) if "--tell" in words else ""))
    return 0


def _say(answer: str) -> None:
    """Past the buffers: what cannot be written, because nobody listens or a disk is full, is not said."""
    if answer and sys.stdout is not None:  # closed, its number may be another file's by now
        try:
            os.write(sys.stdout.fileno(), f"{answer}\n".encode())
        except (OSError, ValueError):
            pass


def _answer(agent: str, told: str) -> str:
    if not told:
        return ANSWERS.get(agent, "")
    return json.dumps({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": told}})


def _events(agent: str) -> Iterator[Event]:
    if agent not in (*AGENTS, "shell"):
        raise Unknown(f"no hooks are known for {agent[:80]!r}", f"Known are {', '.join(AGENTS)}.")
    adapter = import_module(f"snapstore.agents.known.{agent}")
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise Corrupt(f"a payload of more than {_LARGEST >> 20} MB")
    if agent == "shell":
        words = data.decode("utf-8", "surrogateescape").split("\0")[:-1]
        yield from adapter.events(words)
        return
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"the payload is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise Corrupt("the payload is not an object")
    yield from adapter.events(payload, os.environ)


def _handled(event: Event) -> str:
    from snapstore.agents.hooks.turns import handle

    _mark(event.agent)
    try:
        return handle(event)
    except SnapstoreError as error:
        error.message = f"{event.kind} in {event.cwd}: {error.message}"
        raise


def _mark(agent: str) -> None:
    """When the agent's hooks last fired: the age of a file. Only shown, so it is not synced."""
    from snapstore.store.locations import home_folder

    folder = f"{home_folder()}/fired"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(f"{folder}/{agent}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.utime(f"{folder}/{agent}")
    except OSError:
        pass


def _note(agent: str, error: BaseException) -> None:
    """Where no store could be opened, there is a log for all of them."""
    from snapstore.store import log
    from snapstore.store.locations import home_folder

    text = error.message if isinstance(error, SnapstoreError) else f"{type(error).__name__}: {error}"
    try:
        log.note(f"{home_folder()}/log", f"hook {agent}: {text}", time.time())
    except SnapstoreError:
        pass  # not even a home
