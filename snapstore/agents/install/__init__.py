"""TODO snapstore/agents/install."""
