"""TODO snapstore/web/routes."""
