"""TODO snapstore/base."""
