"""Coding agents: their hooks, their hook files, and forks of their conversations.

`known` has one module per agent, which turns a hook's payload into events. `hooks` turns events into turns. `install`
writes our hooks into an agent's settings and removes them again. `fork` continues a conversation from an earlier turn,
`import_session` builds a timeline from a transcript, and `capabilities` lists what an agent's program can do.

A hook runs at every step of an agent, so modules are imported only when they are needed.
"""

from __future__ import annotations

AGENTS = ("claude", "codex", "gemini", "opencode", "cursor", "copilot", "cline")

# What a hook prints when it has nothing to say. These agents expect a JSON object; the others expect no output.
ANSWERS = {"gemini": "{}", "cline": "{}"}
