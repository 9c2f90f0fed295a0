"""Moves through the tree of turns: plan, check, save, write, move refs.

`planner.Planner` makes a `plan.Plan` and writes nothing. `execute.Mover` carries a plan out; every change of the user's
files starts there. `conflicts` compares a plan with the disk, `three_way` shows the sides of one conflict, `safety`
saves what would be replaced, `stale` refuses a request whose session has moved, and `caveats` lists what a move cannot
undo. `branches` renames, archives, deletes and promotes branches; `ref_changes` computes the ref moves for these
changes.

The package must not import `timeline.maintenance` or `timeline.forget`.
"""
