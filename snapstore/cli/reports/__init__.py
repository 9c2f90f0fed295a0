"""Reports that commands print about their results.

`move` reports moves and their conflicts, `change` branches and checkpoints, `transfer` pushes and pulls, `summary` one
turn, and `patch` prints patches.

The modules only print. They take the facts from the timeline's objects and decide nothing.
"""
