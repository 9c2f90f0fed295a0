"""TODO snapstore/cli/reports."""
