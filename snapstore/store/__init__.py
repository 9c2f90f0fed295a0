"""TODO snapstore/store."""
