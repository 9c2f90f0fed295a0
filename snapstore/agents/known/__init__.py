"""One module per agent, with one object that says everything about the agent.

Each module defines `AGENT`, an `Agent` (see `agent`): how hook payloads become events, where our hooks are written, how
conversations are forked, and where they lie. `registry` lists the names and loads the module of one agent. To add an
agent, add a module here and its name in `registry`. `shell` translates what a person's shell sends.

A hook loads the module of its own agent only, so no module here imports `agents.hooks` or `agents.install`, and none
opens a store.
"""
