"""What commands print about what they did.

`move` speaks of moves and their conflicts, `change` of branches and checkpoints, `transfer` of pushes and pulls,
`summary` of one turn, and `patch` prints patches.

The modules print and decide nothing: what happened comes from the timeline's objects.
"""
