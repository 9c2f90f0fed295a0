"""Read each agent's own files into turns, with one reader per agent.

`read` is the entry point: it chooses the reader and reads the turns of a conversation, or only the last ones. `detect`
finds the agent that wrote a file. Each other module reads one agent's format into the classes of `transcripts.model`.
To add an agent, add a module here and one line in `read`.

Nothing here writes, and nothing trusts its input: a transcript may be incomplete, hostile or of a newer version.
"""
