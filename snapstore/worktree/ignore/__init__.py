"""TODO snapstore/worktree/ignore."""
