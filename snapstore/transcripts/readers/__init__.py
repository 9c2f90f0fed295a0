"""TODO snapstore/transcripts/readers."""
