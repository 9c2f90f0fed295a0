"""Agents' conversation files, read into one shape.

`readers.read` reads a conversation, `locate` finds the file of a session, and `model` has the classes that every
agent's turns become. `lines` and `outline` read files that somebody else is still writing, `tool_calls` tells which
file a tool call wrote. `fork` makes a new session file from an old one, and `replay` works out what a conversation did
to files.

Nothing here ever writes a file that an agent owns. The package must not import `timeline`, `share` or `agents`.
"""
