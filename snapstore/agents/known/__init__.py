"""TODO snapstore/agents/known."""
