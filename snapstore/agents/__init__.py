"""Agents: what their hooks say, where their hooks are written down, and how their conversations go on elsewhere.

One file an agent, all of one shape: `events(payload, environ)` turns a hook's payload into events of a turn, and
`INSTALLATION` says which files of the agent name our hooks. Nothing here is imported before it is needed: a hook runs
at every step of an agent.
"""

from __future__ import annotations

AGENTS = ("claude", "codex", "gemini", "opencode", "cursor", "copilot", "cline")
