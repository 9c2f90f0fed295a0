"""TODO snapstore/agents/hooks."""
