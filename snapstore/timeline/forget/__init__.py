"""TODO snapstore/timeline/forget."""
