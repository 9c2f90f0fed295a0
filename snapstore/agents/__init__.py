"""Agents: what their hooks say, where their hooks are written down, and how their conversations go on elsewhere.

One file an agent, all of one shape: `events(payload, environ)` turns a hook's payload into events, `turns` makes turns
of them, and `installations` says which files of the agent name our hooks. Nothing here is imported before it is
needed: a hook runs at every step of an agent.
"""

from __future__ import annotations

AGENTS = ("claude", "codex", "gemini", "opencode", "cursor", "copilot", "cline")

# What a hook prints where nothing is to be said: these want an object, the others nothing at all.
ANSWERS = {"gemini": "{}", "cline": "{}"}
