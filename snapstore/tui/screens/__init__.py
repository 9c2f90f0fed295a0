"""TODO snapstore/tui/screens."""
