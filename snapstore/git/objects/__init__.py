"""TODO snapstore/git/objects."""
