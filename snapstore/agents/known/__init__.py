"""One module per agent: how its hooks speak.

Each module has `events(payload, environ)`, which turns one hook payload into the events of `agents.hooks.events`. To
add an agent, add a module here, its hook file in `agents.install.locations`, and its reader in `transcripts.readers`
(CONTRIBUTING.md has the steps).

A module must not open a store: it translates words, and `agents.hooks.turns` acts on them.
"""
