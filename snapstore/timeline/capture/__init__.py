"""TODO snapstore/timeline/capture."""
