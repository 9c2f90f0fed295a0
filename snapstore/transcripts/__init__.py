"""Read agents' conversation files into one model.

`readers.read` reads a conversation, `locate` finds the file of an agent session, and `model` has the classes that
represent every agent's turns. `lines` and `outline` read files that another program is still writing, and `tool_calls`
determines which file a tool call wrote. `apply_patch` parses patches in the format `*** Update File: path`. `fork`
makes a new session file from an old one, and `replay` reconstructs what a conversation did to files.

No module here writes to a file that an agent owns. The package must not import `timeline`, `share` or `agents`.
"""
