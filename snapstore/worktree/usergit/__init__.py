"""TODO snapstore/worktree/usergit."""
