"""TODO snapstore/transcripts/fork."""
