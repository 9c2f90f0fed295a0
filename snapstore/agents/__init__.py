"""Agents: what their hooks say, where their hooks are written down, and how their conversations go on elsewhere.

`known` has one module per agent, which turns a hook's payload into events; `hooks` makes turns of events; `install`
writes our hooks into an agent's settings and takes them out again. `fork` continues a conversation from an earlier
turn, `import_session` builds a timeline from a transcript, and `capabilities` says what an agent's program can do.

A hook runs at every step of an agent, so nothing is imported before it is needed.
"""

from __future__ import annotations

AGENTS = ("claude", "codex", "gemini", "opencode", "cursor", "copilot", "cline")

# What a hook prints where nothing is to be said: these want an object, the others nothing at all.
ANSWERS = {"gemini": "{}", "cline": "{}"}
