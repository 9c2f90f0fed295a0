"""TODO snapstore/timeline/moves."""
