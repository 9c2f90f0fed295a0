"""TODO snapstore/worktree/write."""
