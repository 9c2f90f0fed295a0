"""The names of every ref in a store, and nothing else.

A session owns `refs/heads/<session>/<branch>` and `refs/tags/<session>/<checkpoint>`. Refs that people need not check
out are below `refs/snapstore/`. The module imports nothing, so every package may import it.
"""

from __future__ import annotations

MAIN = "main"  # the first branch of a session

HEADS = "refs/heads/"
TAGS = "refs/tags/"
NOTES = "refs/notes/"
TURN_NOTES = "refs/notes/turns"  # one record per turn
TRANSCRIPT_NOTES = "refs/notes/transcripts"  # the raw lines of a turn's conversation

CURSORS = "refs/snapstore/cursor/"
ARCHIVE = "refs/snapstore/archive/"  # branches out of the list
DELETED = "refs/snapstore/deleted/"
PRUNED = "refs/snapstore/pruned/"  # kept for the grace time
SAFETY = "refs/snapstore/safety/"  # what was on disk before a move replaced it
PROGRESS = "refs/snapstore/progress/"  # saved while a turn is open
DISK_REF = "refs/snapstore/disk"  # the tree of the disk as last recorded

REMOTES = "refs/snapstore/remotes/"  # what was last exchanged with a remote
MACHINES = "refs/snapstore/machines/"  # on a server: which refs a machine claims
STORES = "refs/snapstore/stores/"  # on a server: which project this is
PARTS = "refs/snapstore/parts/"  # on a server: parts of a large push


def cursor_ref(session: str) -> str:
    return f"{CURSORS}{session}"


def branch_ref(session: str, branch: str) -> str:
    return f"{HEADS}{session}/{branch}"


def archive_ref(session: str, branch: str) -> str:
    return f"{ARCHIVE}{session}/{branch}"
