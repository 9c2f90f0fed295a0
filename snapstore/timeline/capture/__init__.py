"""Look at the disk and turn what is there into a tree of the shadow repository.

`disk_snapshot.Capture` is the entry point: it scans the root, or looks at named paths only, and writes new contents
into a pack that is not visible yet. `stored_objects` decides which contents need not be written again.

The package must not import `timeline.history` or anything above it: a snapshot knows nothing of turns.
"""
