"""TODO snapstore/timeline/record."""
