"""Snapshots of the disk, as trees of the shadow repository.

`disk_snapshot.Capture` is the entry point: it scans the root, or looks at named paths only, and writes new content into
a pack that is not visible yet. `stored_objects` decides which content need not be written again.

The package must not import `timeline.history` or anything above it: a snapshot knows nothing of turns.
"""
