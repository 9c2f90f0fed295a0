"""TODO snapstore/timeline/maintenance."""
