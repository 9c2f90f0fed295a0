"""TODO snapstore/share/server."""
