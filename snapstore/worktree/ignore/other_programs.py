"""Files below a root that only other programs write: agents' conversations and git's own files.

A move never writes a conversation (C1, S1-09, S4-01). If the root is the home folder, `~/.claude`, or a settings folder
that `~/.claude` links to, every turn would change the conversation, and an undo would truncate it. A move never writes
to the user's repository either (P-04), whose folder may have another name than `.git`. Both are never captured, as if
`never_capture` listed them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

from snapstore.base.agent_folders import CONVERSATION_FOLDERS
from snapstore.base.paths import has_unsafe_part
from snapstore.worktree.ignore.never_capture import pattern_of
from snapstore.worktree.usergit.repository import external_git_dirs


def patterns_below(root: bytes) -> list[str]:
    """Return patterns for other programs' files below a root; most roots have none."""
    top = root.rstrip(b"/") + b"/"
    return [*_conversations(top), *_repository(top)]


def _conversations(top: bytes) -> Iterator[str]:
    user = os.path.expanduser("~")
    for folder in chain.from_iterable(CONVERSATION_FOLDERS.values()):
        place = os.fsencode(os.path.realpath(folder.path(user, os.environ))) + b"/"
        if place.startswith(top):
            yield from (f"{pattern_of(place[len(top) : -1])}/**/{name}" for name in folder.names)
        elif top.startswith(place):  # the root itself lies inside the agent's folder
            yield from folder.names


def _repository(top: bytes) -> Iterator[str]:
    for folder in external_git_dirs(top.rstrip(b"/") or b"/"):
        if folder.startswith(top) and not has_unsafe_part(folder[len(top) :]):  # `.git` is never captured anyway
            yield pattern_of(folder[len(top) :])
