"""The names of every ref in a store, in one place.

refs/heads/<session>/<branch>           tips
refs/tags/<session>/<checkpoint>        checkpoints
refs/notes/turns, refs/notes/transcripts
refs/snapstore/cursor/<session>         where a session stands
refs/snapstore/{archive,deleted,pruned,safety}/…
refs/snapstore/disk                     the tree of the disk as last recorded
"""

from __future__ import annotations

MAIN = "main"

DISK_REF = "refs/snapstore/disk"
