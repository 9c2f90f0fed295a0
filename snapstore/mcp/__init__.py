"""The MCP server: the timeline as tools for an agent.

`server.serve` is the entry point. The package needs the extra `mcp`, and must not import `cli`, `web` or `tui`.
"""
