"""One reader per agent, which reads the agent's own file into turns.

`read` is the entry point: it chooses the reader and reads a whole conversation, or only its last turns. Each other
module reads one agent's format into the classes of `transcripts.model`. To add an agent, add a module here and one line
in `read`.

Nothing here writes, and nothing trusts its input: a transcript may be torn, hostile or of a newer version.
"""
