"""One module per agent, which translates its hook payloads into events.

Each module has `events(payload, environ)`, which turns one hook payload into the events of `agents.hooks.events`. To
add an agent, add a module here, its hook file in `agents.install.locations`, and its reader in `transcripts.readers`
(CONTRIBUTING.md has the steps).

A module here must not open a store: it only translates, and `agents.hooks.turns` acts on the events.
"""
