"""Resolve an argument of `forget`: a turn, a file or folder, or a pattern."""

from __future__ import annotations

import os
import re

from snapstore.errors import SnapstoreError, Usage
from snapstore.git.ref_names import cursor_ref
from snapstore.timeline.history.addresses import resolve
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.record.session import RecordingSession
from snapstore.worktree.ignore.never_capture import pattern_of

# Branch names are not accepted: `forget main` must not mean the last turn of a branch.
_TURN = re.compile(r"\d+|#\d+|@|[^:]+:\d+|[0-9a-f]{7,40}").fullmatch
_WILD = re.compile(r"[*?\[]").search


def turn_of(session: RecordingSession, word: str, path: bytes | None) -> bytes | None:
    """Return the commit of a turn's address, or None for any other word.

    `path` is the word read as a file name. If that file exists too, the user has to choose.
    """
    if not _TURN(word):
        return None
    try:
        found = resolve(Graph(session.store, session.name), word)
    except SnapstoreError:
        return None
    if path is not None and _is_there(session, path):
        raise Usage(
            f"{word!r} is both a turn and a file",
            f"`snapstore forget ./{word}` forgets the file, `snapstore forget {found.hex()[:12]}` the turn.",
        )
    return found


def files_of(session: RecordingSession, word: str, path: bytes, here: bytes) -> tuple[list[bytes], list[str]]:
    """Return a word as names of files or as patterns.

    A word without wildcards is a name, and so is one that exists. `here` is the current folder relative to the root.
    """
    if not path:
        raise Usage("the root itself cannot be forgotten", "Name a file or a folder in it.")
    if not _WILD(word) or _is_there(session, path):
        return [path], []
    word = word.removeprefix("./")
    top = pattern_of(here) if here else ""
    if "/" in word.rstrip("/"):
        return [], [f"{top}/{word.lstrip('/')}"]
    return [], [f"{top}/**/{word}" if here else word]


def _is_there(session: RecordingSession, path: bytes) -> bool:
    """Return whether a file or folder exists, on disk or at the session's cursor."""
    store = session.store
    if os.path.lexists(os.path.join(store.root, path)):
        return True
    cursor = store.shadow.refs.read(cursor_ref(session.name))
    return cursor is not None and store.shadow.trees.lookup(store.shadow.commit(cursor).tree, path) is not None
