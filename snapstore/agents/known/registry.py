"""List the known agents, and load the module of one on demand."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from snapstore.agents.known.agent import Agent

AGENTS = ("claude", "codex", "gemini", "opencode", "cursor", "copilot", "cline", "qwen")

PERSON = "shell"  # a person's shell: it has hooks, but is no agent; also the session that all shells share


def load(name: str) -> Agent:
    """Return a known agent by its name; the name must be one of AGENTS."""
    if name not in AGENTS:
        raise KeyError(name)
    found = import_module(f"snapstore.agents.known.{name}").AGENT
    assert isinstance(found, Agent)
    return found


def find(name: str) -> Agent | None:
    """Return a known agent, or None for any other name."""
    return load(name) if name in AGENTS else None


def load_all() -> Iterator[Agent]:
    return map(load, AGENTS)


def tells_afterwards(name: str) -> bool:
    """Return whether an agent or a shell reports tools only after they ran."""
    known = find(name)
    return name == PERSON if known is None else known.tells_afterwards
