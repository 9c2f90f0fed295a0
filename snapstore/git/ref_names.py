"""The names of every ref in a store.

refs/heads/<session>/<branch>           tips
refs/tags/<session>/<checkpoint>        checkpoints
refs/notes/turns, refs/notes/transcripts
refs/snapstore/cursor/<session>         the cursor of a session
refs/snapstore/{archive,deleted,pruned,safety}/…
refs/snapstore/disk                     the tree of the disk as last recorded
"""

from __future__ import annotations

MAIN = "main"

DISK_REF = "refs/snapstore/disk"
