"""TODO snapstore/git/maintenance."""
