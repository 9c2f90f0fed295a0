"""TODO snapstore/share/secrets."""
