"""TODO snapstore/timeline/history."""
