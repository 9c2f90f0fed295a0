"""Move through the tree of turns: plan, check, save, write, move refs.

`planner.Planner` makes a `plan.Plan` and writes nothing; `execute.Mover` carries a plan out and is the only way in
which files of the user change. `conflicts` holds a plan against the disk, `three_way` shows one conflict's sides,
`safety` saves what would be replaced, `stale` refuses a request whose session has moved, and `caveats` tells what no
move can take back. `branches` renames, archives, deletes and promotes branches; `ref_changes` works out what that means
for refs.

The package must not import `timeline.maintenance` or `timeline.forget`.
"""
