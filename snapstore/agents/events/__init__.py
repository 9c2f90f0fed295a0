"""Hook events in one format for all agents, and the helpers that make them.

`event` has the class `Event` and the kinds of events. `payload` reads the fields of a hook's payload, `claude_form`
reads payloads in Claude Code's format, and `tool_effects` determines what a tool call may do to files.

The modules of `agents.known` make events from payloads, and `agents.hooks` acts on events. This package must not import
either of them, nor open a store.
"""
