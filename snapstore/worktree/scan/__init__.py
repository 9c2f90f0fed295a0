"""TODO snapstore/worktree/scan."""
