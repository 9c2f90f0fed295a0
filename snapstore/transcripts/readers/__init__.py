"""One reader per agent: from the agent's own file to turns.

`read` is the entry point: it chooses the reader and reads a conversation whole, or only its last turns. Each other
module reads one agent's format into the classes of `transcripts.model`. To add an agent, add a module here and one line
in `read`.

Nothing here writes, and nothing trusts what it reads: a transcript may be torn, hostile or of a newer version.
"""
