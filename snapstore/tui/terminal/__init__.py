"""TODO snapstore/tui/terminal."""
