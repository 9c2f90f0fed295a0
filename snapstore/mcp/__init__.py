"""The MCP server: the timeline as tools for an agent.

`server.serve` is the entry point. The tools read, preview, undo, redo and restore. Nothing is recorded here, because
MCP does not see when a turn begins or ends.

The package needs the extra `mcp`, and must not import `cli`, `web` or `tui`.
"""
