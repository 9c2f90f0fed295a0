"""TODO snapstore/tui/widgets."""
