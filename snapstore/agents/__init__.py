"""Coding agents: their hooks, their hook files, and forks of their conversations.

`known` has one module per agent, with one object that says everything about the agent. `events` has the events that
hooks become, and `hooks` turns events into turns. `install` writes our hooks into an agent's settings and removes them
again. `fork` continues a conversation from an earlier turn, `import_session` builds a timeline from a transcript, and
`capabilities` lists what an agent's program can do.

A hook runs at every step of an agent, so modules are imported only when they are needed.
"""
