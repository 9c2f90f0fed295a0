"""TODO snapstore/transcripts/replay."""
