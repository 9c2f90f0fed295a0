"""The MCP server: the timeline as tools for an agent.

`server.serve` is the entry point. Tools look, preview, undo, redo and restore; nothing is recorded here, because MCP
sees no turn begin or end.

The package needs the extra `mcp`, and must not import `cli`, `web` or `tui`.
"""
