"""Read hook payloads, whose fields may be missing, of another type, or hostile."""

from __future__ import annotations

from snapstore.agents.events.event import AFTER, BEFORE, SHELL, Event
from snapstore.agents.events.tool_effects import effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Payload = dict[str, Any]


def text(payload: Any, *names: str) -> str:
    """Return the first of these fields that is a non-empty string."""
    fields = payload if isinstance(payload, dict) else {}
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def first(payload: Payload, name: str) -> str:
    """Return the first string in a list field."""
    values = payload.get(name)
    return next((value for value in values if isinstance(value, str)), "") if isinstance(values, list) else ""


def milliseconds(payload: Payload, name: str) -> float:
    """Return a time in milliseconds, or 0 if the field holds none."""
    value = payload.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15 else 0.0


def tool_events(kind: str, name: str, input: Any, common: dict[str, Any]) -> list[Event]:
    """Return the events of a tool call, before (BEFORE) or after (AFTER) it runs.

    A shell event is sent before the program runs, so that the program's changes are not attributed to somebody else. A
    duplicate event does no harm.
    """
    found = effect(name, input)
    events = []
    if found.paths:
        events.append(Event(kind, paths=found.paths, **common))
    if found.scans:
        events.append(Event(SHELL, ran=kind == AFTER, **common))
    return events


__all__ = ["AFTER", "BEFORE", "Payload", "first", "milliseconds", "text", "tool_events"]
