"""TODO snapstore/git/diff."""
